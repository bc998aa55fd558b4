"""What a fit is: a node, its parents and the kernel they are joined by."""

from __future__ import annotations

from typing import NamedTuple

Parents = frozenset[int]
NOBODY: Parents = frozenset()


class Kernel(NamedTuple):
    """What a node's regression may choose: how joint and how smooth its function is, and how much of it is noise.

    `lines` is the variance of a straight line in each parent that the function may have beside it; 0 for none.
    """

    interaction: float
    ridge: float
    bandwidth: float = 1.0
    lines: float = 0.0


class Query(NamedTuple):
    """A fit that is wanted: its objective, and its slopes towards every further column if asked for.

    With `weights`, not a fit but what a relaxation makes of these parents, all of them candidates. With `kept`, the
    residuals themselves too.
    """

    node: int
    parents: Parents
    slopes: bool = False
    kernel: Kernel | None = None  # None: the node's own
    weights: bool = False
    kept: bool = False


class Fit(NamedTuple):
    """A fit with nothing left open: what answers are kept by."""

    node: int
    kernel: Kernel
    parents: Parents
