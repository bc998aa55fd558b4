r"""L(j | P) = 2n * entropy of the leave-one-out residual of column j given the columns P, computed once each.

Twice the negative log-likelihood of a node under an additive-noise model, every prediction made without the row it
predicts, so that no penalty for flexibility is needed. Lower is better. Differences are called nats, as in the rest
of the package; they are twice those of the log-likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
        self.drawn_from = rng.bit_generator.state  # what gives the same rows again
        self.kept_rows = kept = _drawn_rows(values, self.plan.rows, rng)
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

    # ---- everything computed so far ------------------------------------------------------------

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays, for `remember`."""
        fits = list(dict.fromkeys([*self._entropies, *self._slopes]))
        members = np.zeros((len(fits), self.n_nodes + self.n_shadows), dtype=np.bool_)
        for row, fit in zip(members, fits, strict=True):
            row[list(fit.parents)] = True
        unknown = (np.nan, np.nan)
        steep = [k for k, fit in enumerate(fits) if fit in self._slopes]
        return {
            "nodes": np.array([fit.node for fit in fits], dtype=np.int64),
            "fit_kernels": np.array([fit.kernel for fit in fits], dtype=np.float64).reshape(-1, 2),
            "members": members,
            "solved": np.array([fit in self._entropies for fit in fits], dtype=np.bool_),
            "entropies": np.array([self._entropies.get(fit, unknown) for fit in fits], float).reshape(-1, 2),
            "steep": np.array(steep, dtype=np.int64),
            "slopes": np.array([self._slopes[fits[k]] for k in steep], float).reshape(-1, self.n_nodes),
            "kernels": np.array(self.kernels, dtype=np.float64),
            "gaussian": np.array([self.gaussian]),
            "n_fits": np.array([self.n_fits]),
        }

    def remember(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what another objective on the same rows has computed."""
        fits = [
            _Fit(int(node), Kernel(*kernel.tolist()), frozenset(np.flatnonzero(row).tolist()))
            for node, kernel, row in zip(
                arrays["nodes"], arrays["fit_kernels"], arrays["members"], strict=True
            )
        ]
        for fit, solved, (gauss, spacing) in zip(
            fits, arrays["solved"], arrays["entropies"].tolist(), strict=True
        ):
            if solved:
                self._entropies[fit] = (gauss, spacing)
        for k, slopes in zip(arrays["steep"].tolist(), arrays["slopes"], strict=True):
            self._slopes[fits[k]] = slopes
        self.kernels = [Kernel(*kernel) for kernel in arrays["kernels"].tolist()]
        self.gaussian, self.n_fits = bool(arrays["gaussian"][0]), int(arrays["n_fits"][0])

    # ---- computing ----------------------------------------------------------------------------

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute what is not known yet, in batches."""
        unknown = [query for query in queries if not self.knows(query)]
        fits = {self._fit_of(query): None for query in unknown}
        steep = {self._fit_of(query) for query in unknown if query.slopes}
        solved = []
        for fit in fits:
            landmarks = self._landmarks(len(fit.parents)) if fit.parents else None
            if landmarks is not None and fit not in self._entropies:
                self._record([fit], self._low_rank(fit, landmarks)[None])
            if landmarks is None or fit in steep:
                solved.append(fit)
        for batch in self._batches(solved):
            self._solve_in_parts(batch, [fit in steep for fit in batch])

    def residuals(self, parent_sets: Sequence[Parents]) -> Tensor:
        """The residuals of every node given its set, [d, n]; fitted anew at each call."""
        found = self._points[:, : self.n_nodes].T.clone()
        exact = []
        for node, parents in enumerate(parent_sets):
            fit = _Fit(node, self.kernels[node], parents)
            landmarks = self._landmarks(len(parents)) if parents else None
            if landmarks is not None:
                found[node] = self._low_rank(fit, landmarks)
            elif parents:
                exact.append(fit)
        for batch in self._batches(exact):
            _, inverses, targets = self._inverses(batch)
            found[[fit.node for fit in batch]] = leave_one_out(inverses, targets)
        return found

    def settle_entropy(self, parent_sets: Sequence[Parents]) -> None:
        """Choose between the Gaussian and the spacing entropy by the residuals at these sets, if left open."""
        if self.settings.entropy == "auto":
            self.gaussian = looks_gaussian(self.residuals(parent_sets))

    def _fit_of(self, query: Query) -> _Fit:
        return _Fit(query.node, query.kernel or self.kernels[query.node], query.parents)

    def _landmarks(self, size: int) -> int | None:
        """How many landmarks serve a set of that size; None for the exact engine."""
        sizes = self.settings.kernel_landmarks
        few = sizes[size - 1] if size <= len(sizes) else None
        if few is not None and 3 * few <= self.n_rows:
            return few
        return None if self.plan.exact else min(self.settings.max_landmarks, self.n_rows)

    def _low_rank(self, fit: _Fit, landmarks: int) -> Tensor:
        return low_rank_residuals(
            self._points[:, sorted(fit.parents)],
            self._points[:, fit.node],
            n_landmarks=landmarks,
            ridge=fit.kernel.ridge,
            interaction=fit.kernel.interaction,
            bandwidth=self.settings.kernel_bandwidth,
        )

    def _batches(self, fits: Sequence[_Fit]) -> Iterator[list[_Fit]]:
        for start in range(0, len(fits), self.plan.batch):
            yield list(fits[start : start + self.plan.batch])

    def _inverses(self, fits: Sequence[_Fit]) -> tuple[Tensor, Tensor, Tensor]:
        """K and (K + ridge I)^-1, both [fits, rows, rows], and the targets [fits, rows], on the stored rows."""
        rows = self.plan.stored_rows
        targets = self._points[:rows, [fit.node for fit in fits]].T
        kernels = targets.new_empty((len(fits), rows, rows))
        for fit, out in zip(fits, kernels, strict=True):
            self._kernels.kernel(fit.parents, fit.kernel.interaction, out)
        shifted = kernels.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(
            targets.new_tensor([fit.kernel.ridge for fit in fits])[:, None]
        )
        return kernels, inverse(shifted), targets

    def _solve_in_parts(self, fits: Sequence[_Fit], want_slopes: Sequence[bool]) -> None:
        """Solve a batch, in halves if the GPU's memory does not hold it."""
        try:
            self._solve(fits, want_slopes)
        except torch.cuda.OutOfMemoryError:
            if len(fits) == 1:
                raise
            half = len(fits) // 2
            self._solve_in_parts(fits[:half], want_slopes[:half])
            self._solve_in_parts(fits[half:], want_slopes[half:])

    def _solve(self, fits: Sequence[_Fit], want_slopes: Sequence[bool]) -> None:
        """Exact fits: residuals where this engine is the one that counts, slopes where they are wanted."""
        kernels, inverses, targets = self._inverses(fits)
        mine = [k for k, fit in enumerate(fits) if fit.parents and fit not in self._entropies]
        if mine:
            self._record([fits[k] for k in mine], leave_one_out(inverses[mine], targets[mine]))
        steep = [k for k, wanted in enumerate(want_slopes) if wanted]
        if steep:
            weights = likelihood_slope_weights(inverses[steep], targets[steep]).mul_(kernels[steep])
            slopes = self._kernels.slopes(weights, self.n_nodes).double().cpu().numpy()
            for k, row in zip(steep, slopes, strict=True):
                self._slopes[fits[k]] = 0.5 * fits[k].kernel.interaction * row

    def _record(self, fits: Sequence[_Fit], residuals: Tensor) -> None:
        both = torch.stack([gaussian_entropy(residuals), spacing_entropy(residuals)])  # [2, fits]
        for fit, gauss, spacing in zip(fits, *both.tolist(), strict=True):
            self._entropies[fit] = (gauss, spacing)
        self.n_fits += len(fits)


def _drawn_rows(values: FloatArray, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Random rows in random order: the first serve as landmarks, so they must be any rows."""
    if isinstance(
        values, np.memmap
    ):  # rows on disk lie in random order: the first are a sample, and quick to read
        return rng.permutation(count)
    return rng.permutation(len(values))[:count]


def _middle(settings: LikelihoodSettings) -> Kernel:
    """Where every node starts: the middle of what it may choose from."""
    interactions, ridges = sorted(settings.kernel_interactions), sorted(settings.kernel_ridges)
    return Kernel(interactions[len(interactions) // 2], ridges[(len(ridges) - 1) // 2])
