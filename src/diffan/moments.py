"""Means, standard deviations and ranges of columns from one pass over chunks of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diffan.table_checks import farthest

FloatArray = npt.NDArray[np.float64]


class Moments:
    """Chan's way of joining chunks, with deviations in place of squares, so that nothing overflows or cancels.

    Each chunk is brought to [0, 1] before anything is squared, means are kept as distances from the first value seen,
    and all of it in halves, because a difference of two finite numbers may overflow.
    """

    def __init__(self, n_columns: int) -> None:
        self.count = 0
        self.low = np.full(n_columns, np.inf)
        self.high = np.full(n_columns, -np.inf)
        self._origin = np.zeros(n_columns)
        self._mean = np.zeros(n_columns)  # half the mean, from half the origin
        self._deviation = np.zeros(n_columns)  # half the standard deviation

    @property
    def center(self) -> FloatArray:
        """The means."""
        return (self._origin * 0.5 + self._mean) * 2

    @property
    def scale(self) -> FloatArray:
        """The standard deviations, with the number of rows as divisor."""
        return self._deviation * 2

    @property
    def farthest(self) -> FloatArray:
        """How many standard deviations from its mean each column goes at the most."""
        return farthest(self.low, self.high, self.center, self.scale)

    def add(self, chunk: FloatArray) -> None:
        """Take in the rows of a chunk [m, d] of finite numbers."""
        if not len(chunk):
            return
        if not self.count:
            self._origin = chunk[0].copy()
        low, high = chunk.min(axis=0), chunk.max(axis=0)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        span = high * 0.5 - low * 0.5
        unit = (chunk * 0.5 - low * 0.5) / np.where(span > 0, span, 1.0)
        middle = unit.mean(axis=0)
        mean = (low * 0.5 - self._origin * 0.5) + middle * span
        self._join(len(chunk), mean, (unit - middle).std(axis=0) * span)

    def _join(self, count: int, mean: FloatArray, deviation: FloatArray) -> None:
        total = self.count + count
        mine, theirs = self.count / total, count / total
        apart = mean - self._mean if self.count else np.zeros_like(mean)
        within = np.hypot(np.sqrt(mine) * self._deviation, np.sqrt(theirs) * deviation)
        self._deviation = np.hypot(within, np.sqrt(mine * theirs) * np.abs(apart))
        self._mean = self._mean + theirs * apart if self.count else mean
        self.count = total
