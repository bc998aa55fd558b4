"""What residuals should not know: each other, and the row before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from diffan.inspection.independence import normal_scores
from diffan.inspection.values import FloatArray

BoolArray = npt.NDArray[np.bool_]
Pair = tuple[int, int]


def left_dependent(residuals: FloatArray, chosen: BoolArray, *, least: float, level: float) -> list[Pair]:
    """Unconnected pairs whose residuals are correlated, or vary in size together, strongest first."""
    n, d = residuals.shape
    scores = normal_scores(residuals)
    apart = ~(chosen | chosen.T) & np.triu(np.ones((d, d), dtype=np.bool_), 1)
    strongest = np.zeros((d, d))
    for one in (scores, normal_scores(np.abs(residuals))):
        size = np.sqrt((one**2).sum(axis=0))
        strongest = np.maximum(strongest, np.abs(one.T @ one) / np.outer(size, size).clip(min=1e-300))
    bound = max(least, _chance(n, 2 * max(int(apart.sum()), 1), level))
    pairs = np.argwhere(apart & (strongest > bound)).tolist()
    return sorted(((i, j) for i, j in pairs), key=lambda pair: (-strongest[pair], pair))


def _chance(n: int, tests: int, level: float) -> float:
    """The correlation that chance exceeds with probability `level` in that many tests."""
    from scipy import stats

    return float(stats.norm.isf(level / (2 * tests)) / np.sqrt(n))


def autocorrelation(series: FloatArray, lags: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Of each column: the autocorrelation of its normal scores that is furthest from zero, and Ljung and Box's p-value."""
    from scipy import stats

    n = len(series)
    scores = normal_scores(series)
    power = (scores**2).sum(axis=0).clip(min=1e-300)
    found = np.stack([(scores[lag:] * scores[:-lag]).sum(axis=0) / power for lag in lags])  # [lags, d]
    weights = np.array([1 / (n - lag) for lag in lags])[:, None]
    statistic = n * (n + 2) * (found**2 * weights).sum(axis=0)
    furthest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)[0]
    return furthest, np.asarray(stats.chi2.sf(statistic, len(lags)))
