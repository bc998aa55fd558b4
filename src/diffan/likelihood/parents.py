"""The parents of one node among its candidates: grow, leap, shrink, while the penalised objective falls.

Every accepted step lowers L(j | P) + price * |P|. Candidates are ranked by the slope of the likelihood and only a
few are fitted. When no single column pays, several are tried at once (a leap): a function of ten columns may show
nothing of itself through one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from diffan.likelihood.fits import NOBODY, Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.search import Search

ENTER_SLOPE = 0.02  # per row; measured: flatter candidates never paid (500 rows, 3 sets, 1000 candidates)
LEAVE_SLOPE = 0.01  # per row; measured: steeper parents were never worth dropping (4 sets, 900 parents)
LEAP_FROM = 3  # most parents a node may have to leap from; choice: leaps are for nodes whose parents hide


def steep_enough(objective: Objective, node: int, parents: Parents, candidate: int) -> bool:
    """Whether the slope towards a candidate leaves any hope that it pays."""
    return objective.slopes(node, parents)[candidate] > ENTER_SLOPE * objective.plan.stored_rows


def choose_parents(
    objective: Objective,
    node: int,
    candidates: Iterable[int],
    *,
    start: Parents = NOBODY,
    required: Parents = NOBODY,
    price: float,
    leap: bool = True,
) -> Search[Parents]:
    """The best set found from `start`; candidates outside it may enter, all but `required` may leave."""
    choice = _Choice(objective, node, frozenset(candidates) - required, required, price)
    current = yield from choice.shrink((start & choice.free) | required)
    while True:
        grown = yield from choice.grow(current)
        if grown is None and leap and len(current) <= LEAP_FROM:
            grown = yield from choice.leap(current)
        if grown is None:
            return current
        current = yield from choice.shrink(grown)


class _Choice:
    """The steps of one node's search."""

    def __init__(
        self, objective: Objective, node: int, free: Parents, required: Parents, price: float
    ) -> None:
        self.objective, self.node, self.free, self.required, self.price = (
            objective,
            node,
            free,
            required,
            price,
        )

    def cost(self, parents: Parents) -> float:
        return self.objective.value(self.node, parents) + self.price * len(parents)

    def ask(self, sets: Iterable[Parents], slopes: bool = False) -> list[Query]:
        return [Query(self.node, parents, slopes=slopes) for parents in sets]

    def grow(self, current: Parents) -> Search[Parents | None]:
        """The best of the most promising single additions, if it pays."""
        shortlist = (yield from self._promising(current))[: self.objective.settings.shortlist]
        sets = [current | {c} for c in shortlist]
        yield self.ask(sets)
        best = min(sets, key=self.cost, default=current)
        return best if self.cost(best) < self.cost(current) else None

    def leap(self, current: Parents) -> Search[Parents | None]:
        """Add several at once, then take back those that do not pay; None unless the rest pays."""
        promising = yield from self._promising(current)
        sizes = [min(size, len(promising)) for size in self.objective.settings.leaps]
        sets = [current | frozenset(promising[:size]) for size in dict.fromkeys(sizes) if size > 1]
        yield self.ask(sets)
        best = min(sets, key=lambda parents: self.objective.value(self.node, parents), default=current)
        if self.objective.value(self.node, best) >= self.objective.value(self.node, current):
            return None
        landed = yield from self.shrink(best)
        return landed if self.cost(landed) < self.cost(current) else None

    def shrink(self, current: Parents) -> Search[Parents]:
        """Drop parents that do not pay, the least needed first; all at once those the fit is better without."""
        while current - self.required:
            yield self.ask([current], slopes=True)
            slopes = self.objective.slopes(self.node, current)
            steep = LEAVE_SLOPE * self.objective.plan.stored_rows
            weakest = sorted(
                (p for p in current - self.required if slopes[p] < steep), key=lambda p: (slopes[p], p)
            )
            harmful = frozenset(p for p in weakest if slopes[p] < 0)
            sets = [current - {p} for p in weakest[: self.objective.settings.shortlist]]
            if len(harmful) > 1:
                sets.append(current - harmful)
            yield self.ask(sets)
            best = min(sets, key=self.cost, default=current)
            if self.cost(best) >= self.cost(current):
                return current
            current = best
        yield self.ask([current])
        return current

    def _promising(self, current: Parents) -> Search[list[int]]:
        """Candidates whose entry raises the likelihood, the steepest first."""
        outside = self.free - current
        if not outside:
            return []
        yield self.ask([current], slopes=True)
        slopes = self.objective.slopes(self.node, current)
        steep = ENTER_SLOPE * self.objective.plan.stored_rows
        return sorted((c for c in outside if slopes[c] > steep), key=lambda c: (-slopes[c], c))
