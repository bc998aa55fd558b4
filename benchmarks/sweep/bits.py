"""A graph and an order as short texts in base 64: an adjacency matrix bit by bit, an order by as few bits a node as do."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]


def to_text(adjacency: npt.ArrayLike) -> str:
    return _pack(np.asarray(adjacency, dtype=bool).ravel())


def from_text(text: str, nodes: int) -> npt.NDArray[np.int8]:
    return _unpack(text, nodes * nodes).reshape(nodes, nodes).astype(np.int8)


def order_to_text(order: Sequence[int]) -> str:
    return _pack(np.asarray(order)[:, None] >> _places(len(order)) & 1 == 1)


def order_from_text(text: str, nodes: int) -> list[int]:
    places = _places(nodes)
    return [int(node) for node in _unpack(text, nodes * len(places)).reshape(nodes, -1) @ (1 << places)]


def to_text_along(order: Sequence[int], adjacency: npt.ArrayLike) -> str | None:
    """Less than half the text for a graph that keeps to an order: only pairs in that order. None for another graph."""
    along = np.asarray(adjacency, dtype=bool)[np.ix_(order, order)]
    above = np.triu_indices(len(order), 1)
    return _pack(along[above]) if along[above].sum() == along.sum() else None


def from_text_along(order: Sequence[int], text: str) -> npt.NDArray[np.int8]:
    d = len(order)
    along = np.zeros((d, d), dtype=np.int8)
    along[np.triu_indices(d, 1)] = _unpack(text, d * (d - 1) // 2)
    adjacency = np.zeros_like(along)
    adjacency[np.ix_(order, order)] = along
    return adjacency


def _places(nodes: int) -> npt.NDArray[np.int64]:
    """Of the bits that tell so many nodes apart."""
    return np.arange(max(nodes - 1, 1).bit_length())


def _pack(flags: BoolArray) -> str:
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def _unpack(text: str, count: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8), count=count)
