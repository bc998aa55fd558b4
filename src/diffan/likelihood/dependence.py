"""Do the residuals still depend on what came before? Under an additive-noise model they must not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
LEVEL = 1e-3  # after correction for the number of pairs
LEAST_SHARE = 0.05  # of the variance of |residual| that a column must explain to matter
MANY_NODES = 0.25  # share of the nodes that makes a warning


def spread_explained(
    residuals: FloatArray, values: FloatArray, earlier: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The share of |residual|'s variance that each earlier column explains, and its p-value: [d, d] for i -> j.

    Mean dependence is what the regression takes out; what is left when the model is wrong shows in the spread.
    |residual| is regressed on the column and its square, whose n R^2 is chi-square with 2 degrees of freedom when
    there is nothing. residuals [d, n], values [n, d], earlier[i, j] when i may cause j.
    """
    d, n = residuals.shape
    shares, p_values = np.zeros((d, d)), np.ones((d, d))
    size = np.abs(residuals - residuals.mean(axis=1, keepdims=True))
    size = np.argsort(np.argsort(size, axis=1), axis=1) / n - 0.5  # ranks: outliers must not decide
    for i in range(d):
        column = values[:, i]
        basis, _ = np.linalg.qr(np.column_stack([np.ones(n), column, column**2]))
        explained = (size @ basis[:, 1:]) ** 2  # [d, 2]
        share = explained.sum(axis=1) / (size**2).sum(axis=1)
        shares[i], p_values[i] = share, stats.chi2.sf(n * share, 2)
    return np.where(earlier, shares, 0.0), np.where(earlier, p_values, 1.0)


def dependence_warning(
    residuals: FloatArray, values: FloatArray, earlier: BoolArray, names: Sequence[str]
) -> str | None:
    """A sentence when the residuals of many variables still depend on earlier ones."""
    shares, p_values = spread_explained(residuals, values, earlier)
    flagged = (p_values * max(int(earlier.sum()), 1) < LEVEL) & (shares > LEAST_SHARE)
    nodes = np.flatnonzero(flagged.any(axis=0))
    if len(nodes) < max(2, MANY_NODES * len(names)):
        return None
    shown = ", ".join(repr(names[j]) for j in nodes[:5]) + (", ..." if len(nodes) > 5 else "")
    return (
        f"The noise of {len(nodes)} of {len(names)} variables ({shown}) varies with earlier variables, which an "
        "additive-noise model rules out: expect too many edges, and try a transform such as 'log' or 'rank'."
    )
