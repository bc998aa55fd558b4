"""From left-to-right orders to places: every vertex as near to its neighbours as the room allows.

On one layer with the others held, the best places in the sense of least squares under minimal distances are an isotonic
regression, which pooling neighbours solves exactly; sweeping up and down settles the whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from diffan.report.layers import Layered

ROUNDS = 30
NODE_GAP = 26.0  # between boxes
BEND_GAP = 16.0  # beside a passing edge
BEND_PULL = 8.0  # two bends of one edge want one line
END_PULL = 2.0  # a bend and a node
NODE_PULL = 1.0
STRAIGHTENINGS = 2
STAY = 0.05  # of a vertex without neighbours on that side


def horizontal(found: Layered, widths: Sequence[float]) -> list[float]:
    """The centre of every vertex; `widths` are those of the real nodes."""
    x = [0.0] * len(found.level)
    for layer in found.layers:
        reach = 0.0
        for left, right in zip([None, *layer[:-1]], layer, strict=True):
            reach += 0.0 if left is None else _distance(found, widths, left, right)
            x[right] = reach
        for vertex in layer:
            x[vertex] -= reach / 2
    for turn in range(ROUNDS):
        settle_both = turn >= ROUNDS - 6
        for layer in found.layers if turn % 2 == 0 else found.layers[::-1]:
            _settle(
                found, widths, x, layer, up=settle_both or turn % 2 == 0, down=settle_both or turn % 2 == 1
            )
    _straighten(found, widths, x)
    return x


def _settle(
    found: Layered, widths: Sequence[float], x: list[float], layer: list[int], *, up: bool, down: bool
) -> None:
    wanted, weights = [], []
    for vertex in layer:
        total, pull = STAY * x[vertex], STAY
        for links, used in ((found.above[vertex], up), (found.below[vertex], down)):
            for other in links if used else ():
                strength = _pull(found, vertex, other)
                total += strength * x[other]
                pull += strength
        wanted.append(total / pull)
        weights.append(pull)
    gaps = [_distance(found, widths, a, b) for a, b in itertools.pairwise(layer)]
    for vertex, place in zip(layer, _spaced(wanted, weights, gaps), strict=True):
        x[vertex] = place


def _spaced(wanted: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """The nearest places to those wanted whose distances are at least the gaps."""
    shift = [0.0]
    for gap in gaps:
        shift.append(shift[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, count
    for k, want in enumerate(wanted):
        mean, weight, count = want - shift[k], weights[k], 1
        while pools and pools[-1][0] > mean:
            other, more, n = pools.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, count = weight + more, count + n
        pools.append((mean, weight, count))
    level = [mean for mean, _, count in pools for _ in range(count)]
    return [one + moved for one, moved in zip(level, shift, strict=True)]


def _straighten(found: Layered, widths: Sequence[float], x: list[float]) -> None:
    """Put neighbouring bends of an edge on one line, as long a run of them as there is room for."""
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for layer in found.layers:
        for a, b in itertools.pairwise(layer):
            left[b], right[a] = a, b
    for chain in found.chains * STRAIGHTENINGS:
        line: list[int] = []
        low, high = -math.inf, math.inf
        for v in chain[1:-1]:
            least = x[left[v]] + _distance(found, widths, left[v], v) if v in left else -math.inf
            most = x[right[v]] - _distance(found, widths, v, right[v]) if v in right else math.inf
            if line and max(low, least) > min(high, most):
                _align(line, low, high, x)
                line, low, high = [], -math.inf, math.inf
            line.append(v)
            low, high = max(low, least), min(high, most)
        _align(line, low, high, x)


def _align(line: list[int], low: float, high: float, x: list[float]) -> None:
    if low > high:  # one bend squeezed by rounding stays where it is
        return
    middle = sum(x[v] for v in line) / max(len(line), 1)
    for vertex in line:
        x[vertex] = min(max(middle, low), high)


def _pull(found: Layered, one: int, other: int) -> float:
    bends = found.is_bend(one) + found.is_bend(other)
    return (NODE_PULL, END_PULL, BEND_PULL)[bends]


def _distance(found: Layered, widths: Sequence[float], one: int, other: int) -> float:
    half = sum(0.0 if found.is_bend(v) else widths[v] / 2 for v in (one, other))
    return half + (BEND_GAP if found.is_bend(one) or found.is_bend(other) else NODE_GAP)
