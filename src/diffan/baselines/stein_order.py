"""The order that SCORE and DAS share: leaves by the least variance of a Stein Hessian diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.algorithm import Eligible, topological_order
from diffan.baselines.memory import require_memory
from diffan.context import Context
from diffan.ordering.result import Ordering
from diffan.progress import Task
from diffan.score.stein import SteinEstimate, drop_column, pairwise_squares, stein_bytes
from diffan.table import Table

ParentTest = Callable[[Tensor, Tensor], npt.NDArray[np.bool_]]
"""From the leaf's Hessian row over the other nodes and their values, both [n, k], to its likely parents, [k]."""


def order_by_stein(
    table: Table, context: Context, *, method: str, ridge: float, test_parents: ParentTest | None
) -> Ordering:
    """Peel leaves off with a new Stein estimate at every step; each leaf's parents are tested as it goes."""
    device = context.torch_device()
    require_memory(method, stein_bytes, table.n_samples, device)
    start = perf_counter()
    with context.progress.task(method, total=table.n_variables - 1) as task:
        eligible = context.rules(table.n_variables).leaves_among
        finder = _LeafFinder(table, device, ridge, test_parents, eligible, task)
        order, evidence = topological_order(finder, table.n_variables)  # the finder asks who is eligible
    return Ordering(
        order=order,
        evidence=evidence,
        candidates=None if test_parents is None else finder.candidates,
        timings={"order": perf_counter() - start},
    )


class RemainingColumns:
    """The columns still in play and the squared distances between rows over them alone."""

    def __init__(self, table: Table, device: torch.device) -> None:
        self._points = torch.tensor(table.values, dtype=torch.float64, device=device)  # [n, d]
        self._columns = list(range(table.n_variables))
        self.squared_distances = pairwise_squares(self._points)  # [n, n]

    def shrink_to(self, remaining: Sequence[int]) -> Tensor:
        """Forget the columns that are gone; returns those that remain, [n, k]."""
        for column in set(self._columns) - set(remaining):
            drop_column(self.squared_distances, self._points[:, column])
        self._columns = list(remaining)
        return self._points[:, self._columns]


class _LeafFinder:
    def __init__(
        self,
        table: Table,
        device: torch.device,
        ridge: float,
        test_parents: ParentTest | None,
        eligible: Eligible,
        task: Task,
    ) -> None:
        self._columns = RemainingColumns(table, device)
        self._ridge = ridge
        self._test_parents = test_parents
        self._eligible = eligible
        self._task = task
        self.candidates = np.zeros((table.n_variables, table.n_variables), dtype=np.bool_)

    def __call__(
        self, remaining: Sequence[int], removed: Sequence[int]
    ) -> tuple[int, npt.NDArray[np.float64]]:
        points = self._columns.shrink_to(remaining)
        estimate = SteinEstimate(points, ridge=self._ridge, squared_distances=self._columns.squared_distances)
        variances = estimate.hessian_diagonal().var(dim=0).cpu().numpy()
        places = [remaining.index(node) for node in self._eligible(remaining)]
        place = min(places, key=lambda k: variances[k])
        leaf = remaining[place]
        if self._test_parents is not None:
            others = [k for k in range(len(remaining)) if k != place]
            kept = self._test_parents(estimate.hessian_row(place)[:, others], points[:, others])
            self.candidates[[remaining[k] for k, keep in zip(others, kept, strict=True) if keep], leaf] = True
        self._task.advance()
        return leaf, variances


def strong_parents(
    row: Tensor, others: Tensor, *, cutoff: float, min_parents: int, max_parents: int
) -> npt.NDArray[np.bool_]:
    """Which nodes the leaf's score reacts to: those where the mean of d s_leaf / d x_j is not zero.

    The derivative vanishes for every node that is no parent. Its mean also vanishes for a parent with an even
    mechanism, such as a square, so the mean is tested below and above the median of x_j by Student's t and the
    smaller p-value counts twice. The strongest `min_parents` pass untested, at most `max_parents` in all.
    """
    upper = others > others.median(dim=0).values  # [n, k]
    below, p_below = _mean_and_p_value(row, ~upper)
    above, p_above = _mean_and_p_value(row, upper)
    p_value = 2 * np.minimum(p_below, p_above)
    rank = np.argsort(np.argsort(-(below**2 + above**2), kind="stable"), kind="stable")  # 0 for the strongest
    kept: npt.NDArray[np.bool_] = (rank < min_parents) | (p_value < cutoff)
    return kept & (rank < max_parents)


def _mean_and_p_value(row: Tensor, rows: Tensor) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Each column's mean over its chosen rows and the p-value of its being zero; an empty choice has p-value 1."""
    from scipy.stats import t as student

    count = rows.sum(dim=0).clamp(min=2)
    mean = (row * rows).sum(dim=0) / count
    variance = ((row - mean).square() * rows).sum(dim=0) / (count - 1)
    t_value = mean.abs() / (variance / count).sqrt().clamp(min=1e-300)
    return mean.cpu().numpy(), 2 * student.sf(t_value.cpu().numpy(), count.cpu().numpy() - 1)
