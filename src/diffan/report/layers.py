"""Which layer each node of a component lies on, and the bends that long edges pass through.

This and the files `crossings`, `coordinates` and `layout` are written again in `assets/layout.js`, because the page lays
the graph out anew when its cutoff moves; a test in a browser holds both to the same places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

Edge = tuple[int, int]
PASSES = 4  # rounds of pulling nodes towards the ends of their edges
SMALL = 12  # nodes a layer may always hold
BREADTH = 1.2  # and this many square roots of the component's size


@dataclass
class Layered:
    """One component: real nodes first, then the bends; every link joins neighbouring layers."""

    n_nodes: int
    layers: list[list[int]]  # vertices from left to right, causes on top
    level: list[int]  # layer of each vertex
    above: list[list[int]]  # neighbours on the layer above
    below: list[list[int]]
    chains: list[list[int]]  # per edge: its source, its bends, its target

    def is_bend(self, vertex: int) -> bool:
        return vertex >= self.n_nodes


def layered(n_nodes: int, edges: Sequence[Edge]) -> Layered:
    """Layers by the longest path from the causes, edges kept short, each long edge cut into links."""
    level = _levels(n_nodes, edges)
    above: list[list[int]] = [[] for _ in range(n_nodes)]
    below: list[list[int]] = [[] for _ in range(n_nodes)]
    chains: list[list[int]] = []
    for source, target in edges:
        chain = [source]
        for between in range(level[source] + 1, level[target]):
            chain.append(len(level))
            level.append(between)
            above.append([])
            below.append([])
        chain.append(target)
        chains.append(chain)
        for upper, lower in itertools.pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    found = Layered(n_nodes, [], level, above, below, chains)
    found.layers = _first_order(found)
    return found


def _levels(n_nodes: int, edges: Sequence[Edge]) -> list[int]:
    parents: list[list[int]] = [[] for _ in range(n_nodes)]
    children: list[list[int]] = [[] for _ in range(n_nodes)]
    for source, target in edges:
        parents[target].append(source)
        children[source].append(target)
    # Nodes are numbered along the causal order, so one pass reaches every parent before its child.
    room = _Room(n_nodes)
    level = [0] * n_nodes
    for node in range(n_nodes):
        level[node] = room.take_from(max((level[p] + 1 for p in parents[node]), default=0), +1)
    for _ in range(PASSES):
        for node in range(n_nodes - 1, -1, -1):
            if len(children[node]) > len(parents[node]):
                room.leave(level[node])
                level[node] = room.take_from(min(level[c] for c in children[node]) - 1, -1)
    lowest = min(level, default=0)
    return [one - lowest for one in level]


class _Room:
    """How many nodes a layer may hold: in large components a long row would make the drawing a ribbon."""

    def __init__(self, n_nodes: int) -> None:
        self._most = max(SMALL, math.ceil(BREADTH * math.sqrt(n_nodes)))
        self._taken: dict[int, int] = {}

    def take_from(self, level: int, step: int) -> int:
        """The first layer with room, from this one on; a node that had a place always finds one."""
        while self._taken.get(level, 0) >= self._most:
            level += step
        self._taken[level] = self._taken.get(level, 0) + 1
        return level

    def leave(self, level: int) -> None:
        self._taken[level] -= 1


def _first_order(found: Layered) -> list[list[int]]:
    """Vertices in the order a walk down from the causes meets them: whole families stay together."""
    layers: list[list[int]] = [[] for _ in range(max(found.level, default=-1) + 1)]
    seen = [False] * len(found.level)
    for start in range(found.n_nodes):
        if found.above[start]:
            continue
        waiting = [start]
        while waiting:
            vertex = waiting.pop()
            if seen[vertex]:
                continue
            seen[vertex] = True
            layers[found.level[vertex]].append(vertex)
            waiting.extend(reversed(found.below[vertex]))
    return layers
