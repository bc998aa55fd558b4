"""Which rows are held out, and the noise they are judged on: drawn once, so that losses can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.score.model import ScoreModel
from diffan.score.network import Network
from diffan.settings import ScoreSettings

MOST_ROWS = 5000
MOST_POINTS = 8192


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers for each of the M networks."""

    train: npt.NDArray[np.int64]  # [M, rows]
    held_out: npt.NDArray[np.int64]  # [M, rows]


def split_rows(n_samples: int, settings: ScoreSettings, rng: np.random.Generator) -> Split:
    """Hold out a share of the rows: the same for every network, or a fold of its own for each."""
    members, count = settings.ensemble, held_out_count(n_samples, settings)
    shuffled = rng.permutation(n_samples)
    offset = count if settings.holdout_split == "folds" else 0
    rolled = np.stack([np.roll(shuffled, -member * offset) for member in range(members)])
    return Split(train=np.sort(rolled[:, count:]), held_out=np.sort(rolled[:, :count]))


def held_out_count(n_samples: int, settings: ScoreSettings) -> int:
    """How many rows are held out."""
    return min(max(1, round(settings.holdout * n_samples)), MOST_ROWS, n_samples - 1)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Fixed noised rows and the targets they have; the loss is that of the averaged ensemble when rows are shared."""

    inputs: Tensor  # [M, points, d + 1] or [M, points, 2 d + 1]
    targets: Tensor  # [M, points, d]
    absent: Tensor | None  # [M, points, d], 1 where a column is not there
    shared: bool

    def loss(self, network: Network) -> float:
        """Mean squared error without dropout; 1 for independent unit normals (preconditioned)."""
        with torch.no_grad():
            output = network.forward(self.inputs)
            if self.shared:
                output = output.mean(0, keepdim=True).expand_as(output)
            return float(squared_error(output, self.targets, self.absent))


def squared_error(output: Tensor, target: Tensor, absent: Tensor | None) -> Tensor:
    """The mean squared error over the columns that are there."""
    if absent is None:
        return (output - target).square().mean()
    present = 1 - absent
    return ((output - target).square() * present).sum() / present.sum().clamp(min=1)


def hold_out(
    take: Callable[[npt.NDArray[np.int64]], Tensor],
    rows: npt.NDArray[np.int64],
    model: ScoreModel,
    rng: np.random.Generator,
) -> HeldOut:
    """Several noise draws per row, their levels spread evenly over the schedule rather than at random.

    `take` turns row numbers [M, k] into rows [M, k, d].
    """
    settings = model.settings
    members, count = rows.shape
    draws = max(1, min(settings.holdout_draws, math.ceil(MOST_POINTS / count)))
    shares = (np.tile(np.arange(draws), count) + rng.random(count * draws)) / draws
    noise = rng.standard_normal((count * draws, model.n_variables))
    clean = take(np.repeat(rows, draws, axis=1))  # [M, points, d]
    # The same noise for every network: what differs between them is the rows, or nothing.
    shares_t = torch.as_tensor(shares, dtype=clean.dtype, device=clean.device)[:, None]  # [points, 1]
    noise_t = torch.as_tensor(noise, dtype=clean.dtype, device=clean.device)  # [points, d]
    sigma = model.schedule.quantile(shares_t)
    absent = None
    if model.knows_absence:
        lacking = rng.random((count * draws, 1)) < settings.drop_columns
        flags = lacking & (rng.random(noise.shape) < rng.random((count * draws, 1)))
        absent = torch.as_tensor(flags, dtype=clean.dtype, device=clean.device).expand(members, -1, -1)
    inputs = model.inputs(clean + sigma * noise_t, sigma.expand(members, -1, -1), absent)
    return HeldOut(inputs, model.target(clean, noise_t, sigma), absent, settings.holdout_split == "shared")
