"""Masking: after a leaf is found, its column is set to zero and the same score is asked again.

With a score that was trained on rows that lack columns (`drop_columns`) a removed column is not merely zero but
known to be absent, and what is asked is the score of the marginal: greedy without retraining.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from diffan.algorithm import LeafFinder
from diffan.ordering.choice import choose_leaf
from diffan.ordering.curvature import Field
from diffan.ordering.points import OrderingPoints

Array = npt.NDArray[np.float64]


def masking_finder(field: Field, points: OrderingPoints) -> LeafFinder:
    """A leaf is the remaining variable whose score derivative varies least, removed columns at their mean of 0."""

    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        def diagonals_at(sigma: float) -> Tensor:
            return field.diagonal(points.at(sigma, step=len(removed)), sigma, remaining, absent=removed)

        return choose_leaf(points, remaining, diagonals_at)

    return find_leaf
