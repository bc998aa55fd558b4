r"""Smooth functions of one column: winsorised, reduced-rank natural cubic splines.

A column gets the straight line and the smoothest curves that a natural cubic spline on many knots can draw, as in a
thin-plate regression spline: with M the mass matrix of the spline over the data and K its penalty
\int f''(x) g''(x) dx, the generalised eigenvectors K v = s M v of smallest s > 0. They come out orthonormal over the
data with a diagonal penalty, and a smaller basis is a prefix of a larger one, so one Gram matrix serves all sizes.

Columns are clipped at robust fences first. A lone outlier otherwise takes a basis function for itself, which costs
power in the bulk and breaks the test's calibration when the target is heavy-tailed too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

N_KNOTS = (
    24  # enough for the ten smoothest curves: 16 to 40 knots give the same decisions on the mgcv fixtures
)
FENCE = 3.0  # in interquartile ranges beyond the quartiles: 4.7 standard deviations of a Gaussian
MAX_CLIPPED = 0.025  # and never more than this share of the rows on either side
CLOSEST_KNOTS = 1e-3  # of the range between the fences


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """Piecewise cubic functions of one column; the first is the straight line, the others ever rougher."""

    breaks: Array  # [k], increasing; values beyond the ends are clipped to them
    coefficients: Array  # [4, k - 1, width], highest power first, of (x - left break)
    penalties: Array  # [width]; 0 for the line

    @property
    def width(self) -> int:
        return int(self.coefficients.shape[2])

    def evaluate(self, values: npt.NDArray[np.floating]) -> Array:
        """The functions at the given values: [n, width]."""
        from scipy.interpolate import PPoly

        if self.width == 0:
            return np.empty((len(values), 0))
        clipped = np.clip(np.asarray(values, dtype=np.float64), self.breaks[0], self.breaks[-1])
        functions: Array = PPoly.construct_fast(self.coefficients, self.breaks, extrapolate=True)(clipped)
        return functions

    def transformed(self, matrix: Array, penalties: Array, means: Array) -> ColumnBasis:
        """The functions f -> matrix' (f - means), with their penalties."""
        moved = self.coefficients.copy()
        moved[3] -= means
        return ColumnBasis(self.breaks, np.ascontiguousarray(moved @ matrix), penalties)


def column_basis(sample: Array, width: int) -> ColumnBasis:
    """The basis for a column of which `sample` is a fair sample, with at most `width` functions.

    A column with u distinct values carries at most u - 1 functions; a constant one carries none.
    """
    from scipy.interpolate import CubicSpline

    knots = _knots(sample)
    if len(knots) < 2:
        flat = float(knots[0])
        return ColumnBasis(np.array([flat, flat + 1.0]), np.empty((4, 1, 0)), np.empty(0))
    line = (knots - knots.mean())[:, None] / (knots[-1] - knots[0])
    values, penalties = line, np.zeros(1)
    if len(knots) > 2 and width > 1:
        curves, roughness = _smoothest_curves(sample, knots, width - 1)
        values, penalties = np.hstack([line, curves]), np.append(penalties, roughness)
    return ColumnBasis(knots, CubicSpline(knots, values, bc_type="natural").c, penalties)


def _smoothest_curves(sample: Array, knots: Array, n_curves: int) -> tuple[Array, Array]:
    from scipy.interpolate import CubicSpline
    from scipy.linalg import eigh

    cardinal = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    over_data = cardinal(np.clip(sample, knots[0], knots[-1]))  # [n, k]
    mass = over_data.T @ over_data / len(sample)
    bend = cardinal(knots, 2)  # [k, k]: second derivatives at the knots, linear in between
    left, right, gap = bend[:-1], bend[1:], np.diff(knots)[:, None] / 6
    cross = left.T @ (gap * right)
    penalty = 2 * (left.T @ (gap * left) + right.T @ (gap * right)) + cross + cross.T
    roughness, vectors = eigh(penalty, mass + 1e-10 * np.trace(mass) / len(knots) * np.eye(len(knots)))
    chosen = slice(2, 2 + n_curves)  # the first two are the constant and the line
    return vectors[:, chosen], roughness[chosen]


def _knots(sample: Array) -> Array:
    """Data values half way between an even spacing and the quantiles, between the fences."""
    low, high = _fences(sample)
    clipped = np.clip(sample, low, high)
    distinct = np.unique(clipped)
    if len(distinct) > N_KNOTS:
        even = np.linspace(distinct[0], distinct[-1], N_KNOTS)
        wanted = (even + np.quantile(clipped, np.linspace(0.0, 1.0, N_KNOTS))) / 2
        above = np.clip(np.searchsorted(distinct, wanted), 1, len(distinct) - 1)
        nearest = above - (wanted - distinct[above - 1] < distinct[above] - wanted)
        distinct = np.unique(distinct[nearest])
    if len(distinct) < 2:
        return distinct
    closest = CLOSEST_KNOTS * (distinct[-1] - distinct[0])
    kept = [distinct[0]]
    for x in distinct[1:-1]:
        if x - kept[-1] > closest and distinct[-1] - x > closest:
            kept.append(x)
    return np.array([*kept, distinct[-1]])


def _fences(sample: Array) -> tuple[float, float]:
    tails = [MAX_CLIPPED, 0.25, 0.75, 1 - MAX_CLIPPED]
    far_low, q1, q3, far_high = np.quantile(sample, tails)
    if q1 == q3:  # more than half of the rows share one value: judge the tails by the distinct values
        far_low, q1, q3, far_high = np.quantile(np.unique(sample), tails)
    reach = FENCE * (q3 - q1)
    return float(max(sample.min(), min(q1 - reach, far_low))), float(
        min(sample.max(), max(q3 + reach, far_high))
    )
