"""Each node's own kernel: the one that predicts it best from the parents it has."""

from __future__ import annotations

from collections.abc import Sequence

from diffan.likelihood.fits import Kernel, Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.search import Search, in_step
from diffan.likelihood.work import Work

NOISY = 1.0  # ridge of a node without parents: had it a clear function of a few columns, they would have been found


def fit_kernels(objective: Objective, parent_sets: Sequence[Parents]) -> Work[list[int]]:
    """Give every node with parents its best kernel; returns the nodes whose kernel changed."""
    before = list(objective.kernels)
    searches = [_best_kernel(objective, j, parents) for j, parents in enumerate(parent_sets)]
    found = yield from in_step(searches, objective)
    objective.kernels = found
    return [j for j, kernel in enumerate(found) if kernel != before[j]]


def _best_kernel(objective: Objective, node: int, parents: Parents) -> Search[Kernel]:
    """One choice after the other, each along its grid from where it stands, until neither improves.

    With fewer than two parents there is no interaction to measure: such a node is made ready for a joint function,
    the kind whose parents are hardest to find.
    """
    settings = objective.settings
    joint = max(settings.kernel_interactions)
    if not parents:
        return Kernel(joint, NOISY if NOISY in settings.kernel_ridges else max(settings.kernel_ridges))
    best = objective.kernels[node]
    interactions: tuple[float, ...] = settings.kernel_interactions
    if len(parents) == 1:
        best, interactions = best._replace(interaction=joint), (joint,)
    grids: tuple[tuple[str, tuple[float, ...]], ...] = (
        ("ridge", tuple(sorted(settings.kernel_ridges))),
        ("interaction", tuple(sorted(interactions))),
    )
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
