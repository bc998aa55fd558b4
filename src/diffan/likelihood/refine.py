"""Mend an order: move single variables while the likelihood gains more than a move must pay, then rearrange.

A first pass on some of the rows makes the large moves cheaply; the last pass, on all rows, mends the rest, and gives
variables better parents from anywhere. No move is accepted that does not lower the penalised objective, sum over nodes
of L(j | P_j) + price * |P_j|, where P_j are the parents found among the nodes before j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from diffan.constraints import Constraints, earlier
from diffan.context import Context
from diffan.errors import InputError
from diffan.keeping import Stage
from diffan.likelihood.fits import Parents
from diffan.likelihood.journal import Journal
from diffan.likelihood.moves import BoolArray, Move, State, best_move
from diffan.likelihood.passes import charge_misfit, run_passes
from diffan.likelihood.rearranging import rearranged
from diffan.likelihood.search import in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.straight import start_sorted
from diffan.likelihood.work import Work, finished
from diffan.progress import Task
from diffan.table import Table


@dataclass(frozen=True, eq=False)
class RefinedOrder:
    """The mended order, the objective after every sweep over all rows, and what `select` can start from."""

    order: list[int]
    trace: list[float]  # the penalised objective on all rows: before the first sweep there, then after each
    # (variable, old place, new place), first pass included; rearrangements move others along, which is not told
    moves: list[tuple[int, int, int]]
    parents: list[Parents]  # of each node, as far as the refinement needed them
    warnings: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    state: State | None = field(default=None, repr=False)


def refining(
    order: Sequence[int],
    table: Table,
    *,
    settings: LikelihoodSettings,
    context: Context,
    neighbours: BoolArray | None = None,
    place: Stage | None = None,
) -> Work[RefinedOrder]:
    """Mend `order`, within what the context's constraints allow; the given order has to obey them already.

    `neighbours[i, j]` says that i may be a parent of j at all; with many variables it keeps the search to those that
    a screen found dependent. Progress is left at `place` after each sweep, and taken up from there.
    """
    d = table.n_variables
    rules = context.rules(d)
    start = checked_order(order, d)
    require_obeyed(start, rules)
    journal = Journal(place)
    timings: dict[str, float] = {}
    with context.progress.task("refine") as task:

        def mend(state: State, last: bool) -> Work[None]:
            if journal.number == 0 and not journal.trace:
                yield from start_sorted(state, table, rules, settings.price(last))
            yield from _descend(state, table, settings, task, journal, last)

        state = yield from run_passes(
            start,
            table,
            settings=settings,
            context=context,
            allowed=(checked_square(neighbours, d, "neighbours", default=True) & rules.permitted)
            | rules.required,
            rules=rules,
            mend=mend,
            timings=timings,
            journal=journal,
        )
    return RefinedOrder(
        list(state.order), journal.trace, journal.moves, list(state.parents), timings=timings, state=state
    )


refine = finished(refining)


def _descend(
    state: State, table: Table, settings: LikelihoodSettings, task: Task, journal: Journal, last: bool
) -> Work[None]:
    """Sweep over all variables until no move pays; on all rows, until no rearrangement does either.

    What a misfit was charged is then measured anew, and the sweeps go on if it has fallen.
    """
    move, price = settings.move_nats if last else settings.first_nats, settings.price(last)
    if not journal.trace:
        journal.trace.append(state.total())
    for _ in range(len(journal.trace) - 1, settings.max_sweeps):
        pay = max(move, state.misfit)
        accepted = yield from _moved(state, pay)
        if not accepted and last:
            accepted = yield from rearranged(state, pay)
        charged = state.price > price
        if not accepted and not (charged and (yield from charge_misfit(state, table, price))):
            break
        journal.swept(state, accepted)
        task.advance(note=f"{len(journal.moves)} moves, {state.objective.n_fits} fits")


def _moved(state: State, pay: float) -> Work[list[Move]]:
    """Make the moves that pay most, none of which touches another; what was moved."""
    searches = [best_move(state, node) for node in state.order]
    moves = yield from in_step(searches, state.objective)
    found = [move for move in moves if move is not None and move.gain > pay]
    accepted: list[Move] = []
    for move in sorted(found, key=lambda m: -m.gain):
        if not any(move.overlaps(other) for other in accepted):
            accepted.append(move)
    for move in accepted:
        state.order.remove(move.node)
        state.order.insert(move.new, move.node)
        for node, parents in move.parents.items():
            state.parents[node] = parents
    yield from state.reselect(sorted({node for move in accepted for node in move.parents}), leap=True)
    return accepted


def checked_order(order: Sequence[int], d: int) -> list[int]:
    """The order as plain numbers; refused unless it names every column once."""
    plain = [int(i) for i in order]
    if sorted(plain) != list(range(d)):
        raise InputError(f"An order of {d} columns must hold each of 0 to {d - 1} once. Got {plain} instead.")
    return plain


def checked_square(matrix: BoolArray | None, d: int, name: str, *, default: bool) -> BoolArray:
    """A [d, d] table of yes and no with an empty diagonal; all `default` when None is given."""
    given = np.full((d, d), default) if matrix is None else np.asarray(matrix)
    if given.shape != (d, d):
        raise InputError(f"The {name!r} parameter must have shape ({d}, {d}). Got {given.shape} instead.")
    return given.astype(np.bool_) & ~np.eye(d, dtype=np.bool_)


def require_obeyed(order: list[int], rules: Constraints) -> None:
    """Refuse an order to mend that puts some column before one that has to precede it."""
    against = np.argwhere(rules.must_precede & ~earlier(order))
    if len(against):
        first, second = against[0]
        raise InputError(
            f"The order to refine must obey what is known: column {first} has to come before {second}. "
            "Mend the order first."
        )
