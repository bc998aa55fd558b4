"""What a fit is: a node, its parents and the kernel they are joined by."""

from __future__ import annotations

from typing import NamedTuple

Parents = frozenset[int]
NOBODY: Parents = frozenset()


class Kernel(NamedTuple):
    """What a node's regression may choose: how joint its function is and how much of it is noise."""

    interaction: float
    ridge: float


class Query(NamedTuple):
    """A fit that is wanted: its objective, and its slopes towards every further column if asked for."""

    node: int
    parents: Parents
    slopes: bool = False
    kernel: Kernel | None = None  # None: the node's own


class Fit(NamedTuple):
    """A fit with nothing left open: what answers are kept by."""

    node: int
    kernel: Kernel
    parents: Parents
