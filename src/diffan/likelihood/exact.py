r"""Exact leave-one-out residuals of kernel ridge regression, many at a time.

With M = K + ridge I, the residual of point i under the fit to all other points is $(M^{-1} y)_i / (M^{-1})_{ii}$.
Single precision is enough: the ridge keeps the condition number below n / ridge.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diffan.errors import FitError
from diffan.likelihood.factors import inverse_factors
from diffan.likelihood.lines import Lines


def inverse(matrices: Tensor, failures: list[Tensor] | None = None) -> Tensor:
    """The inverses of symmetric positive definite matrices, [..., n, n].

    Whether one was not positive definite is left in `failures` for the caller to look at when the device is done, or
    raised at once without such a list.
    """
    if matrices.device.type == "cpu":
        factor, info = torch.linalg.cholesky_ex(matrices)
        failed, inverses = (info != 0).any(), torch.cholesky_inverse(factor)
    else:
        half, failed = inverse_factors(matrices)
        inverses = half.mT @ half
    if failures is not None:
        failures.append(failed)
    else:
        require_factored(failed)
    return inverses


def require_factored(failed: Tensor) -> None:
    """Refuse to go on with a matrix that was not positive definite."""
    if bool(failed):
        raise FitError("A kernel matrix could not be factored; raise the smallest of kernel_ridges.")


def leave_one_out_from_factors(factors: Tensor, targets: Tensor, straight: Tensor | None = None) -> Tensor:
    """The same as `leave_one_out` from W with M^-1 = W' W: [fits, n, n] and [fits, n] -> [fits, n].

    `straight` is Z [fits, n, |P|]: then for M + Z Z'.
    """
    dual: Tensor = (factors.mT @ (factors @ targets[..., None]))[..., 0]
    diagonal: Tensor = torch.linalg.vector_norm(factors, dim=-2).square()
    if straight is not None:
        lines = Lines(straight, factors.mT @ (factors @ straight))
        dual = dual - (lines.taken @ (lines.taken.mT @ targets[..., None]))[..., 0]
        diagonal = diagonal - lines.taken.square().sum(dim=-1)
    return dual / diagonal


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
