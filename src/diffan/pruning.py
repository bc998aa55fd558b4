"""From an order to edges: test every earlier column as a cause in an additive regression (CAM pruning, without R).

A node is regressed on all its candidates at once, each through a smooth function; a candidate is kept when Wood's test
of its function gives a small p-value. Smoothing is by generalised cross-validation, as in mgcv's default, because it
decides like mgcv and finds weak wiggly effects that REML smooths away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from diffan.additive.cutoff import adaptive_cutoff, fdr_cutoff
from diffan.additive.fit import NodeFit, fit_nodes
from diffan.additive.gram import SplineGram
from diffan.additive.neighbours import neighbour_mask, selection_df
from diffan.additive.spread import fit_nodes_elsewhere
from diffan.additive.term_test import wald_test
from diffan.constraints import earlier
from diffan.context import Context
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.mapped import MappedTable
from diffan.streaming import read_table
from diffan.table import Table

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
CutoffRule = Literal["fixed", "fdr", "adaptive"]

COLLINEAR = 1e4  # variance inflation at which a column is called a repetition of others
WORTH_A_GPU = (
    1e10  # multiplications in the Gram matrix: 100 columns of 10,000 rows, about a second on two cores
)
FEW_FUNCTIONS = 3  # a term with fewer can only follow a line or a parabola


@dataclass(frozen=True, kw_only=True)
class PruneSettings:
    """How edges are tested and which are kept."""

    cutoff: float = 0.001  # paper (CAM's): edges with a smaller p-value are kept; used by rule "fixed"
    rule: CutoffRule = "fixed"  # paper; "fdr" and "adaptive" choose the cutoff from all tested edges
    fdr_level: float = 0.05  # measured: a good compromise of sparse and dense graphs; used by rule "fdr"
    edge_probability: float = (
        0.6  # measured: 0.5 is best on dense graphs, 0.7 on sparse ones; used by rule "adaptive"
    )
    n_basis: int = 10  # CAM's, with the constant; fewer where there are less than 3 rows a coefficient
    screen_above: int = (
        50  # choice, as in CAM's experiments: with more columns and no candidates, screen first
    )
    max_neighbours: int = 20  # measured: keeps every true edge that testing all predecessors finds
    prune_workers: int = 0  # choice: processes that share the regressions; 0 for this one alone
    prune_scheduler: str | None = None  # or the address of a Dask cluster, such as "tcp://host:8786"

    def __post_init__(self) -> None:
        if self.rule not in get_args(CutoffRule):
            raise InputError(
                f"The 'rule' parameter must be 'fixed', 'fdr' or 'adaptive'. Got {self.rule!r} instead."
            )
        for name in ("cutoff", "fdr_level", "edge_probability"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
                raise InputError(f"The {name!r} parameter must be between 0 and 1. Got {value!r} instead.")
        for name, least in (("n_basis", 3), ("screen_above", 0), ("max_neighbours", 1), ("prune_workers", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(
                    f"The {name!r} parameter must be a whole number of {least} or more. Got {value!r} instead."
                )


def p_values(
    order: Sequence[Any], data: Any, candidates: npt.ArrayLike | None = None, *, device: str = "auto"
) -> Array:
    """p-values of all edges that the order allows: [i, j] for i -> j, 1.0 where not tested.

    `order` lists column names or positions, causes first; `data` is whatever `diffan.discover` takes; rows and columns
    of the answer and of `candidates` follow the data's columns. With more than 50 columns and no candidates, each node
    is tested on the 20 predecessors that a boosted additive model finds most useful.
    """
    table = read_table(data)
    positions = _positions(order, table.names)
    settings, context = PruneSettings(), Context(device=device)
    if not isinstance(table, MappedTable):
        return prune(positions, table, candidates, settings=settings, context=context).p_values
    allowed = _allowed(positions, table.names, candidates)
    stored = table.canonical_positions()  # a table on disk is read as it lies there
    place = np.argsort(stored)
    order = [int(place[j]) for j in positions]
    offered = None if candidates is None else allowed[np.ix_(stored, stored)]
    found = prune(order, table.select(stored), offered, settings=settings, context=context)
    return found.p_values[np.ix_(place, place)]


def prune(
    order: Sequence[int],
    table: Table,
    candidates: npt.ArrayLike | None = None,
    *,
    settings: PruneSettings,
    context: Context,
    gram: SplineGram | None = None,
) -> EdgeEvidence:
    """Test the candidate edges along the order and keep those whose p-value is small enough.

    Measures per tested edge i -> j, NaN elsewhere: `edf`, the effective degrees of freedom of i's function; its
    `f_statistic`; `deviance_explained`, the share of j's variance lost when i is dropped and the others stay; `r2`, the
    share of j's variance explained by all its tested predecessors together. Edges that the context's constraints forbid
    are not tested; required ones are in every regression of their target and are kept. `gram` saves a pass over the
    rows when the table's is there already.
    """
    positions = _positions(order, table.names)
    rules = context.rules(table.n_variables)
    allowed = rules.candidates(_allowed(positions, table.names, candidates), positions)
    device = gram_device(context, table, settings.n_basis)
    if gram is None or gram.width != settings.n_basis - 1:
        gram = gram_of(table, context, settings.n_basis)
    offered = allowed.sum(axis=0)
    if candidates is None and table.n_variables > settings.screen_above:
        allowed = neighbour_mask(gram, allowed, settings.max_neighbours) | rules.required
    regressions = [
        (target, tuple(cause for cause in positions if allowed[cause, target])) for target in positions
    ]
    tests = _Tests(table.n_variables, gram.width)
    with context.progress.task("prune", total=len(regressions)) as task:
        if settings.prune_workers or settings.prune_scheduler:
            fits = fit_nodes_elsewhere(
                gram, regressions, workers=settings.prune_workers, scheduler=settings.prune_scheduler
            )
        else:
            fits = fit_nodes(gram, regressions, device=device)
        for fit in fits:
            tests.add(fit, int(offered[fit.target]))
            task.advance()
    cutoff = _cutoff(tests.p_values[allowed & ~rules.required], settings)  # required edges are no discoveries
    return EdgeEvidence(
        p_values=tests.p_values,
        tested=allowed,
        chosen=allowed & ((tests.p_values < cutoff) | rules.required),
        cutoff=cutoff,
        measures=tests.measures,
        warnings=tuple(tests.warnings(table.names)),
    )


def candidates_along(order: Sequence[int], candidates: npt.ArrayLike) -> Mask:
    """The candidate edges that run along the order, for lists that name neighbours without a direction."""
    mask = np.asarray(candidates, dtype=bool)
    return mask & earlier(order)


class _Tests:
    """Collects the fits' tests in [d, d] arrays."""

    def __init__(self, d: int, width: int) -> None:
        self._width = width  # the most functions a column has
        self.p_values = np.ones((d, d))
        names = ("edf", "f_statistic", "deviance_explained", "r2")
        self.measures = {name: np.full((d, d), np.nan) for name in names}
        self._repeated: set[int] = set()
        self._crowded: list[int] = []
        self._plain: list[int] = []

    def add(self, fit: NodeFit, n_offered: int) -> None:
        if not fit.parents:
            return
        cell = (list(fit.parents), fit.target)
        statistics, self.p_values[cell] = term_tests(fit, selection_df(n_offered, len(fit.parents)))
        self.measures["edf"][cell] = fit.edf
        self.measures["f_statistic"][cell] = statistics
        self.measures["deviance_explained"][cell] = fit.deviance_explained
        self.measures["r2"][cell] = fit.r2
        self._repeated |= {p for p, by in zip(fit.parents, fit.inflation, strict=True) if by > COLLINEAR}
        if fit.is_weak:
            self._crowded.append(fit.target)
        elif fit.coefficients.shape[1] < min(FEW_FUNCTIONS, self._width):
            self._plain.append(fit.target)

    def warnings(self, names: Sequence[str]) -> list[str]:
        """What makes the tests weaker than they look, a sentence each."""
        found: list[str] = []
        if self._repeated:
            found.append(
                f"Columns {_listed(names, sorted(self._repeated))} nearly repeat one another or a sum of others; "
                "tests of edges from them are weak, drop some of them."
            )
        if self._crowded:
            found.append(
                f"Too few rows for the regressions of {_listed(names, self._crowded)}: a ridge had to stabilise "
                "them and their tests are weak; give more rows or fewer candidates."
            )
        if self._plain:
            found.append(
                f"Few rows for the regressions of {_listed(names, self._plain)}: only lines or parabolas were "
                "tested; give more rows or fewer candidates."
            )
        return found


