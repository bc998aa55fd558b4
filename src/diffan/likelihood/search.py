"""Searches that ask for fits and wait, run side by side so that the fits come in large batches.

A search asks for fits over one objective. Work is made of searches and says which objective it asks; several pieces of
it, over tables with as many rows, run in lockstep: what all of them ask for at the same moment is solved in one batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from diffan.likelihood.fits import Query
from diffan.likelihood.objective import Objective, prepare_together
from diffan.likelihood.work import Work

T = TypeVar("T")
Search = Generator[list[Query], None, T]
"""Yields the queries it needs answered before it can go on; returns its result."""


def in_step(searches: Sequence[Search[T]], objective: Objective) -> Work[list[T]]:
    """Run all searches to their ends; whatever they ask for at the same time is computed together."""
    results: dict[int, T] = {}
    waiting = dict(enumerate(searches))
    while waiting:
        asked: list[Query] = []
        for k, search in list(waiting.items()):
            try:
                queries = next(search)
                while all(map(objective.knows, queries)):
                    queries = next(search)
                asked += queries
            except StopIteration as stop:
                results[k] = stop.value
                del waiting[k]
        if asked:
            yield objective, asked
    return [results[k] for k in range(len(searches))]


def in_lockstep(works: Sequence[Work[T]]) -> Iterator[tuple[int, T]]:
    """Do all pieces of work, what they ask for at the same moment together; (place, result) as each ends."""
    waiting = dict(enumerate(works))
    while waiting:
        asked = []
        for place, work in list(waiting.items()):
            try:
                asked.append(next(work))
            except StopIteration as stop:
                del waiting[place]
                yield place, stop.value
        prepare_together(asked)
