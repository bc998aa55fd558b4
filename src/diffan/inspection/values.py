"""What a second look at a run keeps: curves, a thinned sample of rows, and diagnostics in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Level = Literal["fine", "note", "doubt"]
LEVELS: tuple[Level, ...] = ("fine", "note", "doubt")


@dataclass(frozen=True, eq=False)
class EffectCurve:
    """The additive part of one edge: how the effect moves with the cause when the other parents stay."""

    cause: int
    effect: int
    low: float  # the ends of an even grid, in the cause's units
    high: float
    fit: FloatArray  # [g], in the effect's units, mean zero over the rows
    error: FloatArray  # [g]: standard error; fit +- 2 errors is the interval shown
    edf: float  # effective degrees of freedom
    straightness: float  # share of the curve's variance that a straight line carries
    spread_share: float  # share of |residual|'s variance that the cause still explains
    spread_p_value: float  # of that share being zero

    def grid(self) -> FloatArray:
        return np.linspace(self.low, self.high, len(self.fit))


@dataclass(frozen=True)
class Diagnostic:
    """One question to the run, its answer in a sentence and what to do about it."""

    topic: str
    level: Level  # "doubt" is a reason not to believe, "note" one to look twice
    text: str
    advice: str  # empty when there is nothing to do
    variables: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Inspection:
    """The second look; arrays over variables follow the run's `names`."""

    rows: int  # rows the regressions used
    values: FloatArray  # [k, d]: evenly spaced rows of the table, in its units after the transform
    residuals: FloatArray  # [k, d]: of each variable given its parents, same rows and units
    curves: tuple[EffectCurve, ...]
    r2: FloatArray  # [d]: share of the variance that the parents explain additively; 0 without parents
    skewness: FloatArray  # [d], of the residuals
    kurtosis: FloatArray  # [d], excess, of the residuals
    normality: FloatArray  # [d]: p-value of D'Agostino and Pearson's test of the residuals
    diagnostics: tuple[Diagnostic, ...]
