"""Several tables of the same columns peeled in lockstep by one score: at each step all their leaves in one evaluation.

What replicates do that share a score model. Each table's leaves are those it would have alone, up to the rounding of a
batched product; on a GPU a table alone is mostly waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from diffan.algorithm import Eligible
from diffan.ordering.choice import choose, criterion_of
from diffan.ordering.curvature import NetworkField
from diffan.ordering.points import OrderingPoints


def masking_orders(
    field: NetworkField, points: Sequence[OrderingPoints], n_nodes: int, eligible: Eligible
) -> list[list[int]]:
    """The order of each table by `masking`, causes first; all give as many points."""
    settings = points[0].settings
    drawn: dict[float, Tensor] = {}

    def points_at(sigma: float, step: int) -> Tensor:
        """[tables, k, d], drawn again at a step only if the settings say so."""
        if settings.resample or sigma not in drawn:
            drawn[sigma] = torch.stack([one.at(sigma, step) for one in points])
        return drawn[sigma]

    remaining = [list(range(n_nodes)) for _ in points]
    removed: list[list[int]] = [[] for _ in points]
    for step in range(n_nodes - 1):
        criteria = []
        for sigma in settings.noise_levels:
            found = field.diagonal_of_each(points_at(sigma, step), sigma, remaining, removed)
            criteria.append(criterion_of(_in_units(found, points, remaining), settings))
        by_table = np.stack(criteria, axis=1)  # [tables, levels, r]
        for own, gone, of_levels in zip(remaining, removed, by_table, strict=True):
            place, criterion = choose(of_levels, settings)
            leaf, allowed = own[place], eligible(own)
            if leaf not in allowed:
                leaf = min(allowed, key=lambda node: criterion[own.index(node)])
            own.remove(leaf)
            gone.append(leaf)
    return [own + gone[::-1] for own, gone in zip(remaining, removed, strict=True)]


def _in_units(
    diagonals: Tensor, points: Sequence[OrderingPoints], columns: Sequence[Sequence[int]]
) -> Tensor:
    """[tables, k, r] in the units that count for each table."""
    if points[0].scale is None:
        return diagonals
    each = zip(points, diagonals, columns, strict=True)
    return torch.stack([one.in_units(found, own) for one, found, own in each])
