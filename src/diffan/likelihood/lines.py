r"""Straight lines beside a kernel: what they take from the inverse, and what each is worth.

In the kernel they would spoil its condition. With Z the parents in units of the lines' standard deviation, the inverse of
M + Z Z' is $M^{-1} - U U'$ with $U = M^{-1} Z R'$ and $R' R = (I + Z' M^{-1} Z)^{-1}$, and only the small R needs double
precision.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diffan.likelihood.factors import triangular_inverse


class Lines:
    """What straight lines take from an inverse, and how much each of them is needed."""

    def __init__(self, straight: Tensor, solved: Tensor) -> None:
        """Z and M^-1 Z, both [fits, n, |P|]."""
        inner = (straight.mT @ solved).double()
        inner.diagonal(dim1=-2, dim2=-1).add_(1.0)
        root = torch.linalg.cholesky_ex(inner)[0]
        self.solved = solved
        self.half = triangular_inverse(root)  # R
        self.taken = solved @ self.half.mT.to(solved.dtype)  # U

    def gains(self, targets: Tensor, scale: Tensor) -> Tensor:
        """What each line adds to the log-likelihood beside all else: targets [fits, n], scale [fits] -> [fits, |P|]."""
        moments = (self.solved.mT @ targets[..., None]).double()  # Z' M^-1 y
        turned = self.half.mT @ self.half  # (I + Z' M^-1 Z)^-1
        heights = (turned @ moments)[..., 0]
        spread = turned.diagonal(dim1=-2, dim2=-1) * scale[:, None]
        n = targets.shape[-1]
        return (0.5 * n * torch.log1p(heights.square() / spread / n)).to(targets.dtype)


def promised_lines(points: Tensor, inverses: Tensor, targets: Tensor) -> Tensor:
    """What the best straight line in each column adds to the log-likelihood: points [fits, columns, n] -> [fits, columns].

    `inverses` [fits, n, n] are of all that is in the covariance already, targets [fits, n].
    """
    dual = (inverses @ targets[..., None])[..., 0]
    power = (dual * targets).sum(dim=-1)  # [fits]
    along = (points @ dual[..., None])[..., 0]
    own = (points @ inverses).mul_(points).sum(dim=-1)
    shared = along.square() / (own * power[:, None]).clamp(min=1e-30)
    return -0.5 * targets.shape[-1] * torch.log1p(-shared.clamp(max=1.0 - 1e-6))
