"""Penalised additive regressions of one column on others, from the Gram matrix alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.additive.criterion import (
    EPSILON,
    FIRST_SHARE,
    LOOSEST_SHARE,
    SHARE_GRID,
    Solution,
    derivatives,
    first_shares,
    solve,
)
from diffan.additive.gram import SplineGram
from diffan.additive.nested import NestedSolver
from diffan.additive.newton import minimise
from diffan.additive.system import RIDGE, Layout, layout, numpy_system, summarise
from diffan.errors import InputError

Array = npt.NDArray[np.float64]
Regression = tuple[int, tuple[int, ...]]  # the target column and its parents

WORTH_THREADS = 500  # coefficients from which LAPACK may use several threads
TOLERANCE = 1e-3  # in the log score, where 2 is one edf: p-values then change by less than a percent


@dataclass(frozen=True, eq=False)
class NodeFit:
    """One column as a sum of smooth functions of its parents, plus noise; arrays follow `parents`."""

    target: int
    parents: tuple[int, ...]
    coefficients: Array  # [m, width], in the Gram's orthonormal functions and the table's units
    covariances: Array  # [m, width, width]: the Bayesian covariance of each term's coefficients
    widths: npt.NDArray[np.intp]  # [m]: how many functions each term has
    smoothing: Array  # [m]: lambda of the second-derivative penalty; 0 for a term that is a line only
    edf: Array  # [m]: effective degrees of freedom
    test_rank: Array  # [m]: the edf that Wood's test takes as rank, 2 tr F - tr FF
    deviance_explained: Array  # [m]: share of the variance lost when the term is dropped, smoothing held
    inflation: (
        Array  # [m]: variance inflation of the straight part; large when others nearly repeat the column
    )
    r2: float
    residual_variance: float
    residual_df: float
    noise_variance: (
        float  # unbiased: from the fit with hardly any penalty, whose functions were not chosen by the data
    )
    noise_df: float
    gcv: float  # n log(residual share) - 2 n log(residual df): lower is better
    log_likelihood: float  # Gaussian, at its maximum
    ridge: float
    n_rows: float

    @property
    def is_weak(self) -> bool:
        """Whether there were too many coefficients for the rows, so that a ridge had to help."""
        return self.ridge > RIDGE


def fit_node(gram: SplineGram, target: int, parents: Sequence[int]) -> NodeFit:
    """Regress one column on others, each with its own smoothing parameter, at a cost that does not depend on n."""
    return next(fit_nodes(gram, [(target, tuple(parents))]))


def fit_nodes(
    gram: SplineGram, regressions: Sequence[Regression], *, device: str = "cpu"
) -> Iterator[NodeFit]:
    """Many regressions, in the order given; on a CUDA `device` batched by size."""
    for target, parents in regressions:
        _check(gram, target, parents)
    if device == "cpu":
        return _fit_in_turn(gram, regressions)
    from diffan.additive.batched import fit_batches

    return fit_batches(gram, regressions, device)


def _fit_in_turn(gram: SplineGram, regressions: Sequence[Regression]) -> Iterator[NodeFit]:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    threads = ThreadpoolController()
    solvers = NestedSolver(FIRST_SHARE), NestedSolver(LOOSEST_SHARE)
    for regression in regressions:
        # On small matrices threads cost more than they bring, and ten times more on a busy machine.
        small = len(regression[1]) * gram.width < WORTH_THREADS
        with threads.limit(limits=1 if small else None, user_api="blas"):
            fit = _fit_alone(gram, regression, *solvers)
        yield fit


def _fit_alone(
    gram: SplineGram, regression: Regression, first: NestedSolver, loosest: NestedSolver
) -> NodeFit:
    place = layout(gram, *regression)
    system = numpy_system(gram, place)
    at, loose = first.solution(system, place), loosest.solution(system, place)
    share = np.full((1, len(place.index)), FIRST_SHARE)
    solved: dict[bytes, Solution] = {}

    def evaluate(_: npt.NDArray[np.intp], trial: Array) -> tuple[Array, Array, Array]:
        solved.clear()
        last = solved[trial.tobytes()] = solve(system, trial)
        return last.score, *derivatives(system, trial, last)

    if regression[1]:
        share = minimise(first_shares(system, at, SHARE_GRID), evaluate, edge=EPSILON, tolerance=TOLERANCE)
        at = solved.get(share.tobytes()) or solve(system, share)
    parts = {name: part[0] for name, part in summarise(system, at, loose).items()}
    return node_fit(gram, regression, place, share[0], parts)


def node_fit(
    gram: SplineGram, regression: Regression, place: Layout, share: Array, parts: Mapping[str, Array]
) -> NodeFit:
    """One solved regression as a value; `parts` is what `summarise` says of it."""
    terms, width = place.index.shape
    n, unit = gram.n_rows, _standard_deviation(gram, regression[0])
    coefficients = parts["coefficients"][:terms, :width]
    blocks = parts["blocks"][:terms, :width, :width]
    edf = parts["edf"][:terms]
    rss = float(parts["rss"])
    residual_df = max(n - 1 - float(edf.sum()), 1.0)
    noise_df = max(n - 1 - float(parts["noise_edf"]), 1.0)
    variance = rss * n / residual_df * unit**2
    share, curved = share[:terms], (place.penalties > 0).any(axis=1)
    return NodeFit(
        target=regression[0],
        parents=tuple(regression[1]),
        coefficients=coefficients * unit,
        covariances=blocks * (variance / n),
        widths=place.valid.sum(axis=1),
        smoothing=np.where(curved, (1 - share) / share / place.scale, 0.0),
        edf=edf,
        test_rank=parts["rank"][:terms],
        deviance_explained=_lost_without(coefficients, blocks, place.valid),
        inflation=blocks[:, 0, 0],
        r2=float(np.clip(1 - rss, 0.0, 1.0)),
        residual_variance=variance,
        residual_df=residual_df,
        noise_variance=float(parts["noise"]) * n / noise_df * unit**2,
        noise_df=noise_df,
        gcv=float(parts["score"]),
        log_likelihood=float(-n / 2 * (np.log(2 * np.pi * max(rss * unit**2, 1e-300)) + 1)),
        ridge=place.ridge,
        n_rows=n,
    )


def term_effect(gram: SplineGram, fit: NodeFit, parent: int, grid: npt.ArrayLike) -> tuple[Array, Array]:
    """The fitted function of one parent at the grid's values, and its standard error, both in the table's units."""
    if parent not in fit.parents:
        raise InputError(f"Column {parent} is not a parent in this fit; its parents are {list(fit.parents)}.")
    term = fit.parents.index(parent)
    functions = gram.bases[parent].evaluate(np.asarray(grid, dtype=np.float64))  # [grid, width]
    width = int(fit.widths[term])
    functions = functions[:, :width]
    covariance = fit.covariances[term, :width, :width]
    variance = np.einsum("gw,wv,gv->g", functions, covariance, functions)
    return functions @ fit.coefficients[term, :width], np.sqrt(np.maximum(variance, 0.0))


def _lost_without(coefficients: Array, blocks: Array, valid: npt.NDArray[np.bool_]) -> Array:
    """How much of b' A^-1 b each term carries: beta_k' (block k of A^-1)^-1 beta_k."""
    filled = blocks + np.eye(blocks.shape[-1]) * ~valid[:, :, None]
    solved = np.linalg.solve(filled, coefficients[..., None])[..., 0]
    lost: Array = (coefficients * solved).sum(axis=1)
    return lost.clip(0.0, 1.0)


def _standard_deviation(gram: SplineGram, column: int) -> float:
    """Of the clipped column: 1 over the slope of its straight function."""
    slopes = gram.bases[column].coefficients[2]
    return float(1 / slopes[0, 0]) if slopes.shape[1] else 0.0


def _check(gram: SplineGram, target: int, parents: Sequence[int]) -> None:
    columns = (target, *parents)
    if not all(0 <= c < gram.n_columns for c in columns) or len(set(columns)) != len(columns):
        raise InputError(
            f"A regression needs a target and parents among columns 0 to {gram.n_columns - 1}, each at most once. "
            f"Got target {target} and parents {list(parents)} instead."
        )
