"""Edges that fit neither way round: what is left of the effect depends on the cause, and the other way round too.

In an additive-noise model one of the two residuals is independent of what it was regressed on. When neither is, the
pair is not cause and effect with noise added: a hidden common cause, feedback, a badly measured cause, selected rows or
noise that is not additive. Which of these it is cannot be told from the table.

Regressions are kernel ridge, so that interactions of parents are not taken for dependence, and residuals are those of
rows left out, so that flexibility does not hide it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diffan.inspection.effects import thinned
from diffan.inspection.independence import Sample, dependence
from diffan.inspection.values import FloatArray

ROWS = 400  # choice: a regression then takes some 20 ms, and strong dependence shows
FEWEST_ROWS = 100
MOST_EDGES = 100  # looked at, those with the clearest evidence first
LEVEL = 1e-3  # of each question, after correction for the number of tests in it
STRENGTH = 0.05  # measured: above what skewed noise alone gives in simulated tables (docs/assumptions.md)
RIDGES = (0.03, 0.1, 0.3, 1.0)

BoolArray = npt.NDArray[np.bool_]
Edge = tuple[int, int]


def neither_way(values: FloatArray, chosen: BoolArray, p_values: FloatArray) -> tuple[list[Edge], int]:
    """(the edges that fit neither way round, how many edges were looked at)."""
    edges = sorted(((i, j) for i, j in np.argwhere(chosen).tolist()), key=lambda edge: (p_values[edge], edge))
    edges = edges[:MOST_EDGES]
    if len(values) < FEWEST_ROWS or not edges:
        return [], 0
    some = values[thinned(len(values), ROWS)]
    spread = some.std(axis=0)
    some = (some - some.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    parents = [np.flatnonzero(column).tolist() for column in chosen.T]
    found: list[Edge] = []
    for effect in sorted({effect for _, effect in edges}):
        left = Sample.of(residual(some[:, effect], some[:, parents[effect]]))
        for cause in sorted(cause for cause, other in edges if other == effect):
            if not _dependent(left, Sample.of(some[:, cause]), len(edges)):
                continue
            turned = residual(some[:, cause], some[:, [effect, *parents[cause]]])
            if _dependent(Sample.of(turned), Sample.of(some[:, effect]), len(edges)):
                found.append((cause, effect))
    return found, len(edges)


def _dependent(one: Sample, other: Sample, tests: int) -> bool:
    p_value, strength = dependence(one, other)
    return p_value * tests < LEVEL and strength > STRENGTH


def residual(target: FloatArray, regressors: FloatArray) -> FloatArray:
    """What is left of a row when all others predict it: kernel ridge, with the ridge that predicts best."""
    values, vectors = np.linalg.eigh(_kernel(regressors))
    turned = vectors.T @ target
    candidates = []
    for ridge in RIDGES:
        inverse = 1 / (values + ridge)
        diagonal = (vectors**2) @ inverse
        candidates.append((vectors @ (inverse * turned)) / diagonal)
    best: FloatArray = min(candidates, key=lambda left: float((left**2).mean()))
    return best


def _kernel(regressors: FloatArray) -> FloatArray:
    """Half a sum over the columns, half their product: additive functions and joint ones."""
    n, count = regressors.shape
    added, distance = np.zeros((n, n)), np.zeros((n, n))
    for column in regressors.T:
        apart = (column[:, None] - column[None, :]) ** 2
        added += np.exp(-apart / 2)
        distance += apart
    kernel: FloatArray = 0.5 * added / count + 0.5 * np.exp(-distance / (2 * count))
    return kernel
