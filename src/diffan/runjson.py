"""A run as plain JSON and back, checking what a hand or a disk may have changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.confidence import Confidence
from diffan.discovery import Discovery
from diffan.evidence import EdgeEvidence
from diffan.knowledge import Knowledge

SCHEMA = 1
MOST_CELLS = 2**29  # of all [d, d] arrays of a run together: 4 GiB


def to_json(result: Discovery) -> dict[str, Any]:
    """The run as plain JSON; edges are given by name, tests by column number."""
    evidence = result.evidence
    causes, effects = np.nonzero(evidence.tested)
    return {
        "format": "diffan-run",
        "schema": SCHEMA,
        "method": result.method,
        "names": list(result.names),
        "order": list(result.order),
        "edges": [
            {"source": cause, "target": effect, **facts}
            for (cause, effect), facts in result.edge_facts().items()
        ],
        "tests": {
            "cutoff": evidence.cutoff,
            "judged_by": evidence.judged_by,
            "source": causes.tolist(),
            "target": effects.tolist(),
            "p_value": _numbers(evidence.p_values[causes, effects]),
            "measures": {name: _numbers(array[causes, effects]) for name, array in evidence.measures.items()},
            "warnings": list(evidence.warnings),
        },
        "leaf_evidence": None
        if result.leaf_evidence is None
        else [_numbers(row) for row in result.leaf_evidence],
        "losses": {name: _numbers(np.asarray(curve, dtype=float)) for name, curve in result.losses.items()},
        "n_samples": result.n_samples,
        "seed": result.seed,
        "settings": dict(result.settings),
        "knowledge": result.knowledge.record(),
        "confidence": None if result.confidence is None else result.confidence.record(),
        "versions": dict(result.versions),
        "timings": dict(result.timings),
        "screened": dict(result.screened),
        "warnings": list(result.warnings),
    }


def from_json(content: dict[str, Any]) -> Discovery:
    """The inverse of `to_json`, checking what a hand or a disk may have changed."""
    names = tuple(_texts(content["names"]))
    order = _texts(content["order"])
    if sorted(order) != sorted(names):
        raise ValueError("its order does not list every name once")
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    d, tests = len(names), content["tests"]
    where = np.asarray(tests["source"], dtype=np.int64), np.asarray(tests["target"], dtype=np.int64)
    if d * d * (len(tests["measures"]) + 4) > MOST_CELLS:
        raise ValueError(f"it names {d:,} variables and {len(tests['measures'])} measures, more than fit")
    if any(((side < 0) | (side >= d)).any() for side in where):
        raise ValueError("a test names a column that is not there")
    tested = np.zeros((d, d), dtype=bool)
    tested[where] = True
    index = {name: i for i, name in enumerate(names)}
    chosen = np.zeros((d, d), dtype=bool)
    for edge in content["edges"]:
        chosen[index[edge["source"]], index[edge["target"]]] = True
    measures = {name: _filled(d, where, values, np.nan) for name, values in tests["measures"].items()}
    p_values = _filled(d, where, tests["p_value"], 1.0)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("a p-value is not between 0 and 1")
    evidence = EdgeEvidence(
        p_values=p_values,
        tested=tested,
        chosen=chosen,
        cutoff=float(tests["cutoff"]),
        measures=measures,
        warnings=tuple(_texts(tests["warnings"])),
        judged_by=str(tests.get("judged_by", "p_value")),
    )
    if evidence.judged_by != "p_value" and evidence.judged_by not in measures:
        raise ValueError("the p-values its edges were judged by are missing")
    steps = content["leaf_evidence"]
    leaf_evidence = None if steps is None else np.array([_floats(row) for row in steps]).reshape(-1, d)
    known, sure = Knowledge.from_record(content.get("knowledge", {})), content.get("confidence")
    known.refuse_unknown(names)
    result = Discovery(
        order=order,
        names=names,
        evidence=evidence,
        method=str(content["method"]),
        settings=dict(content["settings"]),
        seed=int(content["seed"]),
        n_samples=int(content["n_samples"]),
        timings={name: float(seconds) for name, seconds in content["timings"].items()},
        screened={name: float(value) for name, value in content.get("screened", {}).items()},
        warnings=tuple(_texts(content["warnings"])),
        versions={name: str(version) for name, version in content["versions"].items()},
        leaf_evidence=leaf_evidence,
        losses={name: _floats(curve) for name, curve in content["losses"].items()},
        knowledge=known,
        confidence=None if sure is None else Confidence.from_record(sure, names),
    )
    if not result.dag.respects(order):
        raise ValueError("an edge runs against the order")
    return result


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _floats(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _texts(values: list[str]) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of texts was expected")
    return values


def _filled(
    d: int,
    where: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: list[float | None],
    empty: float,
) -> npt.NDArray[np.float64]:
    array = np.full((d, d), empty)
    array[where] = _floats(values)
    return array
