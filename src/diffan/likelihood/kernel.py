r"""The kernel over a parent set: a product of one-dimensional kernels, each mixed with a constant.

    K_P(x, x') = prod over p in P of (1 - c + c exp(-(x_p - x'_p)^2 / (2 h^2)))

Multiplied out it is a sum of joint kernels over all subsets of P, with weight c for every column that takes part: a
small c favours functions of few columns at a time (smooth, close to additive), c near 1 the joint function of all
columns. Each node takes the c that predicts it best. Adding a column multiplies by one factor, so the bells are
stored and no exponential is taken twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


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


def kernel_matrix(left: Tensor, right: Tensor, interaction: float, bandwidth: float) -> Tensor:
    """K_P between two sets of points given as the columns in P alone: [n, |P|] and [m, |P|] -> [n, m]."""
    bells = (bell(left[:, k], right[:, k], bandwidth) for k in range(left.shape[1]))
    return multiplied(left.new_ones((len(left), len(right))), bells, interaction)


class ColumnKernels:
    """Every column's bells between all pairs of rows, stored in single precision: [columns, n, n]."""

    def __init__(self, columns: Tensor, bandwidth: float) -> None:
        n, width = columns.shape
        self.bells = columns.new_empty((width, n, n))
        for p in range(width):
            self.bells[p] = bell(columns[:, p], columns[:, p], bandwidth)

    def kernel(self, parents: Iterable[int], interaction: float, out: Tensor) -> Tensor:
        """K_P among the rows, written to `out` [n, n]; ones for an empty set."""
        return multiplied(out.fill_(1.0), (self.bells[p] for p in sorted(parents)), interaction)

    def slopes(self, weights: Tensor, columns: int) -> Tensor:
        """<weights, bells_p - 1> for the first columns: weights [fits, n, n] -> [fits, columns]."""
        flat = weights.flatten(1)  # [fits, n^2]
        return flat @ self.bells[:columns].view(columns, -1).T - flat.sum(dim=1, keepdim=True)