def term_tests(fit: NodeFit, spent_df: float = 0.0) -> tuple[Array, Array]:
    """F statistics and p-values of a fit's terms, in the order of its parents.

    `spent_df` is what choosing the parents on the same rows has cost in residual degrees of freedom.
    """
    if fit.noise_variance <= 0:
        return np.zeros(len(fit.parents)), np.ones(len(fit.parents))
    df = max(fit.noise_df - spent_df, 1.0)
    scale = fit.n_rows / (fit.noise_variance * fit.noise_df / df)
    return wald_test(
        fit.coefficients * np.sqrt(scale),
        fit.covariances * (fit.n_rows / fit.residual_variance),
        fit.test_rank,
        fit.widths,
        np.full(len(fit.parents), df),
    )


def gram_of(table: Table, context: Context, n_basis: int = 10) -> SplineGram:
    """The spline Gram matrix of a table's columns; whoever makes it makes the same."""
    device = gram_device(context, table, n_basis)
    return SplineGram.from_values(table.values, n_basis=n_basis, device=device)


def gram_device(context: Context, table: Table, n_basis: int) -> str:
    """Where to compute; 'auto' leaves small tables on the CPU, which is done before a GPU has started."""
    work = table.n_samples * (table.n_variables * n_basis) ** 2
    if context.device == "cpu" or (context.device == "auto" and work < WORTH_A_GPU):
        return "cpu"
    device = context.torch_device()
    return str(device) if device.type == "cuda" else "cpu"


