"""From an order to parents for every node: a first pass on some rows, the last on all of them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

from diffan.constraints import Constraints
from diffan.context import Context
from diffan.likelihood.fits import Kernel, Parents, Query
from diffan.likelihood.fitting import fit_kernels
from diffan.likelihood.journal import Journal
from diffan.likelihood.misfit import left_over, misfit
from diffan.likelihood.moves import BoolArray, State
from diffan.likelihood.null import shadows_for
from diffan.likelihood.objective import Objective
from diffan.likelihood.plan import kernels_held, plan_for
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work
from diffan.table import Table

Mend = Callable[[State, bool], Work[None]]
"""Improve a state in place; told whether it is the last pass."""


def run_passes(
    order: list[int],
    table: Table,
    *,
    settings: LikelihoodSettings,
    context: Context,
    allowed: BoolArray,
    rules: Constraints,
    mend: Mend,
    timings: dict[str, float],
    journal: Journal | None = None,
) -> Work[State]:
    """The state after the last pass; each pass starts from what the one before it found.

    Passes that the journal has seen the end of are not run again, and the one it has begun goes on.
    """
    journal = journal or Journal()
    d = table.n_variables
    rng = context.rng("likelihood")
    required = [rules.parents(node) for node in range(d)]

    def one_pass(
        number: int,
        rows: int | None,
        order: list[int],
        parents: list[Parents],
        kernels: list[Kernel] | None,
    ) -> Work[State]:
        start, last, stream = perf_counter(), rows is None, journal.drawn_from(number)
        if stream is not None:
            rng.bit_generator.state = stream
        objective = Objective(
            table.values,
            settings=settings,
            device=context.torch_device(),
            rng=rng,
            max_rows=rows,
            n_shadows=shadows_for(d, settings) if last else 0,
            threads=context.threads,
            scale=table.raw_scale,
        )
        price = settings.price(last)
        state = State(objective, order, list(parents), price, allowed, rules.must_precede, required)
        if stream is not None:
            journal.resume(state)
        else:
            yield from find_parents(state, kernels=kernels)
            if settings.charge_misfit:
                yield from charge_misfit(state, table, price)
            journal.begin(number, state)
        yield from mend(state, last)
        timings[f"likelihood on {objective.n_rows} rows"] = perf_counter() - start
        return state

    parents, kernels = required, None
    if table.n_samples < 1.5 * settings.first_rows:
        return (yield from one_pass(0, None, order, parents, kernels))
    if not journal.skips(0):
        found = yield from one_pass(0, settings.first_rows, order, parents, kernels)
        order, parents, kernels = found.order, found.parents, found.objective.kernels
        del found  # and with it the stored kernels, before the next pass stores its own
    return (yield from one_pass(1, None, order, parents, kernels))


def charge_misfit(state: State, table: Table, usual: float) -> Work[bool]:
    """Parents and moves have to pay at least what the model leaves unsaid about the noise; whether that made them cheaper.

    Measured again along a better order it may only fall: a wrong order makes noise vary with earlier columns too.
    """
    before, charged = state.misfit, state.price > usual
    found = misfit((yield from left_over(state, table)))
    if charged and found >= before:
        return False
    state.misfit, state.price = found, max(usual, found)
    if charged or state.price > usual:
        yield from state.reselect(list(state.order), leap=charged)
    return charged


def find_parents(state: State, *, kernels: list[Kernel] | None = None) -> Work[None]:
    """Parents for every node within the order, and with them each node's kernel and the entropy to use.

    Where kernels come from a pass before there are parents that were leapt to, and what follows leaps again.
    """
    everyone, objective, leap = list(state.order), state.objective, kernels is None
    if kernels is None:
        yield from state.reselect(everyone, leap=False)
    else:
        objective.kernels = list(kernels)
    yield from fit_kernels(objective, state.parents)
    yield objective, [Query(node, parents) for node, parents in enumerate(state.parents)]
    objective.settle_entropy(state.parents)
    yield from state.reselect(everyone, leap=leap)
    changed = yield from fit_kernels(objective, state.parents)
    yield from state.reselect(changed, leap=leap)


def tables_at_once(n_rows: int, n_columns: int, device: torch.device, settings: LikelihoodSettings) -> int:
    """Of how many tables of that size the last pass may run in lockstep: their stored kernels share the bound of one."""
    width = n_columns + shadows_for(n_columns, settings)
    return max(
        1, kernels_held(device, settings) // plan_for(n_rows, width, device, settings).kernel_bytes(width)
    )
