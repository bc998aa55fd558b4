"""Greedy: after a leaf is found, the score is learned again on the columns that remain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from diffan.algorithm import LeafFinder
from diffan.ordering.choice import choose_leaf
from diffan.ordering.curvature import Field
from diffan.ordering.points import OrderingPoints

Array = npt.NDArray[np.float64]
Refit = Callable[[Sequence[int]], Field]
"""Columns -> the field of these columns alone, in this order."""


def greedy_finder(refit: Refit, points: OrderingPoints) -> LeafFinder:
    """A leaf is the variable whose score derivative varies least under the score of the remaining columns."""

    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        field = refit(remaining)

        def diagonals_at(sigma: float) -> Tensor:
            rows = points.at(sigma, step=len(removed))[:, list(remaining)]
            return field.diagonal(rows, sigma, range(len(remaining)))

        return choose_leaf(points, remaining, diagonals_at)

    return find_leaf
