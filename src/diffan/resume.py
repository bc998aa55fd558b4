"""Stages that leave their result at a checkpoint, and take it from there when it was left before."""

from __future__ import annotations

from typing import Any

import numpy as np

from diffan.algorithm import EdgeStage, OrderStage
from diffan.context import Context
from diffan.evidence import EdgeEvidence
from diffan.keeping import Arrays, Saved
from diffan.ordering.result import Ordering
from diffan.table import Table


def kept_order(find_order: OrderStage) -> OrderStage:
    """The same stage, computed once for each checkpoint."""

    def find_or_load(table: Table, context: Context) -> Ordering:
        place = context.keeper.stage("order")
        saved = place.load()
        if saved is not None:
            return _ordering(saved)
        found = find_order(table, context)
        place.save(*_of_ordering(found))
        return found

    return find_or_load


def kept_edges(find_edges: EdgeStage) -> EdgeStage:
    """The same stage, computed once for each checkpoint."""

    def find_or_load(ordering: Ordering, table: Table, context: Context) -> EdgeEvidence:
        place = context.keeper.stage("edges")
        saved = place.load()
        if saved is not None:
            return _evidence(saved)
        found = find_edges(ordering, table, context)
        place.save(*_of_evidence(found))
        return found

    return find_or_load


def _of_ordering(found: Ordering) -> tuple[dict[str, Any], Arrays]:
    record = {
        "order": [int(i) for i in found.order],
        "timings": found.timings,
        "screened": found.screened,
        "warnings": list(found.warnings),
        "losses": list(found.losses),
        "model": list(found.model),
    }
    arrays: Arrays = {f"losses.{name}": np.asarray(curve, float) for name, curve in found.losses.items()}
    arrays |= {f"model.{name}": value for name, value in found.model.items()}
    if found.evidence is not None:
        arrays["evidence"] = found.evidence
    if found.candidates is not None:
        arrays["candidates"] = found.candidates
    if found.neighbours is not None:
        arrays["neighbours"] = found.neighbours
    return record, arrays


def _ordering(saved: Saved) -> Ordering:
    record, arrays = saved.record, saved.arrays
    return Ordering(
        order=list(record["order"]),
        evidence=arrays.get("evidence"),
        candidates=arrays.get("candidates"),
        neighbours=arrays.get("neighbours"),
        losses={name: arrays[f"losses.{name}"].tolist() for name in record["losses"]},
        timings=dict(record["timings"]),
        screened=dict(record["screened"]),
        warnings=tuple(record["warnings"]),
        model={name: arrays[f"model.{name}"] for name in record["model"]},
    )


def _of_evidence(found: EdgeEvidence) -> tuple[dict[str, Any], Arrays]:
    record = {
        "warnings": list(found.warnings),
        "measures": list(found.measures),
        "judged_by": found.judged_by,
    }
    arrays: Arrays = {f"measure.{name}": values for name, values in found.measures.items()}
    arrays |= {"p_values": found.p_values, "tested": found.tested, "chosen": found.chosen}
    return record, arrays | {"cutoff": np.array([found.cutoff])}


def _evidence(saved: Saved) -> EdgeEvidence:
    record, arrays = saved.record, saved.arrays
    return EdgeEvidence(
        p_values=arrays["p_values"],
        tested=arrays["tested"],
        chosen=arrays["chosen"],
        cutoff=float(arrays["cutoff"][0]),
        measures={name: arrays[f"measure.{name}"] for name in record["measures"]},
        warnings=tuple(record["warnings"]),
        judged_by=record["judged_by"],
    )
