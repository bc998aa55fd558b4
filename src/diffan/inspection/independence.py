"""Are two samples independent? A kernel test (HSIC) that sees any smooth dependence, not only correlation.

Gretton and others (2008): the squared Hilbert-Schmidt norm of the cross-covariance of two kernels, whose distribution
under independence is close to a gamma distribution with known moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diffan.inspection.values import FloatArray


def normal_scores(values: FloatArray) -> FloatArray:
    """Each column's ranks as normal quantiles, so that neither scale nor outliers decide; ties share theirs."""
    from scipy import stats

    ranks = stats.rankdata(values, axis=0)
    scores: FloatArray = stats.norm.ppf((ranks - 0.5) / len(values))
    return scores


@dataclass(frozen=True, eq=False)
class Sample:
    """One variable's normal scores as the test sees them; its kernel is made once."""

    scores: FloatArray  # [n]

    @classmethod
    def of(cls, values: FloatArray) -> Sample:
        return cls(normal_scores(values))

    @cached_property
    def kernel(self) -> FloatArray:
        apart = self.scores[:, None] - self.scores[None, :]
        similar: FloatArray = np.exp(-0.5 * apart * apart)
        return similar

    @cached_property
    def centred(self) -> FloatArray:
        means = self.kernel.mean(axis=0)
        centred: FloatArray = self.kernel - means - means[:, None] + means.mean()
        return centred

    @cached_property
    def size(self) -> float:
        return float(np.sqrt((self.centred**2).sum()))

    @property
    def mean_similarity(self) -> float:
        n = len(self.scores)
        return float((self.kernel.sum() - n) / (n * (n - 1)))


def dependence(one: Sample, other: Sample) -> tuple[float, float]:
    """(p-value of independence, strength from 0 to 1: the cosine between the two centred kernels)."""
    from scipy import stats

    n = len(one.scores)
    product = one.centred * other.centred
    total = float(product.sum())
    scale = one.size * other.size
    if n < 6 or scale == 0:
        return 1.0, 0.0
    squares = (product / 6) ** 2
    spread = float(squares.sum() - np.trace(squares)) / (n * (n - 1))
    variance = spread * 72 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    a, b = one.mean_similarity, other.mean_similarity
    mean = (1 + a * b - a - b) / n
    if variance <= 0 or mean <= 0:
        return 1.0, 0.0
    p_value = float(stats.gamma.sf(total / n, mean**2 / variance, scale=variance * n / mean))
    return p_value, total / scale
