"""One variable taken out of the order and put back at its best place, with what that does to everyone's parents."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from diffan.likelihood.fits import NOBODY, Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.parents import choose_parents, steep_enough
from diffan.likelihood.search import Search, in_step
from diffan.likelihood.work import Work

BoolArray = npt.NDArray[np.bool_]


@dataclass
class State:
    """An order and each node's parents among those before it."""

    objective: Objective
    order: list[int]
    parents: list[Parents]
    price: float  # nats that every parent must pay
    allowed: BoolArray  # [i, j]: i may be a parent of j when it comes first
    must_precede: BoolArray  # [i, j]: i has to come before j
    required: list[Parents]  # of each node: parents that stay, whatever they pay
    misfit: float = 0.0  # nats that a move must pay at least, because the model is wrong by so much

    def cost(self, node: int, parents: Parents | None = None) -> float:
        chosen = self.parents[node] if parents is None else parents
        return self.objective.value(node, chosen) + self.price * len(chosen)

    def total(self) -> float:
        """The penalised objective of the whole order; every node's own fit must be known."""
        return sum(self.cost(node) for node in self.order)

    def candidates(self, node: int, before: list[int]) -> list[int]:
        return [i for i in before if self.allowed[i, node] and i != node]

    def choose(self, node: int, before: list[int], start: Parents, *, leap: bool = False) -> Search[Parents]:
        """The best parents found for the node among those before it."""
        return choose_parents(
            self.objective,
            node,
            self.candidates(node, before),
            start=start,
            required=self.required[node],
            price=self.price,
            leap=leap,
        )

    def reselect(self, nodes: list[int], *, leap: bool) -> Work[None]:
        """Choose these nodes' parents anew, starting from those they have; never to a worse set."""
        place = {node: k for k, node in enumerate(self.order)}
        searches = [
            self.choose(node, self.order[: place[node]], self.parents[node], leap=leap) for node in nodes
        ]
        found = yield from in_step(searches, self.objective)
        for node, parents in zip(nodes, found, strict=True):
            self.parents[node] = parents


@dataclass(frozen=True)
class Move:
    """A variable, its new place, the nodes whose parents change, and by how much the objective falls."""

    node: int
    old: int
    new: int
    gain: float
    parents: dict[int, Parents] = field(compare=False)

    def overlaps(self, other: Move) -> bool:
        """Whether the two disturb some place of the order both."""
        low, high = sorted((self.old, self.new))
        other_low, other_high = sorted((other.old, other.new))
        return low <= other_high and other_low <= high


def best_move(state: State, node: int) -> Search[Move | None]:
    """The place for `node` that lowers the objective most; None when it is best where it is."""
    earlier = yield from _best_earlier(state, node)
    later = yield from _best_later(state, node)
    return max((m for m in (earlier, later) if m is not None), key=lambda m: m.gain, default=None)


def _best_earlier(state: State, node: int) -> Search[Move | None]:
    """Those it passes may take it as a parent; it loses those it passes."""
    order, here = state.order, state.order.index(node)
    first = max((k + 1 for k, i in enumerate(order[:here]) if state.must_precede[i, node]), default=0)
    passed = order[first:here]
    yield [Query(w, state.parents[w], slopes=True) for w in passed if state.allowed[node, w]]
    hopeful = [
        w
        for w in passed
        if state.allowed[node, w] and steep_enough(state.objective, w, state.parents[w], node)
    ]
    yield [Query(w, state.parents[w] | {node}) for w in hopeful]
    gains = {w: state.cost(w) - state.cost(w, state.parents[w] | {node}) for w in hopeful}
    gains = {w: gain for w, gain in gains.items() if gain > 0}
    hope = sum(gains.values())
    own, best, won, changed = state.parents[node], None, 0.0, dict[int, Parents]()
    for new in range(here - 1, first - 1, -1):
        passing = order[new]
        if passing in gains:
            won += gains[passing]
            changed[passing] = state.parents[passing] | {node}
        if passing in own:
            own = yield from state.choose(node, order[:new], own - {passing})
        lost = state.cost(node, own) - state.cost(node)
        if lost >= hope:
            break
        if won - lost > (best.gain if best else 0.0):
            best = Move(node, here, new, won - lost, {**changed, node: own})
    return best


def _best_later(state: State, node: int) -> Search[Move | None]:
    """It may take those it passes as parents; they lose it."""
    order, here = state.order, state.order.index(node)
    after = order[here + 1 :]
    last = next((here + k for k, j in enumerate(after) if state.must_precede[node, j]), len(order) - 1)
    freest = yield from state.choose(node, order[: last + 1], state.parents[node])
    hope = state.cost(node) - state.cost(node, freest)
    own, best, lost, changed = state.parents[node], None, 0.0, dict[int, Parents]()
    for new in range(here + 1, last + 1):
        passing = order[new]
        if hope <= 0:
            break
        if node in state.parents[passing]:
            without = [i for i in order[:new] if i != node]
            changed[passing] = yield from state.choose(passing, without, state.parents[passing] - {node})
            lost += state.cost(passing, changed[passing]) - state.cost(passing)
        if lost >= hope:
            break
        if passing in freest:
            own = yield from _with_new_candidate(state, node, own, passing, order[: new + 1])
        won = state.cost(node) - state.cost(node, own)
        if won - lost > (best.gain if best else 0.0):
            best = Move(node, here, new, won - lost, {**changed, node: own})
    return best


def _with_new_candidate(
    state: State, node: int, own: Parents, newcomer: int, before: list[int]
) -> Search[Parents]:
    """The better of the parents as they are and the best set found from them with the newcomer."""
    found = yield from state.choose(node, before, own | {newcomer})
    return found if state.cost(node, found) < state.cost(node, own) else own


__all__ = ["NOBODY", "Move", "State", "best_move"]
