"""Mend an order with the additive engine alone: cheap to understand, blind to interactions.

The objective of a node given all its predecessors is the GCV score of its additive regression,
n log(residual share) - 2n log(residual degrees of freedom): twice a negative log-likelihood with the flexibility paid
for. A variable is taken out and put back where the sum over nodes is least. It sees no interactions and takes noise
for Gaussian, so a move must pay more than the kernel's; `refine` is what `discover` uses by default.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diffan.additive.fit import fit_nodes
from diffan.additive.gram import SplineGram
from diffan.constraints import Constraints
from diffan.context import Context
from diffan.likelihood.fits import NOBODY, Parents
from diffan.likelihood.moves import BoolArray
from diffan.likelihood.refine import RefinedOrder, checked_order, require_obeyed
from diffan.table import Table

ADDITIVE_MOVE_NATS = 10.0  # below it the additive objective walks away from the truth on dense graphs
MAX_SWEEPS = 20


def refine_additively(
    order: Sequence[int],
    table: Table,
    *,
    context: Context,
    move_nats: float = ADDITIVE_MOVE_NATS,
) -> RefinedOrder:
    """Insertion moves while one pays more than `move_nats`, within what the context's constraints allow."""
    d = table.n_variables
    rules = context.rules(d)
    current = checked_order(order, d)
    require_obeyed(current, rules)
    scores = _AdditiveScores(SplineGram.from_values(table.values), rules)
    trace, moves = [scores.total(current)], list[tuple[int, int, int]]()
    with context.progress.task("refine") as task:
        for _ in range(MAX_SWEEPS):
            before = len(moves)
            for node in list(current):
                old, new, gain = _best_place(node, current, scores, rules.must_precede)
                if gain > move_nats:
                    current.insert(new, current.pop(old))
                    moves.append((node, old, new))
                    trace.append(scores.total(current))
                    task.advance(note=f"{len(moves)} moves")
            if len(moves) == before:
                break
    parents = [frozenset(current[: current.index(node)]) for node in range(d)]
    return RefinedOrder(current, trace, moves, parents)


class _AdditiveScores:
    """GCV scores by (node, predecessors), each fitted once; forbidden causes are not among the regressors."""

    def __init__(self, gram: SplineGram, rules: Constraints) -> None:
        self._gram = gram
        self._permitted = [frozenset(np.flatnonzero(column).tolist()) for column in rules.permitted.T]
        self._known: dict[tuple[int, Parents], float] = {}

    def __call__(self, node: int, parents: Parents) -> float:
        key = (node, parents & self._permitted[node])
        self.prepare([key])
        return self._known[key]

    def prepare(self, wanted: Sequence[tuple[int, Parents]]) -> None:
        new = [key for key in dict.fromkeys(wanted) if key not in self._known]
        fits = fit_nodes(self._gram, [(node, tuple(sorted(parents))) for node, parents in new])
        for key, fit in zip(new, fits, strict=True):
            self._known[key] = fit.gcv

    def total(self, order: Sequence[int]) -> float:
        return sum(self(node, frozenset(order[:place])) for place, node in enumerate(order))


def _best_place(
    node: int, order: Sequence[int], scores: _AdditiveScores, must_precede: BoolArray
) -> tuple[int, int, float]:
    """(old place, best new place, how much the objective falls), over all places from cumulative sums."""
    old = order.index(node)
    rest = [other for other in order if other != node]
    costs = []  # of node at each place, and of the others with node before them
    before: Parents = NOBODY
    with_node, without = np.zeros(len(rest)), np.zeros(len(rest))
    for place, other in enumerate(rest):
        costs.append(scores(node, before))
        without[place] = scores(other, before)
        with_node[place] = scores(other, before | {node})
        before = before | {other}
    costs.append(scores(node, before))
    others = np.concatenate([[0.0], np.cumsum(without)]) + np.concatenate(
        [np.cumsum(with_node[::-1])[::-1], [0.0]]
    )
    totals = np.array(costs) + others  # [d], node put at each place
    for place in range(len(totals)):
        late = any(must_precede[other, node] for other in rest[place:])
        early = any(must_precede[node, other] for other in rest[:place])
        if late or early:
            totals[place] = np.inf
    new = int(np.argmin(totals))
    return old, new, float(totals[old] - totals[new])
