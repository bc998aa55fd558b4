r"""The paper's Algorithm 1, letter by letter, with the sign it prints and with the one its theorem gives.

At every step score(-pi) + c * Delta_pi, where Delta_pi sums H_l s_l / H_ll of the original score over the removed
leaves, all at rows whose removed columns are set to zero. The paper prints c = +1; from Delta = s - s_{-l} follows
c = -1. (The sum is exact for one removed leaf only; `diffan` itself uses fill and Schur.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from diffan.algorithm import topological_order
from diffan.context import Context
from diffan.ordering.choice import choose_leaf
from diffan.ordering.curvature import AutogradField
from diffan.ordering.points import OrderingPoints
from diffan.score.model import ScoreModel
from diffan.score.training import train
from diffan.settings import DiffanSettings
from diffan.table import Table

SIGNS = {"plus, as printed": 1.0, "minus": -1.0, "no residue (masking)": 0.0}


def printed_orders(table: Table, settings: DiffanSettings, context: Context) -> dict[str, list[int]]:
    """One trained score, an order for each sign."""
    device = context.torch_device()
    model, _ = train(table.values, settings.score, context.rng("score"), device)
    seed = int(context.rng("order").integers(2**62))
    points = OrderingPoints(table.values, settings.order, seed, device)
    return {
        name: topological_order(_finder(model, points, sign), table.n_variables)[0]
        for name, sign in SIGNS.items()
    }


def _finder(model: ScoreModel, points: OrderingPoints, sign: float) -> Callable[..., Any]:
    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Any]:
        def diagonals_at(sigma: float) -> Tensor:
            updated = _with_residue(lambda point: model.score(point[None], sigma)[0], removed, sign)
            rows = points.at(sigma, step=len(removed))
            return AutogradField(updated).diagonal(rows, sigma, remaining, absent=removed)

        return choose_leaf(points, remaining, diagonals_at)

    return find_leaf


def _with_residue(
    score: Callable[[Tensor], Tensor], removed: Sequence[int], sign: float
) -> Callable[[Tensor], Tensor]:
    """score + sign * the sum over removed leaves l of H_l s_l / H_ll."""
    if not removed or sign == 0:
        return score
    leaves = list(removed)

    def updated(point: Tensor) -> Tensor:
        values = score(point)
        rows = torch.func.jacrev(lambda at: score(at)[leaves])(point)  # H_l of each leaf, [leaves, d]
        own = rows[range(len(leaves)), leaves]  # H_ll
        return values + sign * ((values[leaves] / own)[:, None] * rows).sum(0)

    return updated
