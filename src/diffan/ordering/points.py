"""The rows at which the score's derivatives are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.rows import release
from diffan.settings import OrderSettings

Opinion = Callable[[Sequence[int]], Tensor]
"""Remaining columns -> d s_j / d x_j of each at some rows, [k, r], by another estimate of the score."""


@dataclass(frozen=True, eq=False)
class OrderingPoints:
    """Draws the paper's batch B of k rows: one batch for all steps, or a new one at each."""

    values: npt.NDArray[np.float64]  # [n, d], standardised
    settings: OrderSettings
    seed: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    scale: npt.NDArray[np.float64] | None = None  # [d], the columns' standard deviations in the user's units
    second_opinion: Opinion | None = None  # heard beside the network, at every step

    def in_units(self, diagonals: Tensor, columns: Sequence[int]) -> Tensor:
        """d s_j / d x_j in the units that count: standardised ones, or the user's when a scale is given."""
        if self.scale is None:
            return diagonals
        square = np.square(self.scale[list(columns)])
        return diagonals / torch.tensor(square, dtype=diagonals.dtype, device=diagonals.device)

    def at(self, sigma: float, step: int) -> Tensor:
        """Points [k, d] for one noise level at one step of the peeling; the same arguments give the same points."""
        rng = np.random.default_rng([self.seed, step if self.settings.resample else 0])
        rows = self.drawn(rng, self.settings.order_batch_size)
        if self.settings.evaluate_at == "noised":
            rows = rows + sigma * rng.standard_normal(rows.shape)
        elif self.settings.evaluate_at == "as_latent":
            # The paper feeds clean rows as if they were x_t = y / sqrt(1 + sigma^2).
            rows = rows * math.sqrt(1 + sigma * sigma)
        return torch.tensor(rows, dtype=self.dtype, device=self.device)

    def drawn(self, rng: np.random.Generator, most: int) -> npt.NDArray[np.float64]:
        """Some rows of the table, [at most `most`, d]."""
        n = len(self.values)
        count = min(n, most)
        if isinstance(self.values, np.memmap):  # rows on disk lie in random order: any stretch is a sample
            first = int(rng.integers(n - count + 1))
            rows = np.array(self.values[first : first + count], dtype=np.float64)
            release(self.values)
            return rows
        return self.values[np.sort(rng.choice(n, count, replace=False))]
