r"""Leave-one-out residuals from landmarks: the cost per fit is n m^2 instead of n^3.

The regression function is restricted to $\sum_a b_a K(\cdot, z_a)$ over m landmark rows z (subset of regressors). With
features $\Phi = K_{nm} K_{mm}^{-1/2}$ it is ridge regression on m columns, linear in y with hat diagonal $h$, and the
leave-one-out residual is $(y_i - \hat y_i) / (1 - h_i)$: as honest as the exact one, at worst a little less flexible.
The landmarks stay when their own row is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from diffan.errors import FitError
from diffan.likelihood.factors import inverse_factors
from diffan.likelihood.kernel import Scalars, kernel_matrix

JITTER = 1e-4  # relative to the kernel's unit diagonal: landmarks may coincide, and products are in single precision
BLOCK_CELLS = 4_000_000  # kernel cells held at once on a CPU


def low_rank_residuals(
    points: Tensor,
    target: Tensor,
    *,
    n_landmarks: int,
    ridge: Scalars,
    interaction: Scalars,
    bandwidth: Scalars,
    lines: Tensor | None = None,
    cells: int = BLOCK_CELLS,
    failures: list[Tensor] | None = None,
) -> Tensor:
    """Residuals of `target` [..., n] given the columns `points` [..., n, |P|]; the first rows serve as landmarks.

    A stack of fits has a ridge, an interaction and a bandwidth for each, [fits], and straight lines of these variances if there are any. No more than `cells` kernel values are held at once:
    larger fits go through their rows in blocks, twice. Whether a system could not be factored is left in `failures` for the
    caller to look at when the device is done, or raised at once without such a list.
    """
    landmarks = points[..., :n_landmarks, :]
    among = kernel_matrix(landmarks, landmarks, interaction, bandwidth)  # [..., m, m]
    whiten = inverse_factor(among, JITTER, failures)  # K_mm^-1 = whiten' whiten
    n, per_row = points.shape[-2], among[..., 0].numel()
    straight = None if lines is None else points * lines.sqrt()[:, None, None]
    size = n_landmarks + (0 if straight is None else points.shape[-1])

    def blocks() -> Iterator[tuple[slice, Tensor]]:
        step = max(1, cells // per_row)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            near = kernel_matrix(points[..., rows, :], landmarks, interaction, bandwidth)
            bent = near @ whiten.mT  # features [..., rows, m] whose inner products are the kernel
            yield rows, bent if straight is None else torch.cat([bent, straight[..., rows, :]], dim=-1)

    kept = list(blocks()) if n * per_row <= cells else None
    gram = among.new_zeros((*among.shape[:-2], size, size))
    moment = torch.zeros_like(gram[..., :1])
    for rows, features in kept or blocks():
        gram += features.mT @ features
        moment += features.mT @ target[..., rows, None]
    half = inverse_factor(gram, ridge, failures)  # (features' features + ridge I)^-1 = half' half
    weights = (half @ moment).mT  # [..., 1, m]
    residuals = torch.empty_like(target)
    for rows, features in kept or blocks():
        turned = features @ half.mT  # [..., rows, m]
        fitted = (turned * weights).sum(dim=-1)  # a product with a vector, but alike for one fit and for many
        leverage = turned.square_().sum(dim=-1)
        residuals[..., rows] = (target[..., rows] - fitted) / (1.0 - leverage).clamp(min=1e-6)
    return residuals


def inverse_factor(matrix: Tensor, ridge: Scalars, failures: list[Tensor] | None = None) -> Tensor:
    """R with (matrix + ridge I)^-1 = R' R for one [m, m] or a stack of them; small, so in double precision."""
    shifted = matrix.double()
    added = ridge[:, None].double() if isinstance(ridge, Tensor) else ridge
    shifted.diagonal(dim1=-2, dim2=-1).add_(added)
    inverse, failed = inverse_factors(shifted)
    if failures is not None:
        failures.append(failed)
    elif bool(failed):
        raise FitError("A landmark system could not be factored; raise the smallest of kernel_ridges.")
    return inverse.to(matrix.dtype)
