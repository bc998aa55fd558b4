"""NoGAM (Montagna et al. 2023): a leaf's score is a function of its own residual, whatever the noise.

For a leaf l of an additive-noise model s_l = (log p_noise)'(x_l - f_l(parents)). So regress every variable on all
others, predict its score from the residual of that regression, and take the variable whose score is predicted with
the least error. Nothing here asks for Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.algorithm import topological_order
from diffan.baselines.checks import require_number, require_whole
from diffan.baselines.kernel_regression import landmark_rows, leave_one_out
from diffan.baselines.memory import require_memory
from diffan.baselines.stein_order import RemainingColumns
from diffan.context import Context
from diffan.ordering.result import Ordering
from diffan.score.stein import SteinEstimate, median_square, pairwise_squares, stein_bytes
from diffan.table import Table

_BATCH_BYTES = 64e6  # kernels of the regressions held at once
_RESIDUAL_LANDMARKS = 64  # a kernel of one variable has fewer than 30 directions above rounding error


@dataclass(frozen=True, kw_only=True)
class NogamOptions:
    """How NoGAM estimates the score and the two regressions it compares it with."""

    ridge: float = 0.001  # as SCORE
    residual_ridge: float = 0.01  # as the authors' practice; 0.01 to 0.3 measured alike on tuning sets
    score_ridge: float = 0.01  # as the authors' practice
    landmarks: int = (
        200  # choice: rows the regression on the other variables looks at; n for exact kernel ridge
    )

    def __post_init__(self) -> None:
        for name in ("ridge", "residual_ridge", "score_ridge"):
            require_number(self, name, above=0)
        require_whole(self, "landmarks", least=10)


def find_order(table: Table, options: NogamOptions, context: Context) -> Ordering:
    """Order the columns by NoGAM; both regressions predict every row from all other rows."""
    device = context.torch_device()
    require_memory("NoGAM", stein_bytes, table.n_samples, device)
    start = perf_counter()
    columns = RemainingColumns(table, device)
    with context.progress.task("NoGAM", total=table.n_variables - 1) as task:

        def find_leaf(
            remaining: Sequence[int], removed: Sequence[int]
        ) -> tuple[int, npt.NDArray[np.float64]]:
            points, squares = columns.shrink_to(remaining), columns.squared_distances
            score = SteinEstimate(points, ridge=options.ridge, squared_distances=squares).score
            errors = prediction_errors(points, squares, score, options).cpu().numpy()
            task.advance()
            return remaining[int(errors.argmin())], errors

        order, evidence = topological_order(
            find_leaf, table.n_variables, context.rules(table.n_variables).leaves_among
        )
    return Ordering(order=order, evidence=evidence, timings={"order": perf_counter() - start})


def prediction_errors(points: Tensor, squares: Tensor, score: Tensor, options: NogamOptions) -> Tensor:
    """Mean squared error of predicting each score component from its own residual: [k]."""
    n, k = points.shape
    rows = landmark_rows(n, options.landmarks, points.device)
    shared = squares[:, rows]  # [n, m], over all columns
    width = median_square(squares[rows][:, rows]) * (k - 1) / k  # one column is left out of every regression
    batch = max(1, int(_BATCH_BYTES // (8 * shared.numel())))
    errors = []
    for first in range(0, k, batch):
        block = slice(first, first + batch)
        own = points[:, block].T  # [b, n]
        others = shared - (own[:, :, None] - own[:, None, rows]).square()  # [b, n, m]
        kernel = torch.exp(others.clamp_(min=0) * (-0.5 / width))
        residual = leave_one_out(kernel, rows, own, options.residual_ridge)  # [b, n]
        unexplained = _leave_one_out_of_one(residual, score[:, block].T, options.score_ridge)
        errors.append(unexplained.square().mean(dim=1))
    return torch.cat(errors)


def _leave_one_out_of_one(residual: Tensor, targets: Tensor, ridge: float) -> Tensor:
    """Leave-one-out residuals of regressing each target on one variable, both [b, n]."""
    rows = landmark_rows(residual.shape[1], _RESIDUAL_LANDMARKS, residual.device)
    return leave_one_out(_median_kernel(residual, rows), rows, targets, ridge)


def _median_kernel(residual: Tensor, rows: Tensor) -> Tensor:
    """A Gaussian kernel of each residual at the landmark rows, as wide as its median distance: [b, n, m]."""
    medians = [median_square(pairwise_squares(one[rows, None])) for one in residual]
    widths = torch.tensor(medians, dtype=residual.dtype, device=residual.device)
    apart = (residual[:, :, None] - residual[:, None, rows]).square()
    return torch.exp(apart * (-0.5 / widths[:, None, None]))
