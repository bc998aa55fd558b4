"""Better parents among all that a node does not lead to, wherever they stand in the order.

An order holds more than the graph found so far needs. A function of several columns may show nothing through those of them
that happen to come first, so that no move of a single variable pays; asked for among all columns but the node's own
descendants, the set is found at once, and the order gives way for free.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from diffan.constraints import closure
from diffan.likelihood.fits import Parents
from diffan.likelihood.moves import BoolArray, Move, State
from diffan.likelihood.search import in_step
from diffan.likelihood.work import Work


def rearranged(state: State, pay: float) -> Work[list[Move]]:
    """Give nodes better parents, the largest gain first, and bring the order into line; what was moved.

    Every gain must exceed `pay`, and no two may close a cycle.
    """
    objective, before = state.objective, list(state.order)
    leads_to = closure(_arrows(state))
    costs, kernels = [state.cost(node) for node in range(len(before))], list(objective.kernels)
    searches = [
        state.choose(node, [i for i in before if not leads_to[node, i]], state.parents[node], leap=True)
        for node in before
    ]
    found = dict(zip(before, (yield from in_step(searches, objective)), strict=True))
    gains = {node: costs[node] - state.cost(node, found[node]) for node in before}
    accepted = list[int]()
    for node in sorted(before, key=lambda node: (-gains[node], node)):
        if gains[node] > pay and not _closes_cycle(state, node, found[node]):
            state.parents[node] = found[node]
            accepted.append(node)
        else:
            objective.kernels[node] = kernels[node]
    if accepted:
        state.order = in_line(before, _arrows(state))
    return [
        Move(node, before.index(node), state.order.index(node), gains[node], {node: found[node]})
        for node in accepted
    ]


def _arrows(state: State) -> BoolArray:
    """[i, j]: i is a parent of j, or has to come before it."""
    arrows = state.must_precede.copy()
    for node, parents in enumerate(state.parents):
        arrows[list(parents), node] = True
    return arrows


def _closes_cycle(state: State, node: int, parents: Parents) -> bool:
    leads_to = closure(_arrows(state))
    return any(leads_to[node, i] for i in parents)


def in_line(order: list[int], arrows: BoolArray) -> list[int]:
    """The order that follows the arrows and keeps to the given one wherever they leave it free."""
    place = {node: k for k, node in enumerate(order)}
    missing = arrows.sum(axis=0)
    ready = [place[node] for node in order if not missing[node]]
    heapify(ready)
    found = list[int]()
    while ready:
        node = order[heappop(ready)]
        found.append(node)
        for child in np.flatnonzero(arrows[node]).tolist():
            missing[child] -= 1
            if not missing[child]:
                heappush(ready, place[child])
    return found
