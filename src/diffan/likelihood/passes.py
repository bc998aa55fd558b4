"""From an order to parents for every node: a first pass on some rows, the last on all of them."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from diffan.constraints import Constraints
from diffan.context import Context
from diffan.likelihood.fitting import fit_kernels
from diffan.likelihood.journal import Journal
from diffan.likelihood.moves import BoolArray, State
from diffan.likelihood.null import shadows_for
from diffan.likelihood.objective import Kernel, Objective
from diffan.likelihood.settings import LikelihoodSettings
from diffan.table import Table

Mend = Callable[[State, bool], None]
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
) -> State:
    """The state after the last pass; each pass starts from what the one before it found.

    Passes that the journal has seen the end of are not run again, and the one it has begun goes on.
    """
    journal = journal or Journal()
    d = table.n_variables
    rng = context.rng("likelihood")
    required = [rules.parents(node) for node in range(d)]
    parents, kernels = list(required), None
    few = table.n_samples >= 1.5 * settings.first_rows
    for number, rows in enumerate([settings.first_rows, None] if few else [None]):
        if journal.skips(number):
            continue
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
        )
        price = settings.edge_nats if last else settings.first_nats
        state = State(objective, order, list(parents), price, allowed, rules.must_precede, required)
        if stream is not None:
            journal.resume(state)
        else:
            find_parents(state, kernels=kernels)
            journal.begin(number, state)
        mend(state, last)
        order, parents, kernels = state.order, state.parents, objective.kernels
        timings[f"likelihood on {objective.n_rows} rows"] = perf_counter() - start
    return state


def find_parents(state: State, *, kernels: list[Kernel] | None = None) -> None:
    """Parents for every node within the order, and with them each node's kernel and the entropy to use."""
    everyone = list(state.order)
    if kernels is None:
        state.reselect(everyone, leap=False)
    else:
        state.objective.kernels = list(kernels)
    fit_kernels(state.objective, state.parents)
    state.objective.settle_entropy(state.parents)
    state.reselect(everyone, leap=True)
    state.reselect(fit_kernels(state.objective, state.parents), leap=True)
