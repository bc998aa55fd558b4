"""How far a mere sort of the columns would give the same order (Reisach et al. 2021, 2023)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diffan.dag import Dag


def sortability(dag: Dag, criterion: npt.ArrayLike) -> tuple[float, int]:
    """The share of ancestor-descendant pairs along which the criterion grows (a tie is a half), and their number.

    0.5 is what a criterion that knows nothing gives; every pair counts once, however many paths join it.
    """
    size = np.asarray(criterion, dtype=np.float64)
    ancestor, descendant = np.nonzero(_reaches(dag.adjacency))
    if not len(ancestor):
        return 0.5, 0
    step = np.sign(size[descendant] - size[ancestor])
    return float((step.mean() + 1) / 2), len(ancestor)


def _reaches(adjacency: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """[i, j] when a directed path leads from i to j: paths are doubled in length until nothing is new."""
    reached = adjacency.astype(np.float32)
    while True:
        longer = np.minimum(reached + reached @ reached, 1.0)
        if np.array_equal(longer, reached):
            return reached > 0
        reached = longer
