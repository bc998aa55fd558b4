"""Each node's own kernel: the one that predicts it best from the parents it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diffan.likelihood.fits import Kernel, Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.search import Search, in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work

NOISY = 1.0  # ridge of a node without parents: had it a clear function of a few columns, they would have been found


def fit_kernels(objective: Objective, parent_sets: Sequence[Parents]) -> Work[list[int]]:
    """Give every node with parents its best kernel; returns the nodes whose kernel changed."""
    before = list(objective.kernels)
    with_parents = [j for j, parents in enumerate(parent_sets) if parents]
    searches = [_best_kernel(objective, j, parent_sets[j]) for j in with_parents]
    fitted = dict(zip(with_parents, (yield from in_step(searches, objective)), strict=True))
    objective.ready = _for_the_others(objective.settings, list(fitted.values()))
    found = [fitted.get(j, objective.ready) for j in range(len(parent_sets))]
    objective.kernels = found
    return [j for j, kernel in enumerate(found) if kernel != before[j]]


def _best_kernel(objective: Objective, node: int, parents: Parents) -> Search[Kernel]:
    """The steepest step along any of the grids from where it stands, again and again until none improves.

    With one parent there is no interaction to measure: such a node is made ready for a joint function, the kind whose
    parents are hardest to find.
    """
    settings, best = objective.settings, objective.kernels[node]
    grids = {
        "interaction": sorted(settings.kernel_interactions),
        "ridge": sorted(settings.kernel_ridges),
        "bandwidth": sorted(settings.kernel_bandwidths),
        "lines": sorted(settings.kernel_lines),
    }
    if len(parents) == 1:
        grids["interaction"] = grids["interaction"][-1:]
        best = best._replace(interaction=grids["interaction"][0])

    def cost(trial: Kernel) -> float:
        return objective.value(node, parents, trial) + settings.line_nats * (trial.lines > 0)

    while True:
        trials = [best, *_one_step_from(best, grids)]
        yield [Query(node, parents, kernel=trial) for trial in trials]
        found = min(trials, key=cost)
        if found == best:
            return best
        best = found


def _one_step_from(kernel: Kernel, grids: dict[str, list[float]]) -> Iterator[Kernel]:
    for name, grid in grids.items():
        place = grid.index(getattr(kernel, name))
        for there in (place - 1, place + 1):
            if 0 <= there < len(grid):
                yield kernel._replace(**{name: grid[there]})


def _for_the_others(settings: LikelihoodSettings, fitted: Sequence[Kernel]) -> Kernel:
    """For nodes without parents: ready for a joint function in noise, of the bandwidth and with the lines that most others have."""
    widths = sorted(kernel.bandwidth for kernel in fitted) or sorted(settings.kernel_bandwidths)
    lines = sorted(kernel.lines for kernel in fitted) or sorted(settings.kernel_lines)[:1]
    ridge = NOISY if NOISY in settings.kernel_ridges else max(settings.kernel_ridges)
    return Kernel(
        max(settings.kernel_interactions), ridge, widths[len(widths) // 2], lines[(len(lines) - 1) // 2]
    )
