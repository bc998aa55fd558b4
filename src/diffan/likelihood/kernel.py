r"""The kernel over a parent set: a product of one-dimensional kernels, each mixed with a constant.

    K_P(x, x') = prod over p in P of (1 - c + c exp(-(x_p - x'_p)^2 / (2 h^2)))

Multiplied out it is a sum of joint kernels over all subsets of P, with weight c for every column that takes part: a
small c favours functions of few columns at a time (smooth, close to additive), c near 1 the joint function of all
columns. Each node takes the c that predicts it best. Adding a column multiplies by one factor, so the bells are
stored and no exponential is taken twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

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


def kernel_matrix(left: Tensor, right: Tensor, interaction: Scalars, bandwidth: float) -> Tensor:
    """K_P between two sets of points given as the columns in P alone: [..., n, |P|] and [..., m, |P|] -> [..., n, m]."""
    bells = (bell(left[..., k], right[..., k], bandwidth) for k in range(left.shape[-1]))
    ones = left.new_ones((*left.shape[:-1], right.shape[-2]))
    if not isinstance(interaction, Tensor):
        return multiplied(ones, bells, interaction)
    share = interaction[:, None, None]
    for one in bells:
        ones.mul_(one.mul_(share).add_(1.0 - share))
    return ones


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


def stacked_kernels(bells: Sequence[Sequence[Tensor]], interactions: Sequence[float], out: Tensor) -> Tensor:
    """K_P for many sets P at once, each given as its bells [n, n], written to `out` [sets, n, n]; ones for an empty set."""
    out.fill_(1.0)
    if out.device.type != "cpu":
        return multiplied_together(out, bells, interactions)
    for product, own, interaction in zip(out.unbind(0), bells, interactions, strict=True):
        multiplied(product, own, interaction)
    return out


def multiplied_together(
    stack: Tensor, bells: Sequence[Sequence[Tensor]], interactions: Sequence[float]
) -> Tensor:
    """`multiplied` for every product of a stack [sets, n, n], in place.

    A pass multiplies one further bell into every product that has one, in a few launches for all of them.
    """
    products = stack.unbind(0)
    largest_first = sorted(range(len(bells)), key=lambda j: -len(bells[j]))
    joint = [j for j in largest_first if interactions[j] == 1.0]
    mixed = [j for j in largest_first if interactions[j] < 1.0]
    ratios = [interactions[j] / (1.0 - interactions[j]) for j in mixed]
    for k in range(max(map(len, bells), default=0)):
        for some in (joint, mixed):
            while some and len(bells[some[-1]]) <= k:
                some.pop()
            into, by = [products[j] for j in some], [bells[j][k] for j in some]
            if some is joint and some:
                torch._foreach_mul_(into, by)
            elif some:
                torch._foreach_addcmul_(into, into, by, ratios[: len(some)])
    scale = [(1.0 - c) ** len(own) if c < 1.0 else 1.0 for own, c in zip(bells, interactions, strict=True)]
    return stack.mul_(sent(scale, stack)[:, None, None])


def sent(values: Sequence[float], like: Tensor) -> Tensor:
    """Numbers on the device of a tensor and of its type, without waiting for what it is busy with."""
    here = torch.tensor(values, dtype=like.dtype)
    return here if like.device.type == "cpu" else here.pin_memory().to(like.device, non_blocking=True)
