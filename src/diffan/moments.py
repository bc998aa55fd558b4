"""Means, standard deviations and ranges of columns from one pass over chunks of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Moments:
    """Chan's way of joining chunks, with deviations in place of squares, so that nothing overflows or cancels.

    Each chunk is brought to [0, 1] before anything is squared; halves are taken where a difference could overflow.
    """

    def __init__(self, n_columns: int) -> None:
        self.count = 0
        self.center = np.zeros(n_columns)
        self.scale = np.zeros(n_columns)
        self.low = np.full(n_columns, np.inf)
        self.high = np.full(n_columns, -np.inf)

    def add(self, chunk: FloatArray) -> None:
        """Take in the rows of a chunk [m, d] of finite numbers."""
        if not len(chunk):
            return
        low, high = chunk.min(axis=0), chunk.max(axis=0)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        span = high * 0.5 - low * 0.5
        unit = (chunk * 0.5 - low * 0.5) / np.where(span > 0, span, 1.0)
        center = unit.mean(axis=0)
        self._join(len(chunk), (low * 0.5 + center * span) * 2, (unit - center).std(axis=0) * span * 2)

    def _join(self, count: int, center: FloatArray, spread: FloatArray) -> None:
        total = self.count + count
        mine, theirs = self.count / total, count / total
        apart = center - self.center if self.count else np.zeros_like(center)
        within = np.hypot(np.sqrt(mine) * self.scale, np.sqrt(theirs) * spread)
        self.scale = np.hypot(within, np.sqrt(mine * theirs) * np.abs(apart))
        self.center = self.center + theirs * apart if self.count else center
        self.count = total
