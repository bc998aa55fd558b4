"""Noise with mean zero, from a name and a scale.

What the scale means follows the common benchmark, so the standard deviations differ between names:

| name    | density                                   | scale                  | standard deviation |
|---------|-------------------------------------------|------------------------|--------------------|
| gauss   | normal                                    | standard deviation     | scale              |
| exp     | exponential, shifted down by its mean     | the scale 1 / rate     | scale              |
| laplace | double exponential                        | the scale b            | sqrt(2) scale      |
| uniform | flat on [-scale, scale]                   | half the width         | scale / sqrt(3)    |
| gumbel  | Gumbel (maximum), shifted down by its mean | the scale beta         | scale pi / sqrt(6) |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError

Array = npt.NDArray[np.float64]
NoiseKind = Literal["gauss", "exp", "laplace", "uniform", "gumbel"]

STANDARD_NOISE: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "gauss": lambda n, rng: rng.standard_normal(n),
    "exp": lambda n, rng: rng.standard_exponential(n) - 1.0,
    "laplace": lambda n, rng: rng.laplace(size=n),
    "uniform": lambda n, rng: rng.uniform(-1.0, 1.0, n),
    "gumbel": lambda n, rng: rng.gumbel(size=n) - np.euler_gamma,
}


def draw_noise(noise: str, n_samples: int, scale: float, rng: np.random.Generator) -> Array:
    """Draw `n_samples` centred values; the module's table says what `scale` means for each name."""
    check_noise(noise)
    return scale * STANDARD_NOISE[noise](n_samples, rng)


def check_noise(noise: str) -> None:
    if noise not in STANDARD_NOISE:
        known = ", ".join(map(repr, STANDARD_NOISE))
        raise InputError(f"The 'noise' parameter must be one of {known}. Got {noise!r} instead.")


def scale_range(noise_scale: float | tuple[float, float]) -> tuple[float, float]:
    """Read a scale, or a (low, high) range of scales, as a checked range."""
    try:
        low, high = noise_scale if isinstance(noise_scale, (tuple, list)) else (noise_scale, noise_scale)
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        low = high = float("nan")
    if not 0 < low <= high < float("inf"):
        raise InputError(
            "The 'noise_scale' parameter must be a positive number or a pair 0 < low <= high. "
            f"Got {noise_scale!r} instead."
        )
    return low, high
