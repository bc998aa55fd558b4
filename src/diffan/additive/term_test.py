r"""Whether a smooth term is zero: Wood's rank-truncated Wald test.

Wood (2013), "On p-values for smooth components of an extended generalized additive model": the term's fitted values
f are tested by f' V^{r-} f, where V is their Bayesian covariance and V^{r-} its pseudo-inverse of rank r, the effective
degrees of freedom. For fractional r = k + nu the k-th and (k+1)-th eigen-directions share the weights
[[1, rho], [rho, nu]] with rho^2 = nu (1 - nu) / 2, which gives the statistic mean r and variance 2 r. The sign of rho is
arbitrary, as eigenvectors' signs are, so the p-value is the mean over both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SMOOTHING_DF = 0.5
"""Degrees of freedom added to the reference for having chosen the smoothing parameter on the same rows. Over Gaussian,
exponential and heavy-tailed columns P(p < 0.05) under the null is 0.053 to 0.067 without them and 0.047 to 0.059 with
them (benchmarks/pruning_calibration.py); they cost 1 to 5 points of power on weak terms at a cutoff of 0.001."""


def wald_test(
    effects: Array, covariances: Array, ranks: Array, widths: npt.NDArray[np.intp], residual_df: Array
) -> tuple[Array, Array]:
    """F statistics and p-values of T terms.

    `effects` [T, width] are the coefficients in a basis that is orthonormal over the data and `covariances`
    [T, width, width] theirs, both in units of the residual standard deviation and scaled by the square root of n, so
    that they are also those of the fitted values; slots beyond `widths` [T] are zero.
    """
    from scipy.special import fdtrc

    if effects.shape[0] == 0 or effects.shape[1] == 0:
        return np.zeros(len(effects)), np.ones(len(effects))
    values, vectors = np.linalg.eigh(covariances)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]  # least penalised directions first
    scale = np.sqrt(np.maximum(values, 1e-12 * values[:, :1]))
    along = np.einsum("twe,tw->te", vectors, effects) / np.where(scale > 0, scale, np.inf)  # [T, width]

    ranks = np.clip(ranks, 1.0, np.maximum(widths, 1))
    whole = np.floor(ranks).astype(np.intp)
    part = ranks - whole
    rows = np.arange(len(effects))
    last = along[rows, whole - 1]
    following = np.where(part > 0, along[rows, np.minimum(whole, effects.shape[1] - 1)], 0.0)
    whole_sum = np.cumsum(along**2, axis=1)[rows, whole - 1]
    mean = whole_sum + part * following**2
    cross = 2 * np.sqrt(part * (1 - part) / 2) * last * following

    reference = ranks + SMOOTHING_DF * np.minimum(ranks - 1, 1.0)
    tails = [fdtrc(reference, residual_df, np.maximum(mean + c, 0.0) / reference) for c in (cross, -cross)]
    p_values = np.clip((tails[0] + tails[1]) / 2, np.finfo(np.float64).tiny, 1.0)
    nothing = widths == 0
    return np.where(nothing, 0.0, mean / ranks), np.where(nothing, 1.0, p_values)
