"""Choose every node's parents among those before it, with the evidence for each edge that was considered.

The evidence of a chosen edge is what the objective loses without it, that of another edge what it would gain with
it, both at the final sets. An edge is chosen when its evidence exceeds one threshold, so that chosen edges are
those with the smaller p-values, exactly. The threshold controls the share of false edges among the chosen
(Benjamini and Hochberg) under the null of shuffled columns, and is never below `edge_nats`; on sparse graphs it rises to
where an edge is as likely true as false.

Where the model is wrong (`misfit`) all evidence counts for so much less that the misfit is worth no more than the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diffan.context import Context
from diffan.evidence import EdgeEvidence
from diffan.likelihood.fits import Parents, Query
from diffan.likelihood.fitting import fit_kernels
from diffan.likelihood.misfit import left_over, misfit, misfit_warning
from diffan.likelihood.moves import BoolArray, State
from diffan.likelihood.null import FloatArray, NullModel, shuffled_falls
from diffan.likelihood.parents import log_sets
from diffan.likelihood.passes import run_passes
from diffan.likelihood.refine import RefinedOrder, checked_order, checked_square
from diffan.likelihood.search import Search, in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work, finished
from diffan.table import Table

LEAST_SPREAD = 0.3  # of the logarithm of true edges' evidence; choice: edges that happen to be alike
ODDS_STEPS = 500


def selecting(
    order: Sequence[int],
    table: Table,
    *,
    settings: LikelihoodSettings,
    context: Context,
    candidates: BoolArray | None = None,
    refined: RefinedOrder | None = None,
    warn: bool = True,
) -> Work[EdgeEvidence]:
    """The edges that the order allows and the likelihood wants.

    `candidates[i, j]` says that i -> j may be considered; `refined`, when it made this order, spares the fits that
    the refinement has already done. Edges that the context's constraints forbid are never considered; required ones
    are always chosen, and every other edge is judged beside them. `warn=False` spares warnings that nobody will read.
    """
    d = table.n_variables
    plain = checked_order(order, d)
    rules = context.rules(d)
    allowed = rules.candidates(checked_square(candidates, d, "candidates", default=True), plain)
    with context.progress.task("edges") as task:
        state = refined.state if refined is not None and refined.order == plain else None
        leap = state is None  # mending has leapt from all columns already
        if state is None:
            state = yield from run_passes(
                plain,
                table,
                settings=settings,
                context=context,
                allowed=allowed,
                rules=rules,
                mend=_leave,
                timings={},
            )
        state.allowed = allowed
        state.price = settings.edge_nats  # what mending had to pay is measured anew along the mended order
        yield from state.reselect(plain, leap=leap)
        changed = yield from fit_kernels(state.objective, state.parents)
        yield from state.reselect(changed, leap=False)
        task.advance(note="parents found")
        nats = yield from _settled_evidence(state)
        null = NullModel.fit((yield from shuffled_falls(state.objective, state.parents)))
        task.advance(note="null learnt")
        in_question = np.where(rules.required, np.nan, nats)  # required edges are no discoveries
        usual = max(
            settings.edge_nats, null.level(_false_discovery_cutoff(null, in_question, settings.edge_fdr))
        )
        if settings.edge_odds:
            usual = even_odds(null, in_question[~np.isnan(in_question)], usual)
        owed = yield from left_over(state, table)
        state.price = max(usual, misfit(owed)) if settings.charge_misfit else usual
        nats = yield from _settled_evidence(state)
    tested = ~np.isnan(nats)
    p_values = np.ones((d, d))
    p_values[tested] = null.p_value(nats[tested] * (usual / state.price))
    cutoff = float(null.p_value(usual))
    warning = misfit_warning(owed, table, state.price, usual) if warn else None
    return EdgeEvidence(
        p_values=p_values,
        tested=tested,
        chosen=tested & ((p_values < cutoff) | rules.required),
        cutoff=cutoff,
        measures={"nats": nats},
        warnings=() if warning is None else (warning,),
    )


def _leave(state: State, last: bool) -> Work[None]:
    """No mending: the order stays as it is."""
    yield from ()


select = finished(selecting)


def _false_discovery_cutoff(null: NullModel, nats: FloatArray, share: float) -> float:
    """Benjamini and Hochberg's bound on the p-value."""
    p_values = np.sort(null.p_value(nats[~np.isnan(nats)]))
    m = len(p_values)
    bounds = share * np.arange(1, m + 1) / max(m, 1)
    passing = np.flatnonzero(p_values <= bounds)
    return float(bounds[passing[-1]] if len(passing) else share / max(m, 1))


