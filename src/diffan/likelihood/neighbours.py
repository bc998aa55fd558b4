"""Mend the order of many variables, where only screened pairs can matter to each other.

The objective is a sum over variables of L(j | neighbours of j that come before j), so that moving a variable changes
its own term and those of the neighbours it passes, nothing else. Every variable's best place among its neighbours is
found from one batch of fits per sweep; whatever was fitted stays known, so later sweeps fit only what moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.progress import Task

BoolArray = npt.NDArray[np.bool_]
Parents = frozenset[int]
Fit = tuple[int, Parents]
Scorer = Callable[[Sequence[Fit]], Iterable[float]]
"""L of each (node, parents), twice a negative log-likelihood: lower is better."""
Place = tuple[int, int, int]
"""(variable, old place, new place)."""


@dataclass(frozen=True)
class Passage:
    """A variable that passes its next few neighbours, and by how much the objective falls."""

    node: int
    passed: tuple[int, ...]  # nearest first
    earlier: bool
    gain: float


class NeighbourOrder:
    """An order with, for every variable, the neighbours before and after it."""

    def __init__(
        self, order: Sequence[int], neighbours: BoolArray, must_precede: BoolArray | None = None
    ) -> None:
        self.order = list(order)
        self._neighbours = [np.flatnonzero(row) for row in neighbours]
        self._must = must_precede
        self._renumber()

    def _renumber(self) -> None:
        self._place = np.argsort(np.asarray(self.order))

    def parents(self, node: int) -> Parents:
        own = self._neighbours[node]
        return frozenset(own[self._place[own] < self._place[node]].tolist())

    def before(self, node: int, most: int) -> list[int]:
        """Up to `most` neighbours that it could pass going earlier, nearest first."""
        return self._passable(node, -1, most)

    def after(self, node: int, most: int) -> list[int]:
        return self._passable(node, 1, most)

    def _passable(self, node: int, way: int, most: int) -> list[int]:
        own = self._neighbours[node]
        ahead = (self._place[own] - self._place[node]) * way
        near: list[int] = own[ahead > 0][np.argsort(ahead[ahead > 0])][:most].tolist()
        if self._must is None:
            return near
        place, furthest = self._place[node], len(self.order)
        bound = self._must[:, node] if way < 0 else self._must[node]
        for other in np.flatnonzero(bound):
            distance = (self._place[other] - place) * way
            if distance > 0:
                furthest = min(furthest, int(distance))
        return [other for other in near if (self._place[other] - place) * way < furthest]

    def still_there(self, move: Passage) -> bool:
        """Whether the neighbours to be passed are still the next ones on that side."""
        find = self.before if move.earlier else self.after
        return tuple(find(move.node, len(move.passed))) == move.passed

    def make(self, move: Passage) -> tuple[int, int, int]:
        """Put the variable just beyond the last neighbour it passes; (variable, old place, new place)."""
        old = self.order.index(move.node)
        self.order.pop(old)
        new = self.order.index(move.passed[-1]) + (0 if move.earlier else 1)
        self.order.insert(new, move.node)
        self._renumber()
        return move.node, old, new


def refine_among_neighbours(
    order: Sequence[int],
    neighbours: BoolArray,
    score: Scorer,
    *,
    pay: float,
    task: Task,
    must_precede: BoolArray | None = None,
    reach: int = 8,
    max_sweeps: int = 30,
) -> tuple[list[int], list[float], list[Place]]:
    """(order, objective after every sweep, moves as (variable, old place, new place)); a move passes at most `reach` neighbours and pays `pay`."""
    state = NeighbourOrder(order, neighbours, must_precede)
    known = _Known(score)
    trace, made = list[float](), list[Place]()
    active = set(range(len(state.order)))
    for sweep in range(max_sweeps):
        known.prepare(fit for node in sorted(active) for fit in _wanted(state, node, reach))
        if sweep == 0:
            known.prepare((node, state.parents(node)) for node in state.order)
            trace.append(_total(state, known))
        found = [
            move for node in sorted(active) for move in _best(state, node, known, reach) if move.gain > pay
        ]
        touched: set[int] = set()
        accepted = 0
        for move in sorted(found, key=lambda m: (-m.gain, m.node)):
            about = {move.node, *move.passed}
            if about & touched or not state.still_there(move):
                continue
            made.append(state.make(move))
            touched |= about
            accepted += 1
        if not accepted:
            break
        # Whoever has a touched neighbour meets other parents, his own or theirs, when he is tried next.
        active = touched | {int(k) for node in touched for k in np.flatnonzero(neighbours[node])}
        known.prepare((node, state.parents(node)) for node in state.order)
        trace.append(_total(state, known))
        task.advance(note=f"{len(made)} moves, {known.n_fits} fits")
    return state.order, trace, made


def permitted_only(score: Scorer, permitted: BoolArray) -> Scorer:
    """The same objective with every parent left out that may not be one; `permitted[i, j]` is for i -> j."""
    allowed = [frozenset(np.flatnonzero(column).tolist()) for column in permitted.T]

    def within(fits: Sequence[Fit]) -> Iterable[float]:
        return score([(node, parents & allowed[node]) for node, parents in fits])

    return within


class _Known:
    """Every objective that was asked for, fitted once and in batches."""

    def __init__(self, score: Scorer) -> None:
        self._score = score
        self._values: dict[Fit, float] = {}

    @property
    def n_fits(self) -> int:
        return len(self._values)

    def prepare(self, fits: Iterable[Fit]) -> None:
        new = [fit for fit in dict.fromkeys(fits) if fit not in self._values]
        self._values.update(zip(new, self._score(new), strict=True))

    def __call__(self, node: int, parents: Parents) -> float:
        return self._values[node, parents]


def _wanted(state: NeighbourOrder, node: int, reach: int) -> Iterable[Fit]:
    parents = state.parents(node)
    yield node, parents
    own = parents
    for other in state.before(node, reach):
        own = own - {other}
        yield node, own
        yield other, state.parents(other)
        yield other, state.parents(other) | {node}
    own = parents
    for other in state.after(node, reach):
        own = own | {other}
        yield node, own
        yield other, state.parents(other)
        yield other, state.parents(other) - {node}


def _best(state: NeighbourOrder, node: int, known: _Known, reach: int) -> Iterable[Passage]:
    """The best passage each way, if any gains."""
    parents = state.parents(node)
    for earlier in (True, False):
        own, saved, best = parents, 0.0, None
        passed: list[int] = []
        for other in (state.before if earlier else state.after)(node, reach):
            theirs = state.parents(other)
            own = own - {other} if earlier else own | {other}
            saved += known(other, theirs) - known(other, theirs | {node} if earlier else theirs - {node})
            passed.append(other)
            gain = saved + known(node, parents) - known(node, own)
            if gain > (best.gain if best else 0.0):
                best = Passage(node, tuple(passed), earlier, gain)
        if best:
            yield best


def _total(state: NeighbourOrder, known: _Known) -> float:
    return sum(known(node, state.parents(node)) for node in state.order)
