"""Each variable regressed on the parents it was given: smooth partial effects with errors, and what is left over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from diffan.additive.fit import NodeFit, fit_node, term_effect
from diffan.additive.gram import SplineGram
from diffan.inspection.values import EffectCurve, FloatArray
from diffan.likelihood.dependence import spread_explained
from diffan.table import Table

MOST_ROWS = 5000  # of the regressions: enough for smooth curves, and a bound on the cost of long tables
SPREAD_ROWS = 1000  # of the test for dependence, whose cost grows with the square of the columns
GRID = 25  # points of a curve
TAIL = 0.01  # share of the rows beyond either end of a curve, where an interval says little

BoolArray = npt.NDArray[np.bool_]
Units = Callable[[int, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Effects:
    """The regressions of all variables on their parents, in the units of the table's columns."""

    curves: tuple[EffectCurve, ...]
    r2: FloatArray  # [d]
    rows: npt.NDArray[np.intp]  # which rows were used
    standardized: FloatArray  # [rows, d]: residuals as the table's values are scaled
    residuals: FloatArray  # [rows, d], in units


def thinned(n_rows: int, most: int) -> npt.NDArray[np.intp]:
    """Evenly spaced row numbers, all of them when they are few."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(np.intp)


def column_units(table: Table) -> tuple[FloatArray, FloatArray]:
    """(scale, centre) per column that lead from the table's values back to the units the user gave."""
    scale = table.scale if table.standardized else np.ones(table.n_variables)
    return scale, table.center


def in_units(values: FloatArray, scale: FloatArray, center: FloatArray | float) -> FloatArray:
    """Values in the units the user gave; what lies beyond the largest number becomes the largest number."""
    with np.errstate(over="ignore"):
        moved: FloatArray = np.nan_to_num(values * scale + center)
    return moved


def fit_effects(table: Table, chosen: BoolArray) -> Effects:
    """Fit every variable on its chosen parents; cost grows with the edges, not with the square of the columns."""
    rows = thinned(table.n_samples, MOST_ROWS)
    values = table.values[rows]
    scale, center = column_units(table)
    d = table.n_variables
    residuals = values - values.mean(axis=0)
    r2, found = np.zeros(d), list[EffectCurve]()
    for j in range(d):
        parents = np.flatnonzero(chosen[:, j]).tolist()
        if not parents:
            continue
        try:
            gram = SplineGram.from_values(np.ascontiguousarray(values[:, [j, *parents]]))
            fit = fit_node(gram, 0, range(1, len(parents) + 1))
        except np.linalg.LinAlgError:  # a second look must not cost the run: this variable has no curves
            continue
        r2[j] = fit.r2
        for term, parent in enumerate(parents):
            residuals[:, j] -= term_effect(gram, fit, term + 1, values[:, parent])[0]
            found.append(_curve(gram, fit, term, (parent, j), values[:, parent], scale, center))
        residuals[:, j] -= residuals[:, j].mean()
    curves = _with_dependence(found, values, residuals, chosen)
    return Effects(curves, r2, rows, residuals, in_units(residuals, scale, 0.0))


def _curve(
    gram: SplineGram,
    fit: NodeFit,
    term: int,
    edge: tuple[int, int],
    column: FloatArray,
    scale: FloatArray,
    center: FloatArray,
) -> EffectCurve:
    cause, effect = edge
    low, high = np.quantile(column, [TAIL, 1 - TAIL])
    curve, error = term_effect(gram, fit, term + 1, np.linspace(low, high, GRID))
    coefficients = fit.coefficients[term]
    power = float((coefficients**2).sum())
    return EffectCurve(
        cause=cause,
        effect=effect,
        low=float(in_units(low, scale[cause], center[cause])),
        high=float(in_units(high, scale[cause], center[cause])),
        fit=in_units(curve, scale[effect], 0.0),
        error=in_units(error, scale[effect], 0.0),
        edf=float(fit.edf[term]),
        straightness=float(coefficients[0] ** 2 / power) if power > 0 else 1.0,
        spread_share=0.0,
        spread_p_value=1.0,
    )


def _with_dependence(
    curves: list[EffectCurve], values: FloatArray, residuals: FloatArray, chosen: BoolArray
) -> tuple[EffectCurve, ...]:
    """Ask of each edge whether the residual still knows the cause."""
    if not curves:
        return ()
    picked = thinned(len(values), SPREAD_ROWS)
    shares, p_values = spread_explained(residuals[picked].T, values[picked], chosen)
    return tuple(
        replace(
            curve,
            spread_share=float(shares[curve.cause, curve.effect]),
            spread_p_value=float(p_values[curve.cause, curve.effect]),
        )
        for curve in curves
    )
