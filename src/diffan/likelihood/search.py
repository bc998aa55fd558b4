"""Searches that ask for fits and wait, run side by side so that the fits come in large batches."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from diffan.likelihood.objective import Objective, Query

T = TypeVar("T")
Search = Generator[list[Query], None, T]
"""Yields the queries it needs answered before it can go on; returns its result."""


def in_step(searches: Sequence[Search[T]], objective: Objective) -> list[T]:
    """Run all searches to their ends; whatever they ask for at the same time is computed together."""
    results: dict[int, T] = {}
    waiting = dict(enumerate(searches))
    while waiting:
        asked: list[Query] = []
        for k, search in list(waiting.items()):
            try:
                queries = next(search)
                while all(objective.knows(query) for query in queries):
                    queries = next(search)
                asked += queries
            except StopIteration as stop:
                results[k] = stop.value
                del waiting[k]
        objective.prepare(asked)
    return [results[k] for k in range(len(searches))]
