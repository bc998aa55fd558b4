"""What the page is told: the run as plain data, thinned to what a reader can see."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.inspection.margins import leaf_choices
from diffan.inspection.values import Inspection
from diffan.metrics import aligned, evaluate

MOST_TESTS = 20_000  # the strongest; the slider ends where others begin
MOST_LOSSES = 400  # points of a loss curve
MOST_PRECEDENCE = 200  # variables up to which the page shows a precedence matrix


def page_content(result: Discovery, truth: Dag | None = None) -> dict[str, Any]:
    """Everything the page shows, as JSON can hold it."""
    place = {name: i for i, name in enumerate(result.names)}
    return {
        "method": result.method,
        "names": list(result.names),
        "order": [place[name] for name in result.order],
        "n_samples": result.n_samples,
        "seed": result.seed,
        "cutoff": _finite(result.evidence.cutoff) or 0.0,
        "adjusted": getattr(result.evidence, "judged_by", "p_value") != "p_value",
        "transform": str(result.settings.get("transform", "none")),
        "tests": _tests(result),
        "leaves": _leaves(result),
        "losses": _losses(result.losses),
        "loss_axis": "step" if "step" in result.losses else "entry",
        "timings": {
            name: round(seconds, 4) for name, seconds in result.timings.items() if math.isfinite(seconds)
        },
        "settings": _plain(dict(result.settings)),
        "versions": dict(result.versions),
        "warnings": list(result.warnings),
        "inspection": None if result.inspection is None else _inspection(result, result.inspection),
        "required": _required(result, place),
        "precedence": _precedence(result),
        "truth": None if truth is None else _truth(result, truth),
    }


def as_script_text(content: Mapping[str, Any]) -> str:
    """JSON that no browser can take for markup, whatever the names hold."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate has no place in a file
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
    )


def _tests(result: Discovery) -> dict[str, Any]:
    evidence = result.evidence
    rows, columns = np.nonzero(evidence.tested | evidence.chosen)
    judged, kept = _judged(result)[rows, columns], evidence.chosen[rows, columns]
    strongest = np.lexsort((judged, ~kept))
    left_out = strongest[MOST_TESTS:]
    best = np.sort(strongest[:MOST_TESTS])
    rows, columns = rows[best], columns[best]
    return {
        "source": rows.tolist(),
        "target": columns.tolist(),
        "p_value": np.nan_to_num(evidence.p_values[rows, columns], nan=1.0).tolist(),
        "judged": judged[best].tolist(),
        "kept": kept[best].astype(int).tolist(),
        "measures": {
            name: _brief(values[rows, columns])
            for name, values in _measures(result).items()
            if np.isfinite(values[rows, columns]).any()
        },
        "complete_below": float(judged[left_out].min()) if len(left_out) else 1.0,
    }


def _judged(result: Discovery) -> npt.NDArray[np.float64]:
    """What the cutoff is held against: the p-values, or adjusted ones where the run was judged by those."""
    evidence = result.evidence
    by = getattr(evidence, "judged_by", "p_value")
    return np.nan_to_num(evidence.measures.get(by, evidence.p_values), nan=1.0)


def _measures(result: Discovery) -> dict[str, npt.NDArray[np.float64]]:
    """The run's own, and how often the direction came out alike where rows were resampled."""
    direction = getattr(getattr(result, "confidence", None), "direction", None)
    extra = {} if direction is None else {"direction_frequency": np.asarray(direction, dtype=np.float64)}
    return {**result.evidence.measures, **extra}


def _required(result: Discovery, place: Mapping[str, int]) -> list[list[int]]:
    """The edges that were known beforehand, where the run was told any."""
    known = getattr(getattr(result, "knowledge", None), "required", ())
    return [[place[cause], place[effect]] for cause, effect in known]


def _leaves(result: Discovery) -> list[dict[str, Any]]:
    return [
        {
            "leaf": choice.leaf,
            "second": choice.second,
            "value": _finite(float(f"{choice.value:.4g}")),
            "next": _finite(float(f"{choice.next_value:.4g}")),
            "margin": round(choice.margin, 4),
        }
        for choice in leaf_choices(result)
    ]


def _losses(losses: Mapping[str, list[float]]) -> dict[str, Any]:
    """Curves over one axis: the steps where the run has kept them, else shorter ones are spread over the longest."""
    steps = losses.get("step", [])
    curves = {name: curve for name, curve in losses.items() if name != "step" and len(curve)}
    longest = max((len(curve) for curve in curves.values()), default=0)
    found = {}
    for name, curve in curves.items():
        kept = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), MOST_LOSSES)).round().astype(int))
        stretch = (longest - 1) / max(len(curve) - 1, 1)
        x = np.asarray(steps, dtype=np.float64)[kept] if len(steps) == len(curve) else kept * stretch
        found[name] = {"x": _brief(x), "y": _brief(np.asarray(curve, dtype=np.float64)[kept])}
    return found


def _inspection(result: Discovery, seen: Inspection) -> dict[str, Any]:
    return {
        "rows": seen.rows,
        "values": [_brief(column) for column in seen.values.T],
        "residuals": [_brief(column) for column in seen.residuals.T],
        "r2": _brief(seen.r2),
        "skewness": _brief(seen.skewness),
        "kurtosis": _brief(seen.kurtosis),
        "normality": _brief(seen.normality),
        "curves": [
            {
                "cause": curve.cause,
                "effect": curve.effect,
                "low": curve.low,
                "high": curve.high,
                "fit": _brief(curve.fit),
                "error": _brief(curve.error),
                "edf": round(curve.edf, 2),
                "straightness": round(curve.straightness, 4),
                "spread_share": round(curve.spread_share, 4),
                "spread_p_value": curve.spread_p_value,
            }
            for curve in seen.curves
        ],
        "diagnostics": [
            {"topic": one.topic, "level": one.level, "text": one.text, "advice": one.advice}
            for one in seen.diagnostics
        ],
    }


def _precedence(result: Discovery) -> list[list[float | None]] | None:
    """How often each variable came before each other over resampled tables, where a run has counted it."""
    matrix = getattr(getattr(result, "confidence", None), "precedence", getattr(result, "precedence", None))
    d = len(result.names)
    if matrix is None or np.shape(matrix) != (d, d) or d > MOST_PRECEDENCE:
        return None
    return [_brief(row) for row in np.asarray(matrix, dtype=np.float64)]


def _truth(result: Discovery, truth: Dag) -> dict[str, Any]:
    true_dag, found = aligned(truth, result.dag)
    scores = evaluate(true_dag, found, result.order)
    place = {name: i for i, name in enumerate(result.names)}
    return {"edges": [[place[cause], place[effect]] for cause, effect in true_dag.edges], "scores": scores}


def _brief(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Four significant digits; what is no number becomes nothing."""
    return [_finite(float(f"{value:.4g}")) for value in values.tolist()]


def _plain(value: Any) -> Any:
    """Settings as strict JSON: a number that is none becomes nothing."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
