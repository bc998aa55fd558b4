"""Work that asks for fits and waits for them: a generator, so that one piece can be done alone or many in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from diffan.likelihood.fits import Query

if TYPE_CHECKING:
    from diffan.likelihood.objective import Objective

P = ParamSpec("P")
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


def finished(begin: Callable[P, Work[T]]) -> Callable[P, T]:
    """The same function for one table alone: what it begins is done to its end."""

    def done(*args: P.args, **options: P.kwargs) -> T:
        return finish(begin(*args, **options))

    done.__doc__ = begin.__doc__
    return done
