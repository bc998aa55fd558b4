"""Mend the order of a table too wide for the full search: moves among screened neighbours, twice.

First by additive regressions from the Gram matrix, whose cost does not depend on the rows; then, among the pairs that
additive tests join, by kernel regressions on some of the rows, which see interactions and noise that is not Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from diffan.additive.gram import SplineGram
from diffan.context import Context
from diffan.likelihood.gram_scores import GramScores
from diffan.likelihood.landmark_scores import LandmarkScores
from diffan.likelihood.neighbours import Place, Scorer, permitted_only, refine_among_neighbours
from diffan.likelihood.refine import RefinedOrder, checked_order, require_obeyed
from diffan.local_settings import LocalSettings
from diffan.pruning import PruneSettings, candidates_along, gram_of, prune
from diffan.score.screening import screen
from diffan.table import Table

BoolArray = npt.NDArray[np.bool_]
MOVE_NATS = 4.0  # choice: what passing neighbours must pay, as in the full search
ROWS, LANDMARKS = 10_000, 128  # measured: 256 landmarks gain nothing at 500 variables
ROWS_CPU = 4_000  # choice: 100 variables then take 10 to 40 s on two cores


def refine_large(
    order: Sequence[int],
    table: Table,
    *,
    context: Context,
    gram: SplineGram | None = None,
    neighbours: BoolArray | None = None,
    objective: Literal["additive", "kernel"] = "kernel",
) -> tuple[RefinedOrder, BoolArray]:
    """The mended order and the neighbours it was mended among; both are made here when not given."""
    device = context.torch_device()
    if gram is None:
        gram = gram_of(table, context)
    if neighbours is None:
        neighbours = screen(gram, LocalSettings(), device).neighbours
    rules = context.rules(table.n_variables)
    neighbours = neighbours | rules.required | rules.required.T
    start = checked_order(order, table.n_variables)
    require_obeyed(start, rules)

    def mend(order: list[int], among: BoolArray, score: Scorer) -> tuple[list[int], list[float], list[Place]]:
        """Moves within what is known; a forbidden cause is never among the regressors."""
        within = permitted_only(score, rules.permitted)
        must = rules.must_precede if rules.must_precede.any() else None
        return refine_among_neighbours(order, among, within, pay=MOVE_NATS, task=task, must_precede=must)

    with context.progress.task("refine") as task:
        mended, trace, moves = mend(start, neighbours, GramScores(gram, device))
        if objective == "kernel":
            joined = _joined(mended, neighbours, table, gram, context)
            score = LandmarkScores(_rows(table, context, device), landmarks=LANDMARKS, device=device)
            score.settle_entropy(_parents(mended, joined))
            mended, kernel_trace, more = mend(mended, joined, score)
            trace, moves = [*trace, *kernel_trace], [*moves, *more]
    return RefinedOrder(mended, trace, moves, _parents(mended, neighbours)), neighbours


def _joined(
    order: Sequence[int], neighbours: BoolArray, table: Table, gram: SplineGram, context: Context
) -> BoolArray:
    """The pairs that additive tests along the order join."""
    candidates = candidates_along(order, neighbours)
    found = prune(order, table, candidates, settings=PruneSettings(), context=context, gram=gram)
    joined: BoolArray = found.chosen | found.chosen.T
    return joined


def _rows(table: Table, context: Context, device: torch.device) -> npt.NDArray[np.floating]:
    count = min(table.n_samples, ROWS if device.type == "cuda" else ROWS_CPU)
    chosen = context.rng("likelihood").permutation(table.n_samples)[:count]
    values = table.values[chosen]
    return values if table.standardized else values / table.scale


def _parents(order: Sequence[int], neighbours: BoolArray) -> list[frozenset[int]]:
    along = candidates_along(order, neighbours)
    return [frozenset(np.flatnonzero(column).tolist()) for column in along.T]
