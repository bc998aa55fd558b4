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
from diffan.likelihood.kernel import kernel_matrix

JITTER = 1e-4  # relative to the kernel's unit diagonal: landmarks may coincide, and products are in single precision
BLOCK_CELLS = 4_000_000  # kernel cells held at once


def low_rank_residuals(
    points: Tensor,
    target: Tensor,
    *,
    n_landmarks: int,
    ridge: float,
    interaction: float,
    bandwidth: float,
) -> Tensor:
    """Residuals of `target` [n] given the columns `points` [n, |P|]; the first rows serve as landmarks."""
    landmarks = points[:n_landmarks]
    among = kernel_matrix(landmarks, landmarks, interaction, bandwidth)  # [m, m]
    whiten = inverse_factor(among, JITTER)  # K_mm^-1 = whiten' whiten

    def blocks() -> Iterator[tuple[slice, Tensor]]:
        step = max(1, BLOCK_CELLS // n_landmarks)
        for start in range(0, len(points), step):
            rows = slice(start, start + step)
            near = kernel_matrix(points[rows], landmarks, interaction, bandwidth)
            yield rows, near @ whiten.T  # features [rows, m] whose inner products are the kernel

    kept = list(blocks()) if len(points) * n_landmarks <= BLOCK_CELLS else None
    gram, moment = torch.zeros_like(among), torch.zeros_like(landmarks[:, 0])
    for rows, features in kept or blocks():
        gram.addmm_(features.T, features)
        moment.addmv_(features.T, target[rows])
    half = inverse_factor(gram, ridge)  # (features' features + ridge I)^-1 = half' half
    residuals = torch.empty_like(target)
    for rows, features in kept or blocks():
        turned = features @ half.T  # [rows, m]
        fitted, leverage = turned @ (half @ moment), turned.square().sum(dim=1)
        residuals[rows] = (target[rows] - fitted) / (1.0 - leverage).clamp(min=1e-6)
    return residuals


def inverse_factor(matrix: Tensor, ridge: float) -> Tensor:
    """R with (matrix + ridge I)^-1 = R' R for one [m, m] or a stack of them; small, so in double precision."""
    shifted = matrix.double()
    shifted.diagonal(dim1=-2, dim2=-1).add_(ridge)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    if bool(failed.any()):
        raise FitError("A landmark system could not be factored; raise the smallest of kernel_ridges.")
    identity = torch.eye(matrix.shape[-1], dtype=torch.float64, device=matrix.device)
    inverse: Tensor = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    return inverse.to(matrix.dtype)
