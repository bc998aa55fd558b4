"""The regressions of many nodes on worker processes or a Dask cluster, each sent with its part of the Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from diffan.additive.fit import NodeFit, Regression, fit_nodes
from diffan.additive.gram import SplineGram
from diffan.executors import run_tasks

NODES_A_TASK = 8  # choice: with 20 candidates each, a part of the Gram matrix of about 15 MB


@dataclass(frozen=True, eq=False)
class _Part:
    """Some regressions, over the columns that they need."""

    gram: SplineGram
    columns: tuple[int, ...]  # where the part's columns are in the table
    regressions: tuple[Regression, ...]  # by the part's columns


def fit_nodes_elsewhere(
    gram: SplineGram, regressions: Sequence[Regression], *, workers: int = 0, scheduler: str | None = None
) -> Iterator[NodeFit]:
    """What `fit_nodes` gives, up to rounding, in the same order; a worker that dies is replaced."""
    parts = [
        list(regressions[first : first + NODES_A_TASK]) for first in range(0, len(regressions), NODES_A_TASK)
    ]
    tasks = (_part(gram, part) for part in parts)
    found: dict[int, list[NodeFit]] = {}
    following = 0
    for index, outcome in run_tasks(_fit, tasks, workers=workers, scheduler=scheduler):
        if isinstance(outcome, Exception):
            raise outcome
        found[index] = outcome
        while following in found:
            yield from found.pop(following)
            following += 1


def _part(gram: SplineGram, regressions: Sequence[Regression]) -> _Part:
    columns = sorted({column for target, parents in regressions for column in (target, *parents)})
    place = {column: k for k, column in enumerate(columns)}
    renamed = tuple((place[target], tuple(place[p] for p in parents)) for target, parents in regressions)
    return _Part(gram.restricted(columns), tuple(columns), renamed)


def _fit(part: _Part) -> list[NodeFit]:
    return [
        replace(
            fit,
            target=part.columns[fit.target],
            parents=tuple(part.columns[parent] for parent in fit.parents),
        )
        for fit in fit_nodes(part.gram, part.regressions)
    ]
