r"""L(j | P) = 2n * entropy of the leave-one-out residual of column j given the columns P, computed once each.

Twice the negative log-likelihood of a node under an additive-noise model, every prediction made without the row it
predicts, so that no penalty for flexibility is needed. Lower is better. Differences are called nats, as in the rest
of the package; they are twice those of the log-likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from diffan.errors import InputError
from diffan.likelihood.engine import Columns, Wanted, solve
from diffan.likelihood.entropy import passes_for_gaussian, statistics_of
from diffan.likelihood.fits import Fit, Kernel, Parents, Query
from diffan.likelihood.plan import Plan, plan_for
from diffan.likelihood.settings import LikelihoodSettings

FloatArray = npt.NDArray[np.float64]
Statistics = tuple[float, float, float, float]
"""Of a fit's residuals: Gaussian entropy, spacing entropy, skewness, excess kurtosis."""
Key = tuple[int, Kernel, Parents]
"""A `Fit`, or a plain tuple that equals it: looked up ten thousand times a run, and much faster made."""
MIN_ROWS = 10


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
        threads: int = 1,
        scale: FloatArray | None = None,
    ) -> None:
        """`n_shadows` shuffled copies of columns follow the real ones, as parents that cannot matter.

        `scale` divides values that are not in standard deviations already: bandwidths are.
        """
        n, d = values.shape
        if n < MIN_ROWS:
            raise InputError(f"The likelihood needs at least {MIN_ROWS} rows. Got {n} instead.")
        self.n_nodes, self.n_shadows, self.settings = d, n_shadows, settings
        self.plan: Plan = plan_for(min(n, max_rows or n), d + n_shadows, device, settings)
        self.drawn_from = rng.bit_generator.state  # what gives the same rows again
        self.kept_rows = kept = _drawn_rows(values, self.plan.rows, rng)
        used = values[kept] if scale is None else values[kept] / scale
        shadows = [rng.permutation(used[:, k % d]) for k in range(n_shadows)]
        columns = np.column_stack([used, *shadows])
        rows = torch.tensor(columns, dtype=torch.float32, device=device)  # [n, d + shadows]
        self.columns = Columns(rows, d, self.plan, settings.kernel_bandwidths)
        self.threads = threads
        self._landmarks = [self._landmarks_for(size) for size in range(d + n_shadows + 1)]
        self._statistics: dict[Key, Statistics] = {}
        self._slopes: dict[Key, list[float]] = {}
        self._weights: dict[tuple[int, Parents], list[float]] = {}
        self._residuals: dict[Key, FloatArray] = {}
        self.values = used
        self.kernels = [_middle(settings)] * d
        self.ready = _middle(settings)  # of a node without parents
        self.gaussian = settings.entropy != "spacing"
        self.n_fits = 0
        self._alone: list[Statistics] = statistics_of(self.columns.points[:d]).tolist()

    @property
    def n_rows(self) -> int:
        return self.plan.rows

    # ---- answers, once prepared -------------------------------------------------------------

    def value(self, node: int, parents: Parents, kernel: Kernel | None = None) -> float:
        """L(node | parents); `prepare` must have seen the query. Without parents, from the column as it is."""
        return 2.0 * self.plan.rows * self._found(node, parents, kernel)[0 if self.gaussian else 1]

    def slopes(self, node: int, parents: Parents) -> list[float]:
        """The slope of the Gaussian log-likelihood as each column enters the kernel, [d].

        It ranks candidates: steep upwards is promising. For a column that is a parent already it tells how
        much the fit leans on it.
        """
        return self._slopes[node, self.kernels[node], parents]

    def weights(self, node: int, candidates: Parents) -> list[float]:
        """What a relaxation makes of the candidates, [d]; heavy is promising."""
        return self._weights[node, candidates]

    def residuals(self, node: int, parents: Parents) -> FloatArray:
        """Of the node's regression, [n]; without parents the column as it is."""
        if not parents:
            return self.values[:, node]
        return self._residuals[node, self.kernels[node], parents]

    def forget_residuals(self) -> None:
        """They take room, and whoever goes on from a checkpoint does not have them."""
        self._residuals.clear()

    def knows(self, query: Query) -> bool:
        node, parents, slopes, kernel, weights, kept = query
        if weights:
            return (node, parents) in self._weights
        fit = (node, kernel or self.kernels[node], parents)
        if kept and parents and fit not in self._residuals:
            return False
        return (not slopes or fit in self._slopes) and (not parents or fit in self._statistics)

    def _found(self, node: int, parents: Parents, kernel: Kernel | None = None) -> Statistics:
        if not parents:
            return self._alone[node]
        return self._statistics[node, kernel or self.kernels[node], parents]

    # ---- everything computed so far ------------------------------------------------------------

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays, for `remember`."""
        fits = [Fit(*key) for key in dict.fromkeys([*self._statistics, *self._slopes])]
        members = np.zeros((len(fits), self.n_nodes + self.n_shadows), dtype=np.bool_)
        for row, fit in zip(members, fits, strict=True):
            row[list(fit.parents)] = True
        unknown = (np.nan,) * 4
        steep = [k for k, fit in enumerate(fits) if fit in self._slopes]
        weighed = np.zeros((len(self._weights), self.n_nodes), dtype=np.bool_)
        for row, (_, candidates) in zip(weighed, self._weights, strict=True):
            row[list(candidates)] = True
        return {
            "nodes": np.array([fit.node for fit in fits], dtype=np.int64),
            "fit_kernels": np.array([fit.kernel for fit in fits], dtype=np.float64).reshape(
                -1, len(Kernel._fields)
            ),
            "members": members,
            "solved": np.array([fit in self._statistics for fit in fits], dtype=np.bool_),
            "statistics": np.array([self._statistics.get(fit, unknown) for fit in fits], float).reshape(
                -1, 4
            ),
            "steep": np.array(steep, dtype=np.int64),
            "slopes": np.array([self._slopes[fits[k]] for k in steep], float).reshape(-1, self.n_nodes),
            "weighed_nodes": np.array([node for node, _ in self._weights], dtype=np.int64),
            "weighed": weighed,
            "weights": np.array(list(self._weights.values()), float).reshape(-1, self.n_nodes),
            "kernels": np.array([*self.kernels, self.ready], dtype=np.float64),
            "gaussian": np.array([self.gaussian]),
            "n_fits": np.array([self.n_fits]),
        }

    def remember(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what another objective on the same rows has computed."""
        fits = [
            Fit(int(node), Kernel(*kernel.tolist()), frozenset(np.flatnonzero(row).tolist()))
            for node, kernel, row in zip(
                arrays["nodes"], arrays["fit_kernels"], arrays["members"], strict=True
            )
        ]
        for fit, solved, found in zip(fits, arrays["solved"], arrays["statistics"].tolist(), strict=True):
            if solved:
                self._statistics[fit] = tuple(found)
        for k, slopes in zip(arrays["steep"].tolist(), arrays["slopes"].tolist(), strict=True):
            self._slopes[fits[k]] = slopes
        weighed = (arrays[name].tolist() for name in ("weighed_nodes", "weights"))
        for row, node, weights in zip(arrays["weighed"], *weighed, strict=True):
            self._weights[node, frozenset(np.flatnonzero(row).tolist())] = weights
        *self.kernels, self.ready = (Kernel(*kernel) for kernel in arrays["kernels"].tolist())
        self.gaussian, self.n_fits = bool(arrays["gaussian"][0]), int(arrays["n_fits"][0])

    # ---- computing ----------------------------------------------------------------------------

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute what is not known yet, in batches."""
        prepare_together([(self, queries)])

    def missing(self, queries: Iterable[Query]) -> list[Wanted]:
        """What is not known yet of these, each fit once."""
        steep: dict[Key, bool] = {}
        to_keep: set[Key] = set()
        weighed: dict[tuple[int, Parents], None] = {}
        for query in queries:
            if not self.knows(query):
                node, parents, slopes, kernel, weights, kept = query
                if weights:
                    weighed[node, parents] = None
                else:
                    key = (node, kernel or self.kernels[node], parents)
                    steep[key] = slopes or steep.get(key, False)
                    if kept:
                        to_keep.add(key)
        fits = [
            self._wanted(
                Fit(*key),
                bool(key[2]) and (key in to_keep or key not in self._statistics),
                slopes,
                key in to_keep,
            )
            for key, slopes in steep.items()
        ]
        return fits + [
            Wanted(self.columns, Fit(node, self.kernels[node], candidates), None, weights=True)
            for node, candidates in weighed
        ]

    def take(
        self, want: Wanted, statistics: Statistics, ranks: list[float] | None, residuals: FloatArray | None
    ) -> None:
        """Keep what was computed."""
        if want.residuals:
            self._statistics[want.fit] = statistics
            self.n_fits += 1
        if residuals is not None:
            self._residuals[want.fit] = residuals
        if want.weights and ranks is not None:
            self._weights[want.fit.node, want.fit.parents] = ranks
        elif ranks is not None:
            self._slopes[want.fit] = ranks

    def settle_entropy(self, parent_sets: Sequence[Parents]) -> None:
        """Choose between the Gaussian and the spacing entropy by the fits of these sets, if left open."""
        if self.settings.entropy == "auto":
            found = torch.tensor([self._found(node, parents) for node, parents in enumerate(parent_sets)])
            self.gaussian = passes_for_gaussian(found[:, 2], found[:, 3])

    def _wanted(self, fit: Fit, residuals: bool, slopes: bool, kept: bool = False) -> Wanted:
        return Wanted(self.columns, fit, self._landmarks[len(fit.parents)], residuals, slopes, kept=kept)

    def _landmarks_for(self, size: int) -> int | None:
        """How many landmarks serve a set of that size; None for the exact engine."""
        sizes = self.settings.kernel_landmarks
        few = sizes[size - 1] if 0 < size <= len(sizes) else None
        if few is not None and 3 * few <= self.n_rows:
            return few
        return None if self.plan.exact else min(self.settings.max_landmarks, self.n_rows)


def prepare_together(asked: Iterable[tuple[Objective, Iterable[Query]]]) -> None:
    """Solve what several objectives over as many rows do not know yet, in shared batches."""
    owners, wanted = list[Objective](), list[Wanted]()
    for objective, queries in asked:
        missing = objective.missing(queries)
        wanted += missing
        owners += [objective] * len(missing)
    if not wanted:
        return
    statistics, ranks, kept = solve(wanted, owners[0].threads)
    for objective, want, found, ranked, residuals in zip(
        owners, wanted, statistics.tolist(), ranks, kept, strict=True
    ):
        objective.take(want, tuple(found), ranked, residuals)


def _drawn_rows(values: FloatArray, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Random rows in random order: the first serve as landmarks, so they must be any rows."""
    if isinstance(
        values, np.memmap
    ):  # rows on disk lie in random order: the first are a sample, and quick to read
        return rng.permutation(count)
    return rng.permutation(len(values))[:count]


def _middle(settings: LikelihoodSettings) -> Kernel:
    """Where every node starts: the middle of what it may choose from, the smoothest bandwidth."""
    interactions, ridges = sorted(settings.kernel_interactions), sorted(settings.kernel_ridges)
    return Kernel(
        interactions[len(interactions) // 2],
        ridges[(len(ridges) - 1) // 2],
        max(settings.kernel_bandwidths),
        min(settings.kernel_lines),
    )
