"""Each node's own kernel: the one that predicts it best from the parents it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diffan.likelihood.objective import Kernel, Objective, Parents, Query
from diffan.likelihood.search import Search, in_step

NOISY = 1.0  # ridge of a node without parents: had it a clear function of a few columns, they would have been found


def fit_kernels(
    objective: Objective, parent_sets: Sequence[Parents], nodes: Iterable[int] | None = None
) -> list[int]:
    """Give these nodes, or all, their best kernels for their parents; returns those whose kernel changed."""
    asked = list(range(len(parent_sets)) if nodes is None else nodes)
    found = in_step([_best_kernel(objective, node, parent_sets[node]) for node in asked], objective)
    changed = [node for node, kernel in zip(asked, found, strict=True) if kernel != objective.kernels[node]]
    for node, kernel in zip(asked, found, strict=True):
        objective.kernels[node] = kernel
    return changed


def _best_kernel(objective: Objective, node: int, parents: Parents) -> Search[Kernel]:
    """One choice after the other, each along its grid from where it stands, until neither improves.

    A node without parents has nothing to measure: it is made ready for a noisy joint function, the kind whose
    parents are hardest to find.
    """
    settings = objective.settings
    ridges, interactions = sorted(settings.kernel_ridges), sorted(settings.kernel_interactions)
    if not parents:
        return Kernel(interactions[-1], min(ridges, key=lambda ridge: abs(ridge - NOISY)))
    best = objective.kernels[node]
    grids = (("ridge", tuple(ridges)), ("interaction", tuple(interactions)))
    while True:
        start = best
        for name, grid in grids:
            for step in (1, -1):
                best = yield from _climb(objective, node, parents, best, name, grid, step)
        if best == start:
            return best


def _climb(
    objective: Objective,
    node: int,
    parents: Parents,
    best: Kernel,
    name: str,
    grid: tuple[float, ...],
    step: int,
) -> Search[Kernel]:
    place = grid.index(getattr(best, name)) + step
    while 0 <= place < len(grid):
        trial = best._replace(**{name: grid[place]})
        yield [Query(node, parents, kernel=best), Query(node, parents, kernel=trial)]
        if objective.value(node, parents, trial) >= objective.value(node, parents, best):
            return best
        best, place = trial, place + step
    return best
