r"""Exact leave-one-out residuals of kernel ridge regression, many at a time.

With M = K + ridge I, the residual of point i under the fit to all other points is $(M^{-1} y)_i / (M^{-1})_{ii}$.
Single precision is enough: the ridge keeps the condition number below n / ridge.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diffan.errors import FitError


def inverse(matrices: Tensor) -> Tensor:
    """The inverses of symmetric positive definite matrices, [..., n, n]."""
    factor, failed = torch.linalg.cholesky_ex(matrices)
    if bool(failed.any()):
        raise FitError("A kernel matrix could not be factored; raise the smallest of kernel_ridges.")
    if matrices.device.type == "cpu":
        return torch.cholesky_inverse(factor)
    # On a GPU the library inverts one matrix after the other; a batched triangular solve keeps it busy.
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    half = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    inverses: Tensor = half.mT @ half
    return inverses


def leave_one_out(inverses: Tensor, targets: Tensor) -> Tensor:
    """Leave-one-out residuals: inverses of M [fits, n, n], targets [fits, n] -> [fits, n]."""
    dual = (inverses @ targets[..., None])[..., 0]  # [fits, n]
    return dual / inverses.diagonal(dim1=-2, dim2=-1)


def likelihood_slope_weights(inverses: Tensor, targets: Tensor) -> Tensor:
    r"""The matrix G for which $d \log p(y) = \tfrac12 \langle G, dK \rangle$, the scale of y profiled out.

    [fits, n, n] and [fits, n] -> [fits, n, n]; overwrites the inverses.
    """
    dual = (inverses @ targets[..., None])[..., 0]
    scale = (dual * targets).mean(dim=-1)  # [fits]
    return torch.baddbmm(
        inverses, dual[:, :, None], dual[:, None, :] / scale[:, None, None], beta=-1.0, out=inverses
    )
