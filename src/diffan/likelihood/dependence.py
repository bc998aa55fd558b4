"""Do the residuals still depend on what came before? Under an additive-noise model they must not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
LEVEL = 1e-3  # choice: of the chance to see any dependence where there is none, all pairs together
LEAST_SHARE = 0.05  # of the variance of |residual| that a column must explain to matter; choice
FLAT = 1e-9  # of a squared column's length: when no more than that is left beside the column, it is a straight line


def spread_explained(
    residuals: FloatArray, values: npt.NDArray[np.floating], earlier: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The share of |residual|'s variance that each earlier column explains, and its p-value: [d, d] for i -> j.

    Mean dependence is what the regression takes out; what is left when the model is wrong shows in the spread.
    |residual| is regressed on the column and its square, whose n R^2 is chi-square with 2 degrees of freedom when
    there is nothing. residuals [d, n], values [n, d], earlier[i, j] when i may cause j.
    """
    n, values = residuals.shape[1], np.asarray(values, dtype=np.float64)
    size = np.abs(residuals - residuals.mean(axis=1, keepdims=True))
    size = np.argsort(np.argsort(size, axis=1), axis=1) / n  # ranks: outliers must not decide
    size -= size.mean(axis=1, keepdims=True)
    line = _unit(values - values.mean(axis=0), 1.0)  # [n, d]
    square = line**2 - (line**2).mean(axis=0)
    bend = _unit(square - line * (line * square).sum(axis=0), np.linalg.norm(square, axis=0))
    explained = (line.T @ size.T) ** 2 + (bend.T @ size.T) ** 2  # [d, d]
    shares = explained / (size**2).sum(axis=1)
    return np.where(earlier, shares, 0.0), np.where(earlier, np.exp(-0.5 * n * shares), 1.0)


def _unit(columns: FloatArray, beside: float | FloatArray) -> FloatArray:
    """The columns with length one; zeros where nothing is left of them."""
    length = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(length > FLAT * np.asarray(beside), length, np.inf))
