"""Noise schedules: which noise levels are trained on, and what the network is told of them.

Both live in the frame of the data: a noised row is y = x + sigma * eps. The paper's DDPM latent
x_t = sqrt(alpha_t) x + sqrt(1 - alpha_t) eps is y / sqrt(1 + sigma^2) with sigma^2 = (1 - alpha_t) / alpha_t,
which is also the input scaling of EDM preconditioning: one frame serves both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from diffan.settings import ScoreSettings, ddpm_sigmas


@dataclass(frozen=True)
class ContinuousSchedule:
    """log sigma ~ normal(mean, std); the network sees log sigma, standardised."""

    mean: float
    std: float

    def quantile(self, share: Tensor) -> Tensor:
        """The noise level below which a given share (0 to 1) of the training noise lies."""
        inner = share.clamp(1e-6, 1 - 1e-6)
        return torch.exp(self.mean + self.std * math.sqrt(2) * torch.erfinv(2 * inner - 1))

    def condition(self, sigma: Tensor) -> Tensor:
        return (sigma.log() - self.mean) / self.std


@dataclass(frozen=True, eq=False)
class DdpmSchedule:
    """The paper's T steps with linear betas, each equally likely; the network sees log sigma or the step."""

    sigmas: Tensor  # [T], rising
    sees_step: bool

    def quantile(self, share: Tensor) -> Tensor:
        """The noise level below which a given share (0 to 1) of the training noise lies."""
        steps = len(self.sigmas)
        return self.sigmas[(share * steps).long().clamp(0, steps - 1)]

    def condition(self, sigma: Tensor) -> Tensor:
        if not self.sees_step:
            return sigma.log() + 1.0
        levels = self.sigmas.to(sigma.dtype)
        above = torch.searchsorted(levels, sigma.contiguous()).clamp(1, len(levels) - 1)
        low, high = levels[above - 1], levels[above]
        # A level between two steps is a step between them.
        return above - 1 + ((sigma - low) / (high - low)).clamp(0, 1)


NoiseSchedule = ContinuousSchedule | DdpmSchedule


def make_schedule(settings: ScoreSettings, device: torch.device) -> NoiseSchedule:
    """The schedule that the settings name, its tables on the device."""
    if settings.schedule == "continuous":
        return ContinuousSchedule(settings.log_sigma_mean, settings.log_sigma_std)
    sigmas = torch.tensor(ddpm_sigmas(settings), dtype=torch.float32, device=device)
    return DdpmSchedule(sigmas, sees_step=settings.conditioning == "timestep")
