"""A refined order and the state behind it, turned into arrays and back.

The fits are kept too, not only what they led to: whoever goes on from here then asks for exactly the fits that an
undisturbed run would ask for next, in the same batches, and gets the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diffan.context import Context
from diffan.keeping import Arrays, Saved
from diffan.likelihood.moves import State
from diffan.likelihood.objective import Objective
from diffan.likelihood.refine import RefinedOrder
from diffan.likelihood.settings import LikelihoodSettings
from diffan.table import Table


def freeze(found: RefinedOrder) -> tuple[dict[str, Any], Arrays]:
    """As JSON values and arrays."""
    record: dict[str, Any] = {
        "order": list(found.order),
        "moves": [list(move) for move in found.moves],
        "parents": [sorted(parents) for parents in found.parents],
        "warnings": list(found.warnings),
        "timings": dict(found.timings),
        "state": None,
    }
    arrays: Arrays = {"trace": np.array(found.trace, dtype=np.float64)}
    state = found.state
    if state is not None:
        record["state"] = {
            "order": list(state.order),
            "parents": [sorted(parents) for parents in state.parents],
            "required": [sorted(parents) for parents in state.required],
            "rng": state.objective.drawn_from,
            "n_shadows": state.objective.n_shadows,
        }
        arrays |= {"price": np.array([state.price])}
        arrays |= {"allowed": state.allowed, "must_precede": state.must_precede}
        arrays |= {f"objective.{name}": values for name, values in state.objective.memory().items()}
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
    )
    start = "objective."
    known = {name[len(start) :]: values for name, values in arrays.items() if name.startswith(start)}
    objective.remember(known)
    return State(
        objective,
        list(record["order"]),
        [frozenset(parents) for parents in record["parents"]],
        float(arrays["price"][0]),
        arrays["allowed"],
        arrays["must_precede"],
        [frozenset(parents) for parents in record["required"]],
    )
