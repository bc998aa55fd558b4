"""Work that asks for fits and waits for them: a generator, so that one piece can be done alone or many in lockstep."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from diffan.likelihood.fits import Query

if TYPE_CHECKING:
    from diffan.likelihood.objective import Objective

T = TypeVar("T")
Work = Generator[tuple["Objective", list[Query]], None, T]
"""Yields an objective and the queries it must have answered before the work goes on; returns its result."""


def finish(work: Work[T]) -> T:
    """Do one piece of work to its end."""
    while True:
        try:
            objective, queries = next(work)
        except StopIteration as stop:
            result: T = stop.value
            return result
        objective.prepare(queries)
