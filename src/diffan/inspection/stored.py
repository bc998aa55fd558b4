"""The second look as plain JSON, read back with every surprise refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diffan.inspection.values import LEVELS, Diagnostic, EffectCurve, FloatArray, Inspection

SCHEMA = 1
_PER_CURVE = ("low", "high", "edf", "straightness", "spread_share", "spread_p_value")


def to_json(seen: Inspection, names: tuple[str, ...]) -> dict[str, Any]:
    """Samples are listed column by column; edges by column number."""
    return {
        "format": "diffan-inspection",
        "schema": SCHEMA,
        "names": list(names),
        "rows": seen.rows,
        "values": seen.values.T.tolist(),
        "residuals": seen.residuals.T.tolist(),
        "r2": seen.r2.tolist(),
        "skewness": seen.skewness.tolist(),
        "kurtosis": seen.kurtosis.tolist(),
        "normality": seen.normality.tolist(),
        "curves": [
            {
                "cause": curve.cause,
                "effect": curve.effect,
                "fit": curve.fit.tolist(),
                "error": curve.error.tolist(),
                **{name: getattr(curve, name) for name in _PER_CURVE},
            }
            for curve in seen.curves
        ],
        "diagnostics": [
            {
                "topic": one.topic,
                "level": one.level,
                "text": one.text,
                "advice": one.advice,
                "variables": list(one.variables),
                "edges": [list(edge) for edge in one.edges],
            }
            for one in seen.diagnostics
        ],
    }


def from_json(content: Any, names: tuple[str, ...]) -> Inspection:
    """The inverse of `to_json`; raises ValueError with what is wrong."""
    if not isinstance(content, dict) or content.get("format") != "diffan-inspection":
        raise ValueError("it is not the second look of a run")
    if content.get("schema") is True or content.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {content.get('schema')!r}, this diffan reads {SCHEMA}")
    if _part(content, "names", list) != list(names):
        raise ValueError("it names other variables than graph.json")
    d = len(names)
    values, residuals = (_matrix(_part(content, key, list), d) for key in ("values", "residuals"))
    if values.shape != residuals.shape:
        raise ValueError("its values and residuals differ in length")
    r2, skewness, kurtosis, normality = (
        _vector(_part(content, key, list), d) for key in ("r2", "skewness", "kurtosis", "normality")
    )
    return Inspection(
        rows=_index(_part(content, "rows", int), 2**62),
        values=values,
        residuals=residuals,
        curves=tuple(_curve(one, d) for one in _part(content, "curves", list)),
        r2=r2,
        skewness=skewness,
        kurtosis=kurtosis,
        normality=normality,
        diagnostics=tuple(_diagnostic(one, set(names)) for one in _part(content, "diagnostics", list)),
    )


def _curve(content: Any, d: int) -> EffectCurve:
    fit = _vector(_part(content, "fit", list))
    if not len(fit):
        raise ValueError("a curve has no points")
    numbers = {name: _number(_part(content, name, (int, float))) for name in _PER_CURVE}
    return EffectCurve(
        cause=_index(_part(content, "cause", int), d),
        effect=_index(_part(content, "effect", int), d),
        fit=fit,
        error=_vector(_part(content, "error", list), len(fit)),
        **numbers,
    )


def _diagnostic(content: Any, names: set[str]) -> Diagnostic:
    topic, level, text, advice = (_part(content, key, str) for key in ("topic", "level", "text", "advice"))
    variables, edges = _part(content, "variables", list), _part(content, "edges", list)
    if level not in LEVELS:
        raise ValueError(f"a diagnostic has the unknown level {level!r}")
    if not all(isinstance(edge, list) and len(edge) == 2 for edge in edges):
        raise ValueError("a diagnostic's edges are not pairs")
    mentioned = [*variables, *(name for edge in edges for name in edge)]
    if not all(isinstance(name, str) and name in names for name in mentioned):
        raise ValueError("a diagnostic names a variable that is not there")
    pairs = tuple((edge[0], edge[1]) for edge in edges)
    return Diagnostic(topic, level, text, advice, tuple(variables), pairs)


def _part(content: Any, key: str, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(content, dict) or key not in content:
        raise ValueError(f"{key!r} is missing")
    part = content[key]
    if not isinstance(part, kind) or isinstance(part, bool):
        raise ValueError(f"{key!r} has the wrong type")
    return part


def _matrix(columns: list[Any], d: int) -> FloatArray:
    if len(columns) != d or not all(isinstance(column, list) for column in columns):
        raise ValueError(f"{d} columns of numbers were expected")
    length = len(columns[0]) if columns else 0
    return np.array([_vector(column, length) for column in columns]).reshape(d, length).T


def _vector(values: list[Any], length: int | None = None) -> FloatArray:
    if length is not None and len(values) != length:
        raise ValueError(f"{length} numbers were expected, {len(values)} came")
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number was expected")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a finite number was expected")
    return number


def _index(value: int, end: int) -> int:
    if not 0 <= value < end:
        raise ValueError("a number lies outside its range")
    return value
