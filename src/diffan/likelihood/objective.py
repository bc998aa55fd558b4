r"""L(j | P) = 2n * entropy of the leave-one-out residual of column j given the columns P, computed once each.

Twice the negative log-likelihood of a node under an additive-noise model, every prediction made without the row it
predicts, so that no penalty for flexibility is needed. Lower is better. Differences are called nats, as in the rest
of the package; they are twice those of the log-likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.errors import InputError
from diffan.likelihood.entropy import gaussian_entropy, looks_gaussian, spacing_entropy
from diffan.likelihood.exact import inverse, leave_one_out, likelihood_slope_weights
from diffan.likelihood.kernel import ColumnKernels
from diffan.likelihood.low_rank import low_rank_residuals
from diffan.likelihood.plan import Plan, plan_for
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.workers import map_on_cores

FloatArray = npt.NDArray[np.float64]
Parents = frozenset[int]
NOBODY: Parents = frozenset()
MIN_ROWS = 10


class Kernel(NamedTuple):
    """What a node's regression may choose: how joint its function is and how much of it is noise."""

    interaction: float
    ridge: float


@dataclass(frozen=True)
class Query:
    """A fit that is wanted: its objective, and its slopes towards every further column if asked for."""

    node: int
    parents: Parents
    slopes: bool = False
    kernel: Kernel | None = None  # None: the node's own


class _Fit(NamedTuple):
    node: int
    kernel: Kernel
    parents: Parents


_Computed = tuple[list[_Fit], Tensor, dict[_Fit, FloatArray]]
"""Fits, their residuals [fits, rows], and slopes for those that wanted them."""


