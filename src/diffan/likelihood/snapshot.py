"""A refined order and the state behind it, turned into arrays and back, fits included (see `likelihood.journal`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from diffan.context import Context
from diffan.keeping import Arrays, Saved
from diffan.likelihood.journal import fits_in, state_as_arrays
from diffan.likelihood.moves import State
from diffan.likelihood.objective import Objective
from diffan.likelihood.refine import RefinedOrder
from diffan.likelihood.settings import LikelihoodSettings
from diffan.table import Table

DONE = "done"


def freeze(found: RefinedOrder) -> tuple[dict[str, Any], Arrays]:
    """As JSON values and arrays."""
    record: dict[str, Any] = {
        "phase": DONE,
        "order": list(found.order),
        "moves": [list(move) for move in found.moves],
        "parents": [sorted(parents) for parents in found.parents],
        "warnings": list(found.warnings),
        "timings": dict(found.timings),
        "state": None,
    }
    arrays: Arrays = {"trace": np.array(found.trace, dtype=np.float64)}
    if found.state is not None:
        record["state"], more = state_as_arrays(found.state)
        arrays |= more
    return record, arrays


def thaw(saved: Saved, table: Table, settings: LikelihoodSettings, context: Context) -> RefinedOrder:
    """The inverse of `freeze`, over the same table with the same settings."""
    record, arrays = saved.record, saved.arrays
    return RefinedOrder(
        order=list(record["order"]),
        trace=arrays["trace"].tolist(),
        moves=[(node, old, new) for node, old, new in record["moves"]],
        parents=[frozenset(parents) for parents in record["parents"]],
        warnings=tuple(record["warnings"]),
        timings=dict(record["timings"]),
        state=None if record["state"] is None else _state(record["state"], arrays, table, settings, context),
    )


def _state(
    record: dict[str, Any], arrays: Arrays, table: Table, settings: LikelihoodSettings, context: Context
) -> State:
    rng = np.random.default_rng()
    rng.bit_generator.state = record["rng"]
    objective = Objective(
        table.values,
        settings=settings,
        device=context.torch_device(),
        rng=rng,
        n_shadows=record["n_shadows"],
        threads=context.threads,
        scale=table.raw_scale,
    )
    objective.remember(fits_in(arrays))
    return State(
        objective,
        list(record["order"]),
        [frozenset(parents) for parents in record["parents"]],
        float(arrays["price"][0]),
        arrays["allowed"],
        arrays["must_precede"],
        [frozenset(parents) for parents in record["required"]],
        float(arrays["misfit"][0]),
    )
