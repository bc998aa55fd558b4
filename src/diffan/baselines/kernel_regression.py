"""Kernel ridge regression with leave-one-out residuals, many regressions at a time.

Leaving one row out needs no refit: with the smoother B B^T the residual without row a is the plain residual
divided by 1 - (B B^T)_aa. Kernels enter through their columns at m landmark rows (Nystrom), so that a
regression costs n m^2; with as many landmarks as rows it is exact kernel ridge regression.
"""

from __future__ import annotations

import torch
from torch import Tensor

_JITTER = 1e-8  # keeps the landmark kernel of nearly equal rows positive definite in double precision


def landmark_rows(n_samples: int, landmarks: int, device: torch.device) -> Tensor:
    """Evenly spaced rows: [m]."""
    count = min(n_samples, landmarks)
    return torch.arange(count, device=device) * n_samples // count


def leave_one_out(kernel: Tensor, rows: Tensor, targets: Tensor, ridge: float) -> Tensor:
    """Leave-one-out residuals of b regressions: kernel [b, n, m] at the landmark rows [m], targets [b, n]."""
    landmark_kernel = kernel[:, rows]  # [b, m, m]
    landmark_kernel.diagonal(dim1=1, dim2=2).add_(_JITTER)
    features = _whiten(landmark_kernel, kernel)  # [b, m, n]
    gram = features @ features.mT  # [b, m, m]
    gram.diagonal(dim1=1, dim2=2).add_(ridge)
    smoother = _whiten(gram, features.mT)  # [b, m, n]: B^T
    fitted = smoother.mT @ (smoother @ targets[..., None])  # [b, n, 1]
    leverage = smoother.square().sum(dim=1)  # [b, n]
    return (targets - fitted[..., 0]) / (1 - leverage)


def _whiten(square: Tensor, columns: Tensor) -> Tensor:
    factor = torch.linalg.cholesky(square)
    whitened: Tensor = torch.linalg.solve_triangular(factor, columns.mT, upper=False)
    return whitened