class Objective:
    """The objective over one table, with everything computed kept."""

    def __init__(
        self,
        values: FloatArray,
        *,
        settings: LikelihoodSettings,
        device: torch.device,
        rng: np.random.Generator,
        max_rows: int | None = None,
        n_shadows: int = 0,
    ) -> None:
        """`n_shadows` shuffled copies of columns follow the real ones, as parents that cannot matter."""
        n, d = values.shape
        if n < MIN_ROWS:
            raise InputError(f"The likelihood needs at least {MIN_ROWS} rows. Got {n} instead.")
        self.n_nodes, self.n_shadows, self.settings = d, n_shadows, settings
        self.plan: Plan = plan_for(min(n, max_rows or n), d + n_shadows, device, settings)
        kept = rng.permutation(n)[: self.plan.rows]  # any rows, because the first ones serve as landmarks
        self.kept_rows = kept
        shadows = [rng.permutation(values[kept, k % d]) for k in range(n_shadows)]
        columns = np.column_stack([values[kept], *shadows])
        self._points = torch.tensor(columns, dtype=torch.float32, device=device)  # [n, d + shadows]
        self._kernels = ColumnKernels(self._points[: self.plan.stored_rows], settings.kernel_bandwidth)
        self._entropies: dict[_Fit, tuple[float, float]] = {}
        self._slopes: dict[_Fit, FloatArray] = {}
        self.kernels = [_middle(settings)] * d
        self.gaussian = settings.entropy != "spacing"
        self.n_fits = 0
        alone = self._points[:, :d].T
        self._alone = torch.stack([gaussian_entropy(alone), spacing_entropy(alone)]).tolist()  # [2][d]

    @property
    def n_rows(self) -> int:
        return self.plan.rows

    # ---- answers, once prepared -------------------------------------------------------------

    def value(self, node: int, parents: Parents, kernel: Kernel | None = None) -> float:
        """L(node | parents); `prepare` must have seen the query. Without parents, from the column as it is."""
        if parents:
            gauss, spacing = self._entropies[self._fit_of(Query(node, parents, kernel=kernel))]
        else:
            gauss, spacing = self._alone[0][node], self._alone[1][node]
        return 2.0 * self.n_rows * (gauss if self.gaussian else spacing)

    def slopes(self, node: int, parents: Parents) -> FloatArray:
        """The slope of the Gaussian log-likelihood as each column enters the kernel, [d].

        It ranks candidates: steep upwards is promising. For a column that is a parent already it tells how
        much the fit leans on it.
        """
        return self._slopes[_Fit(node, self.kernels[node], parents)]

    def knows(self, query: Query) -> bool:
        fit = self._fit_of(query)
        return (not query.slopes or fit in self._slopes) and (not query.parents or fit in self._entropies)

    # ---- computing ----------------------------------------------------------------------------

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute what is not known yet: side by side on the cores, or in batches on a GPU."""
        unknown = [query for query in queries if not self.knows(query)]
        fits = list({self._fit_of(query): None for query in unknown})
        steep = {self._fit_of(query) for query in unknown if query.slopes}
        for batch, residuals, slopes in self._compute([(fit, fit in steep) for fit in fits]):
            self._record(batch, residuals)
            self._slopes.update(slopes)

    def residuals(self, parent_sets: Sequence[Parents]) -> Tensor:
        """The residuals of every node given its set, [d, n]; fitted anew at each call."""
        found = self._points[:, : self.n_nodes].T.clone()
        fits = [
            _Fit(node, self.kernels[node], parents) for node, parents in enumerate(parent_sets) if parents
        ]
        for batch, residuals, _ in self._compute([(fit, False) for fit in fits]):
            found[[fit.node for fit in batch]] = residuals
        return found

    def settle_entropy(self, parent_sets: Sequence[Parents]) -> None:
        """Choose between the Gaussian and the spacing entropy by the residuals at these sets, if left open."""
        if self.settings.entropy == "auto":
            self.gaussian = looks_gaussian(self.residuals(parent_sets))

    def _fit_of(self, query: Query) -> _Fit:
        return _Fit(query.node, query.kernel or self.kernels[query.node], query.parents)

    def _compute(self, wanted: Sequence[tuple[_Fit, bool]]) -> Iterable[_Computed]:
        """Fits with their residuals, and with their slopes where those are wanted."""
        if self._points.device.type == "cpu":
            return map_on_cores(lambda one: self._fit_alone(*one), wanted)
        direct = [one for one in wanted if self._landmarks(len(one[0].parents)) is None]
        batches = (direct[k : k + self.plan.batch] for k in range(0, len(direct), self.plan.batch))
        rest = (one for one in wanted if self._landmarks(len(one[0].parents)) is not None)
        return chain((self._solve(batch) for batch in batches), (self._fit_alone(*one) for one in rest))

    def _fit_alone(self, fit: _Fit, want_slopes: bool) -> _Computed:
        landmarks = self._landmarks(len(fit.parents))
        if landmarks is None:
            return self._solve([(fit, want_slopes)])
        residuals = low_rank_residuals(
            self._points[:, sorted(fit.parents)],
            self._points[:, fit.node],
            n_landmarks=landmarks,
            ridge=fit.kernel.ridge,
            interaction=fit.kernel.interaction,
            bandwidth=self.settings.kernel_bandwidth,
        )
        return [fit], residuals[None], self._solve([(fit, True)])[2] if want_slopes else {}

    def _landmarks(self, size: int) -> int | None:
        """How many landmarks serve a set of that size; None for the exact engine."""
        if size == 0 or (self.plan.exact and self._points.device.type != "cpu"):
            return None
        sizes = self.settings.landmarks
        few = sizes[size - 1] if size <= len(sizes) else None
        if few is not None and 3 * few <= self.n_rows:
            return few
        return None if self.plan.exact else min(self.settings.max_landmarks, self.n_rows)

    def _solve(self, wanted: Sequence[tuple[_Fit, bool]]) -> _Computed:
        """Exact fits on the stored rows, all at once: residuals [fits, rows], slopes where wanted."""
        fits = [fit for fit, _ in wanted]
        rows = self.plan.stored_rows
        targets = self._points[:rows, [fit.node for fit in fits]].T  # [fits, rows]
        kernels = targets.new_empty((len(fits), rows, rows))
        for fit, out in zip(fits, kernels, strict=True):
            self._kernels.kernel(fit.parents, fit.kernel.interaction, out)
        steep = [k for k, (_, slopes) in enumerate(wanted) if slopes]
        untouched = kernels[steep]  # a copy
        kernels.diagonal(dim1=-2, dim2=-1).add_(
            targets.new_tensor([fit.kernel.ridge for fit in fits])[:, None]
        )
        inverses = inverse(kernels)
        residuals = leave_one_out(inverses, targets)
        if not steep:
            return fits, residuals, {}
        part = inverses if len(steep) == len(fits) else inverses[steep]
        weights = likelihood_slope_weights(part, targets[steep]).mul_(untouched)
        found = self._kernels.slopes(weights, self.n_nodes).double().cpu().numpy()
        slopes = {
            fits[k]: 0.5 * fits[k].kernel.interaction * row for k, row in zip(steep, found, strict=True)
        }
        return fits, residuals, slopes

    def _record(self, fits: Sequence[_Fit], residuals: Tensor) -> None:
        both = torch.stack([gaussian_entropy(residuals), spacing_entropy(residuals)])  # [2, fits]
        for fit, gauss, spacing in zip(fits, *both.tolist(), strict=True):
            self._entropies[fit] = (gauss, spacing)
        self.n_fits += len(fits)


def _middle(settings: LikelihoodSettings) -> Kernel:
    """Where every node starts: the middle of what it may choose from."""
    interactions, ridges = sorted(settings.kernel_interactions), sorted(settings.kernel_ridges)
    return Kernel(interactions[len(interactions) // 2], ridges[(len(ridges) - 1) // 2])
