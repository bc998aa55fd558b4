"""The parents of one node among its candidates: grow, leap, shrink, while the penalised objective falls.

Every accepted step lowers L(j | P) + price * |P|. Candidates are ranked by the slope of the likelihood and only a
few are fitted. When no single column pays, the heaviest of a relaxation are tried at once (a leap): a function of six
columns may show nothing of itself through one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from diffan.likelihood.fits import NOBODY, Kernel, Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.relaxation import HEAVY
from diffan.likelihood.search import Search

ENTER_SLOPE = 0.02  # per row; measured: flatter candidates never paid (500 rows, 3 sets, 1000 candidates)
LEAVE_SLOPE = 0.01  # per row; measured: steeper parents were never worth dropping (4 sets, 900 parents)
LIGHT = 0.04  # weight of a column that no leap takes along: it has fallen at every step
LEAP_FROM = 6  # most parents a node may have to leap from; choice: leaps are for nodes whose parents hide


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
    choice = Choice(objective, node, frozenset(candidates) - required, required, price)
    current = yield from choice.shrink((start & choice.free) | required)
    while True:
        grown = yield from choice.grow(current)
        if grown is None and leap and len(current) <= LEAP_FROM:
            grown = yield from choice.leap(current)
        if grown is None:
            return current
        current = yield from choice.shrink(grown)


class Choice:
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
        """The heaviest columns of a relaxation at once, without those that do not pay; None unless the rest pays.

        What few parents the node has may have given it a kernel that suits them only: it leaps with the kernel of a node
        that has none, and keeps the one it lands with if that pays.
        """
        candidates, kernels = self.free | self.required, self.objective.kernels
        if len(candidates) < 2 or not self.objective.settings.leaps:
            return None
        yield [Query(self.node, candidates, weights=True)]
        weights = self.objective.weights(self.node, candidates)
        heaviest = sorted((c for c in candidates if weights[c] > LIGHT), key=lambda c: (-weights[c], c))
        if current.issuperset(c for c in heaviest if weights[c] > HEAVY):
            return None
        own, before = kernels[self.node], self.objective.value(self.node, current)
        best, kernels[self.node] = yield from self._best_of_heaviest(heaviest)
        landed = yield from self.shrink(best)
        while (grown := (yield from self.grow(landed))) is not None:
            landed = yield from self.shrink(grown)
        if before - self.objective.value(self.node, landed) > self.price_of_leap(current, landed):
            return landed
        kernels[self.node] = own
        return None

    def price_of_leap(self, current: Parents, landed: Parents) -> float:
        """What a leap must pay: every parent its price, and the whole set more than the best of so many sets does by chance.

        Of all sets of k columns among m, chance lets the best one seem worth about 2 log (m over k): a node without parents
        among fifty columns would often be given four.
        """
        among = len(self.free | self.required)
        more = log_sets(among, len(landed)) - log_sets(among, len(current))
        return max(self.price * (len(landed) - len(current)), 2.0 * more + self.price)

    def _best_of_heaviest(self, heaviest: list[int]) -> Search[tuple[Parents, Kernel]]:
        """How many of the heaviest columns are best, and how much is noise: some numbers first, then those around the best."""
        settings, ready = self.objective.settings, self.objective.ready
        kernels = [
            ready._replace(ridge=ridge) for ridge in sorted({ready.ridge, max(settings.kernel_ridges)})
        ]

        def taken(size: int) -> Parents:
            return self.required | frozenset(heaviest[:size])

        def cost(trial: tuple[int, Kernel]) -> float:
            parents = taken(trial[0])
            return self.objective.value(self.node, parents, trial[1]) + self.price * len(parents)

        def best(sizes: Iterable[int], kernels: list[Kernel]) -> Search[tuple[int, Kernel]]:
            trials = [(size, kernel) for size in sizes for kernel in kernels]
            yield [Query(self.node, taken(size), kernel=kernel) for size, kernel in trials]
            return min(trials, key=cost)

        coarse = sorted({min(size, len(heaviest)) for size in settings.leaps})
        size, kernel = yield from best(coarse, kernels)
        at = coarse.index(size)
        around = range(coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)] + 1)
        size, kernel = yield from best(around, [kernel])
        return taken(size), kernel

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


def log_sets(among: int, size: int) -> float:
    """The logarithm of the number of sets of that size."""
    return math.log(math.comb(among, size))
