r"""The kernel over a parent set: a product of one-dimensional kernels, each mixed with a constant.

    K_P(x, x') = prod over p in P of (1 - c + c exp(-(x_p - x'_p)^2 / (2 h^2)))

Multiplied out it is a sum of joint kernels over all subsets of P, with weight c for every column that takes part: a
small c favours functions of few columns at a time (smooth, close to additive), c near 1 the joint function of all
columns. Each node takes the c and the h that predict it best. Adding a column multiplies by one factor, so on a CPU the
bells are stored and no exponential is taken twice; a GPU takes exponentials faster than it reads its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

Scalars = float | Tensor
"""One number for all fits of a stack, or one for each, [fits]."""


def bell(left: Tensor, right: Tensor, bandwidth: float) -> Tensor:
    """exp(-(x - x')^2 / (2 h^2)) between two columns, or stacks of them: [..., n] and [..., m] -> [..., n, m]."""
    return (left[..., :, None] - right[..., None, :]).square_().mul_(-0.5 / bandwidth**2).exp_()


def multiplied(product: Tensor, bells: Iterable[Tensor], interaction: float) -> Tensor:
    """product * prod over bells of (1 - c + c * bell), in place and in one pass over memory for each."""
    if interaction == 1.0:
        for one in bells:
            product.mul_(one)
        return product
    count = 0
    for one in bells:
        product.addcmul_(product, one, value=interaction / (1.0 - interaction))
        count += 1
    return product.mul_((1.0 - interaction) ** count)


def kernel_matrix(left: Tensor, right: Tensor, interaction: Scalars, bandwidth: Scalars) -> Tensor:
    """K_P between two sets of points given as the columns in P alone: [..., n, |P|] and [..., m, |P|] -> [..., n, m].

    A stack of fits may have an interaction and a bandwidth for each; a column of zeros counts for nothing.
    """
    left, right = (points / spread(bandwidth) for points in (left, right))
    if left.is_cuda and left.dim() == 3 and torch.version.cuda is not None:
        return _fused_kernel(left, right, torch.as_tensor(interaction, device=left.device))
    bells = (bell(left[..., k], right[..., k], 1.0) for k in range(left.shape[-1]))
    ones = left.new_ones((*left.shape[:-1], right.shape[-2]))
    if not isinstance(interaction, Tensor):
        return multiplied(ones, bells, interaction)
    share = spread(interaction)
    for one in bells:
        ones.mul_(one.mul_(share).add_(1.0 - share))
    return ones


def spread(scalars: Scalars) -> Scalars:
    """A number for each fit, beside [fits, n, m]."""
    return scalars[:, None, None] if isinstance(scalars, Tensor) else scalars


AT_ONCE = 3  # columns that one launch multiplies in: what a jitted function may take
FACTORS = """
template <typename T> T factors(T product, T share, T a, T b, T c, T d, T e, T f) {
    T rest = T(1) - share;
    T first = rest + share * exp(T(-0.5) * (a - b) * (a - b));
    T second = rest + share * exp(T(-0.5) * (c - d) * (c - d));
    return product * first * second * (rest + share * exp(T(-0.5) * (e - f) * (e - f)));
}
"""


@cache
def _factors() -> Callable[..., Tensor]:
    """Three factors of the kernel in one pass over memory; compiled by the GPU's own library when first called."""
    made: Callable[..., Tensor] = torch.cuda.jiterator._create_jit_fn(FACTORS)
    return made


def _fused_kernel(left: Tensor, right: Tensor, interaction: Tensor) -> Tensor:
    """K_P on a GPU: [fits, n, |P|] and [fits, m, |P|] -> [fits, n, m]."""
    missing = -left.shape[-1] % AT_ONCE
    here, there = (functional.pad(points, (0, missing)).unbind(-1) for points in (left, right))
    product = left.new_ones((len(left), left.shape[1], right.shape[1]) if not here else (1, 1, 1))
    share = interaction.to(left.dtype).view(-1, 1, 1)
    for k in range(0, len(here), AT_ONCE):
        pairs = [
            points[:, :, None] if side == 0 else points[:, None, :]
            for j in range(k, k + AT_ONCE)
            for side, points in enumerate((here[j], there[j]))
        ]
        product = _factors()(product, share, *pairs)
    return product


class ColumnKernels:
    """Every column's bells between all pairs of rows, stored in single precision: [columns, n, n]."""

    def __init__(self, columns: Tensor, bandwidth: float) -> None:
        if columns.device.type == "cpu":  # column by column, each within the cache
            n, width = columns.shape
            self.bells = columns.new_empty((width, n, n))
            for own, out in zip(columns.unbind(1), self.bells, strict=True):
                out.copy_(bell(own, own, bandwidth))
        else:
            self.bells = bell(columns.T, columns.T, bandwidth)
        self.each = self.bells.unbind(0)

    def slopes(self, weights: Tensor, columns: int) -> Tensor:
        """<weights, bells_p - 1> for the first columns: weights [fits, n, n] -> [fits, columns]."""
        flat = weights.flatten(1)  # [fits, n^2]
        return flat @ self.bells[:columns].view(columns, -1).T - flat.sum(dim=1, keepdim=True)


def sent(values: Sequence[float], like: Tensor) -> Tensor:
    """Numbers on the device of a tensor and of its type, without waiting for what it is busy with."""
    here = torch.tensor(values, dtype=like.dtype)
    return here if like.device.type == "cpu" else here.pin_memory().to(like.device, non_blocking=True)