def even_odds(null: NullModel, nats: FloatArray, price: float) -> float:
    """The least evidence, from `price` on, at which an edge is no less likely true than false.

    False edges thin out beyond the price as the null does. The evidence of true ones is taken to be spread as that of the
    edges found, by a logistic law of its logarithm. On a sparse graph true edges are few and strong, and most of what
    barely pays is chance; on a dense one they are many and weak, and the price stands.
    """
    found = np.log(nats[(nats > price) & np.isfinite(nats)])
    if len(found) < 2:
        return price
    false = (len(nats) - len(found)) * float(null.p_value(price))
    true = max(len(found) - false, 1.0)
    spread = max(float(found.std(ddof=1)), LEAST_SPREAD) * math.sqrt(1.0 + 1.0 / len(found))
    width = spread * math.sqrt(3.0) / math.pi  # of a logistic law with that standard deviation
    at = np.geomspace(price, np.exp(found.max()), ODDS_STEPS)
    true_there = true / (4.0 * width * at * np.cosh((np.log(at) - found.mean()) / (2.0 * width)) ** 2)
    false_there = false / null.scale * np.exp(-(at - price) / null.scale)
    likely = true_there >= false_there
    return float(at[np.argmax(likely)]) if likely.any() else price


def _settled_evidence(state: State) -> Work[FloatArray]:
    """Bring every node's parents to rest at the state's price; the evidence there, [d, d], NaN if not allowed."""
    d = len(state.order)
    before = [(node, state.candidates(node, state.order[:k])) for k, node in enumerate(state.order)]
    searches = [settle(state, node, candidates) for node, candidates in before]
    found = yield from in_step(searches, state.objective)
    nats = np.full((d, d), np.nan)
    for (node, _), (parents, evidence) in zip(before, found, strict=True):
        state.parents[node] = parents
        for i, value in evidence.items():
            nats[i, node] = value
    return nats


def settle(state: State, node: int, candidates: list[int]) -> Search[tuple[Parents, dict[int, float]]]:
    """Add or drop the one parent that lowers the cost most until none does: then the evidence is consistent.

    Two parents may each be worth their price only beside the other; all are dropped when they do not pay together.
    """
    required = state.required[node]
    current = (state.parents[node] & frozenset(candidates)) | required
    while True:
        others = {i: current ^ {i} for i in candidates}
        yield [Query(node, P) for P in (current, required, *others.values())]
        open_to_change = [parents for i, parents in others.items() if i not in required]
        best = min(open_to_change, key=lambda parents: state.cost(node, parents), default=current)
        value = state.objective.value(node, current)
        together = state.objective.value(node, required) - value
        among, size = len(set(candidates) - required), len(current - required)
        if state.cost(node, best) < state.cost(node, current):
            current = best
        elif together < price_of_set(state.price, among, size):
            current = required
        else:
            falls = {
                i: abs_fall(i in current, value, state.objective.value(node, P)) for i, P in others.items()
            }
            return current, falls


def price_of_set(price: float, among: int, size: int) -> float:
    """What parents must pay together: a price each, or one and what the choice between so many sets is worth, if that is less."""
    return min(price * size, price + 2.0 * log_sets(among, size)) if size else 0.0


def abs_fall(chosen: bool, with_current: float, with_other: float) -> float:
    """What the edge is worth: the objective without it minus the objective with it."""
    return with_other - with_current if chosen else with_current - with_other
