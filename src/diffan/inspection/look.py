"""Put the second look together and bound what it keeps."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from diffan.discovery import Discovery
from diffan.inspection.diagnostics import diagnose
from diffan.inspection.effects import Effects, column_units, fit_effects, in_units, thinned
from diffan.inspection.values import FloatArray, Inspection
from diffan.table import Table

MOST_SAMPLED = 200  # rows kept for scatter plots
MOST_CELLS = 50_000  # rows times columns kept, so that 500 columns still make a page of a few MB
DIGITS = 5  # significant, of every number kept


def inspected(result: Discovery, table: Table, *, rows_in_order: bool = True) -> Discovery:
    """The same result with its effects fitted, its residuals sampled and its doubts written down.

    `rows_in_order` says that the rows lie as they were given, so that their sequence can be looked at.
    """
    start = perf_counter()
    effects = fit_effects(table, result.evidence.chosen)
    inspection = _inspection(result, table, effects, rows_in_order)
    timings = {**result.timings, "inspect": perf_counter() - start}
    return replace(result, inspection=inspection, timings=timings)


def _inspection(result: Discovery, table: Table, effects: Effects, rows_in_order: bool) -> Inspection:
    from scipy import stats

    scale, center = column_units(table)
    kept = thinned(len(effects.rows), max(20, min(MOST_SAMPLED, MOST_CELLS // table.n_variables)))
    inspection = Inspection(
        rows=len(effects.rows),
        values=_rounded(in_units(table.values[effects.rows[kept]], scale, center)),
        residuals=_rounded(effects.residuals[kept]),
        curves=tuple(
            replace(
                curve,
                low=float(_rounded(np.array(curve.low))),
                high=float(_rounded(np.array(curve.high))),
                fit=_rounded(curve.fit),
                error=_rounded(curve.error),
            )
            for curve in effects.curves
        ),
        r2=effects.r2,
        skewness=np.nan_to_num(stats.skew(effects.standardized, axis=0)),
        kurtosis=np.nan_to_num(stats.kurtosis(effects.standardized, axis=0)),
        normality=_normality(effects.standardized),
        diagnostics=(),
    )
    return replace(
        inspection, diagnostics=diagnose(result, table, inspection, effects, rows_in_order=rows_in_order)
    )


def _normality(residuals: FloatArray) -> FloatArray:
    from scipy import stats

    if len(residuals) < 20:  # the test's kurtosis part is not valid below
        return np.ones(residuals.shape[1])
    p_values: FloatArray = np.nan_to_num(stats.normaltest(residuals, axis=0).pvalue, nan=1.0)
    return p_values


def _rounded(values: FloatArray) -> FloatArray:
    """To a few significant digits: enough for the eye, and half the file."""
    size = np.abs(values)
    power = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = 10.0 ** np.clip(DIGITS - 1 - power, -305, 305)
    with np.errstate(over="ignore", under="ignore"):
        rounded: FloatArray = np.round(values * unit) / unit
    return np.nan_to_num(np.where(np.isfinite(rounded), rounded, values))
