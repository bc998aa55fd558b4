"""Few crossings: sort each layer by the middle of its neighbours, then swap neighbours while that helps."""

from __future__ import annotations

from diffan.report.layers import Layered

SWEEPS = 24
PATIENCE = 6  # sweeps without fewer crossings before giving up
SWAP_ROUNDS = 8
SWAP_LIMIT = 1500  # vertices above which swapping would take too long


def reduce_crossings(found: Layered) -> None:
    """Reorder the layers in place; the best order met is kept."""
    best, fewest, stale = _copy(found.layers), count_crossings(found), 0
    for sweep in range(SWEEPS):
        if fewest == 0 or stale >= PATIENCE:
            break
        _sweep(found, down=sweep % 2 == 0)
        crossings = count_crossings(found)
        if crossings < fewest:
            best, fewest, stale = _copy(found.layers), crossings, 0
        else:
            stale += 1
    found.layers = best
    if fewest and len(found.level) <= SWAP_LIMIT:
        _swap_neighbours(found)


def count_crossings(found: Layered) -> int:
    """Pairs of links that cross, over all pairs of neighbouring layers."""
    place = places(found)
    total = 0
    for upper, lower in zip(found.layers[:-1], found.layers[1:], strict=True):
        ends = [place[b] for vertex in upper for b in sorted(found.below[vertex], key=lambda v: place[v])]
        total += _inversions(ends, len(lower))
    return total


def places(found: Layered) -> list[int]:
    """The place of every vertex in its layer."""
    place = [0] * len(found.level)
    for layer in found.layers:
        for k, vertex in enumerate(layer):
            place[vertex] = k
    return place


def _inversions(values: list[int], n: int) -> int:
    """Pairs out of order, by a tree of counts."""
    tree, total = [0] * (n + 1), 0
    for seen, value in enumerate(values):
        at_most, k = 0, value + 1
        while k > 0:
            at_most += tree[k]
            k -= k & -k
        total += seen - at_most
        k = value + 1
        while k <= n:
            tree[k] += 1
            k += k & -k
    return total


def _sweep(found: Layered, *, down: bool) -> None:
    place = places(found)
    links = found.above if down else found.below
    for layer in found.layers if down else found.layers[::-1]:
        middle = {v: _mean([place[u] for u in links[v]], place[v]) for v in layer}
        layer.sort(key=lambda v: middle[v])
        for k, vertex in enumerate(layer):
            place[vertex] = k


def _mean(values: list[int], otherwise: int) -> float:
    return sum(values) / len(values) if values else float(otherwise)


def _swap_neighbours(found: Layered) -> None:
    place = places(found)
    for _ in range(SWAP_ROUNDS):
        improved = False
        for layer in found.layers:
            for k in range(len(layer) - 1):
                left, right = layer[k], layer[k + 1]
                if _gain(found, place, left, right) > 0:
                    layer[k], layer[k + 1] = right, left
                    place[left], place[right] = k + 1, k
                    improved = True
        if not improved:
            return


def _gain(found: Layered, place: list[int], left: int, right: int) -> int:
    """How many crossings fewer when two neighbours change places."""
    gain = 0
    for links in (found.above, found.below):
        for u in links[left]:
            for v in links[right]:
                gain += (place[u] > place[v]) - (place[u] < place[v])
    return gain


def _copy(layers: list[list[int]]) -> list[list[int]]:
    return [list(layer) for layer in layers]