def _cutoff(tested: Array, settings: PruneSettings) -> float:
    if settings.rule == "fdr":
        return fdr_cutoff(tested, settings.fdr_level)
    if settings.rule == "adaptive":
        return adaptive_cutoff(tested, settings.edge_probability)
    return settings.cutoff


def _positions(order: Sequence[Any], names: Sequence[str]) -> list[int]:
    """The order as column positions, whether it came as names or as positions."""
    entries, everything = list(order), list(range(len(names)))
    by_name = {name: j for j, name in enumerate(names)}
    for found in (
        [int(entry) if isinstance(entry, (int, np.integer)) else -1 for entry in entries],
        [by_name.get(str(entry), -1) for entry in entries],
    ):
        if sorted(found) == everything:
            return found
    shown = repr(entries) if len(entries) <= 12 else f"{len(entries)} entries"
    raise InputError(
        f"An order must list each of the {len(names)} columns exactly once, by name or by position. "
        f"Got {shown} instead."
    )


def _allowed(order: Sequence[int], names: Sequence[str], candidates: npt.ArrayLike | None) -> Mask:
    along = earlier(order)
    if candidates is None:
        return along
    mask = np.asarray(candidates)
    if mask.shape != along.shape or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"Candidates must be a {len(names)} x {len(names)} table of true or false. Got shape {mask.shape} instead."
        )
    mask = mask.astype(bool)
    against = np.argwhere(mask & ~along)
    if len(against):
        cause, effect = (names[k] for k in against[0])
        raise InputError(
            f"Candidates must agree with the order. Got the candidate {cause!r} -> {effect!r}, but {cause!r} does not "
            f"come before {effect!r} in the order; drop it or use diffan.pruning.candidates_along."
        )
    return mask


def _listed(names: Sequence[str], columns: Sequence[int]) -> str:
    shown = ", ".join(repr(names[c]) for c in columns[:8])
    return shown if len(columns) <= 8 else f"{shown} and {len(columns) - 8} more"
