"""Entropy of residuals in nats: the Gaussian formula, a spacing estimate, and the gate between the two."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SPACING_FLOOR = 1e-9  # tied residuals would have no entropy at all; columns have unit variance
MAX_EXCESS_KURTOSIS = 0.5  # of the median node; Laplace noise has 3, exponential noise 6
MAX_SKEWNESS = 0.25  # exponential noise has 2


def gaussian_entropy(residuals: Tensor) -> Tensor:
    """The entropy of a normal law with the residuals' mean square; residuals [..., n] -> [...]."""
    return 0.5 * torch.log(2 * math.pi * math.e * residuals.double().square().mean(dim=-1))


def spacing_entropy(residuals: Tensor) -> Tensor:
    r"""Vasicek's estimate from gaps between order statistics; residuals [..., n] -> [...].

    Point i sits between its neighbours m places away, k_i <= 2m places apart at the ends of the sample. For
    uniform samples $E \log(\text{gap}) = \psi(k_i) - \psi(n + 1)$, so the digammas make the estimate unbiased
    there, edges included; for a smooth density the bias that is left is of the order of the density's change
    over one gap.
    """
    ordered = residuals.double().sort(dim=-1).values
    n = ordered.shape[-1]
    reach = max(1, min(round(math.sqrt(n)), (n - 1) // 2))
    place = torch.arange(n, device=ordered.device)
    above, below = (place + reach).clamp(max=n - 1), (place - reach).clamp(min=0)
    gaps = (ordered[..., above] - ordered[..., below]).clamp(min=SPACING_FLOOR)
    size = (above - below).to(ordered.dtype)
    unbiased = torch.digamma(size) - torch.digamma(torch.tensor(n + 1.0, dtype=ordered.dtype))
    return (gaps.log() - unbiased).mean(dim=-1)


def shape_of(residuals: Tensor) -> tuple[Tensor, Tensor]:
    """Skewness and excess kurtosis; residuals [..., n] -> [...] each."""
    centred = residuals.double() - residuals.double().mean(dim=-1, keepdim=True)
    unit = centred / centred.square().mean(dim=-1, keepdim=True).sqrt()
    return (unit**3).mean(dim=-1), (unit**4).mean(dim=-1) - 3


def passes_for_gaussian(skewness: Tensor, kurtosis: Tensor) -> bool:
    """Whether the median node has neither skewness nor heavy tails; [nodes] each."""
    heavy, skewed = kurtosis.abs().median(), skewness.abs().median()
    return bool(heavy < MAX_EXCESS_KURTOSIS and skewed < MAX_SKEWNESS)


def looks_gaussian(residuals: Tensor) -> bool:
    """Whether the median node has residuals without skewness or heavy tails; residuals [nodes, n]."""
    return passes_for_gaussian(*shape_of(residuals))


def statistics_of(residuals: Tensor) -> Tensor:
    """All that is kept of a fit: both entropies, skewness and kurtosis; residuals [fits, n] -> [fits, 4]."""
    entropies = gaussian_entropy(residuals), spacing_entropy(residuals)
    return torch.stack([*entropies, *shape_of(residuals)], dim=-1)
