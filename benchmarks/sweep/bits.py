"""A graph as a short text: its adjacency matrix, bit by bit, in base 64."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt


def to_text(adjacency: npt.ArrayLike) -> str:
    return base64.b64encode(np.packbits(np.asarray(adjacency, dtype=bool)).tobytes()).decode()


def from_text(text: str, nodes: int) -> npt.NDArray[np.int8]:
    bits = np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8), count=nodes * nodes)
    return bits.reshape(nodes, nodes).astype(np.int8)
