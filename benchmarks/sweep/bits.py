"""A graph and an order as short texts: an adjacency matrix, bit by bit, in base 64; an order in letters of its own width."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

BoolArray = npt.NDArray[np.bool_]


def to_text(adjacency: npt.ArrayLike) -> str:
    return _pack(np.asarray(adjacency, dtype=bool).ravel())


def from_text(text: str, nodes: int) -> npt.NDArray[np.int8]:
    return _unpack(text, nodes * nodes).reshape(nodes, nodes).astype(np.int8)


def order_to_text(order: Sequence[int]) -> str:
    """A letter a node up to 36 nodes, two up to 1296, and so on."""
    width = _width(len(order))
    return "".join(_digits(node, width) for node in order)


def order_from_text(text: str, nodes: int) -> list[int]:
    width = _width(nodes)
    return [int(text[k : k + width], len(DIGITS)) for k in range(0, len(text), width)]


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


def _width(nodes: int) -> int:
    return next(width for width in range(1, 9) if nodes <= len(DIGITS) ** width)


def _digits(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, len(DIGITS))
        text = DIGITS[digit] + text
    return text


def _pack(flags: BoolArray) -> str:
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def _unpack(text: str, count: int) -> npt.NDArray[np.uint8]:
    return np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8), count=count)
