r"""Which of many columns a node may depend on: a kernel with a weight for each, and some steps up its likelihood.

    K(x, x') = exp(-1/2 sum over p of w_p (x_p - x'_p)^2)

A search that adds one parent after the other is blind to a function of six columns that shows nothing of itself through one
or two of them. Here all columns are in from the start, each with a little weight, and Adam climbs the Gaussian log marginal
likelihood, noise included: the weights of columns that matter rise together. The ranking proposes sets; whether one of them
pays is for the objective to say. Gradients need products with the columns alone, since
$\sum_{ij} W_{ij} (x_i - x_j)^2 = 2 (\sum_i x_i^2 \sum_j W_{ij} - x' W x)$.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from diffan.likelihood.exact import inverse, likelihood_slope_weights

STEPS, RATE = 3, 1.0  # measured: 2 to 7 steps rank alike (4 tuning sets, parents among the heaviest columns)
# measured: from 0.1 five parents among many rank better, from 0.5 ten; 0.5 finds more edges (18 tuning sets)
START = 0.5
HEAVY = 0.1  # a weight that has not fallen much in these steps
LIGHTEST, HEAVIEST = math.exp(-7.0), math.exp(2.0)
LEAST_RIDGE, LARGEST_RIDGE = 0.05, 5.0
MOMENTS = 0.9, 0.999


def relaxed_weights(
    points: Tensor,
    targets: Tensor,
    failures: list[Tensor] | None = None,
    *,
    steps: int = STEPS,
    start: float = START,
) -> Tensor:
    """The weight of each column: points [fits, n, columns] and targets [fits, n] -> [fits, columns].

    Columns of zeros are allowed and mean nothing. Whether a matrix could not be factored is left in `failures`, or
    raised without such a list.
    """
    columns = points.shape[-1]
    place = points.new_full((len(points), columns + 1), math.log(start))  # of the weights, then of the ridge
    place[:, -1] = 0.0
    first, second = torch.zeros_like(place), torch.zeros_like(place)
    for step in range(1, steps + 1):
        uphill = gradient(points, targets, place, failures)
        first.lerp_(uphill, 1.0 - MOMENTS[0])
        second.lerp_(uphill.square(), 1.0 - MOMENTS[1])
        mean, spread = first / (1.0 - MOMENTS[0] ** step), second / (1.0 - MOMENTS[1] ** step)
        place += RATE * mean / (spread.sqrt() + 1e-8)
        place[:, :-1].clamp_(math.log(LIGHTEST), math.log(HEAVIEST))
        place[:, -1].clamp_(math.log(LEAST_RIDGE), math.log(LARGEST_RIDGE))
    return place[:, :-1].exp()


def gradient(points: Tensor, targets: Tensor, place: Tensor, failures: list[Tensor] | None = None) -> Tensor:
    """Of the log marginal likelihood, its scale profiled out, by the logs of the weights and of the ridge."""
    weights, ridges = place[:, :-1].exp(), place[:, -1].exp()
    kernels = _kernels(points * weights.sqrt()[:, None, :])
    shifted = kernels.clone()
    shifted.diagonal(dim1=-2, dim2=-1).add_(ridges[:, None])
    by_kernel = likelihood_slope_weights(inverse(shifted, failures), targets)
    by_ridge = 0.5 * by_kernel.diagonal(dim1=-2, dim2=-1).sum(dim=-1) * ridges
    by_kernel.mul_(kernels)
    total = by_kernel.sum(dim=-1, keepdim=True)  # [fits, n, 1]
    gaps = 2.0 * (points * (points * total - by_kernel @ points)).sum(dim=-2)  # [fits, columns]
    return torch.cat([-0.25 * gaps * weights, by_ridge[:, None]], dim=-1)


def _kernels(scaled: Tensor) -> Tensor:
    """exp(-|z - z'|^2 / 2) between all rows of each fit: [fits, n, columns] -> [fits, n, n]."""
    squares = scaled.square().sum(dim=-1)
    sums = squares[:, :, None] + squares[:, None, :]
    return torch.baddbmm(sums, scaled, scaled.mT, alpha=-2.0).clamp_(min=0.0).mul_(-0.5).exp_()
