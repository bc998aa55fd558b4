r"""How often must an edge be found in halves of the data before chance is an unlikely reason: stability selection.

With complementary pairs of halves (Shah and Samworth 2013) the expected number of edges that pass a threshold although
a half of the data picks them no more often than the average edge is bounded by C * q^2 / p, where q of p possible edges
are picked on average. C = 1 / (2 threshold - 1) holds always (the bound of Meinshausen and Buhlmann 2010); the smaller
one below holds where the share of pairs that pick such an edge in both halves has a unimodal law, which is usual.
The bound speaks of edges picked by chance. It does not speak of edges that the method gets wrong every time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_THRESHOLD = 0.6  # the lower end of what Meinshausen and Buhlmann advise


@dataclass(frozen=True)
class Threshold:
    """A frequency to ask for, and how many edges are expected to reach it by chance."""

    frequency: float
    expected_false: float  # for a unimodal law
    worst_case: float  # for any law


def stability_threshold(picked: float, possible: int, n_pairs: int, wanted: float) -> Threshold:
    """The least threshold that expects at most `wanted` edges by chance, or 1 when none does.

    `picked` of the `possible` edges are found in one half on average; there are `n_pairs` pairs of halves.
    """
    steps = range(math.ceil(LEAST_THRESHOLD * 2 * n_pairs), 2 * n_pairs + 1)
    found = Threshold(1.0, math.inf, math.inf)
    for step in steps:
        frequency = step / (2 * n_pairs)
        found = Threshold(
            frequency,
            unimodal_bound(frequency, picked, possible, n_pairs),
            worst_case_bound(frequency, picked, possible),
        )
        if found.expected_false <= wanted:
            break
    return found


def worst_case_bound(threshold: float, picked: float, possible: int) -> float:
    """Shah and Samworth's Theorem 1 with theta = q / p."""
    return picked**2 / max(possible, 1) / (2 * threshold - 1)


def unimodal_bound(threshold: float, picked: float, possible: int, n_pairs: int) -> float:
    """Shah and Samworth's Theorem 2 with theta = q / p; where it does not apply, the worst case."""
    theta = picked / max(possible, 1)
    worst = worst_case_bound(threshold, picked, possible)
    low = 0.5 + min(theta**2, 0.5 / n_pairs + 0.75 * theta**2)
    if theta > 1 / math.sqrt(3) or threshold <= low:
        return worst
    if threshold <= 0.75:
        factor = 1 / (2 * (2 * threshold - 1 - 0.5 / n_pairs))
    else:
        factor = 4 * (1 - threshold + 0.5 / n_pairs) / (1 + 1 / n_pairs)
    return min(worst, factor * theta * picked)
