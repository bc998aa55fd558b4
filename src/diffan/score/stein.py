r"""Score and Hessian of log p straight from samples, by Stein's identities and a kernel.

For a test function k(x_a, .), Stein's first and second order identities say

    E[k s] = -E[grad k],          E[k (H + s s^T)] = E[grad grad^T k],

with s = grad log p and H its Jacobian. Written at the n samples with a ridge on the kernel matrix K they become

    s      = -(K + ridge I)^{-1} <grad, K>
    H_{jl} = -s_j s_l + (K + ridge I)^{-1} <grad_j grad_l, K>

(Li and Turner 2018 for the first, Rolland et al. 2022 for the second). For the Gaussian kernel every bracket is a
sum of products of K with columns made of x, so nothing of size n x n x d is ever formed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diffan.errors import FitError

_ROWS_FOR_MEDIAN = 2048  # beyond this many rows the median distance is taken over evenly spaced rows


class SteinEstimate:
    """Score and Hessian of log p at the samples: one kernel and one factorisation, everything else products."""

    def __init__(self, points: Tensor, *, ridge: float, squared_distances: Tensor | None = None) -> None:
        if squared_distances is None:
            squared_distances = pairwise_squares(points)
        self.points = points  # [n, d]
        self.width = median_square(squared_distances)  # the kernel's squared bandwidth
        kernel = (squared_distances * (-0.5 / self.width)).exp_()  # [n, n]
        self._mass = kernel.sum(dim=1, keepdim=True)  # [n, 1]
        self._first = kernel @ points  # [n, d]
        self._second = kernel @ points.square()  # [n, d]
        self._kernel = kernel
        self._factor = _ridge_factor(kernel, ridge)
        self.score = -self._solve((points * self._mass - self._first) / self.width)  # [n, d]

    def hessian_diagonal(self) -> Tensor:
        """d s_j / d x_j for every column j at every sample: [n, d]."""
        x = self.points
        spread = x.square() * self._mass - 2 * x * self._first + self._second
        return self._solve(spread / self.width**2 - self._mass / self.width) - self.score.square()

    def hessian_row(self, column: int) -> Tensor:
        """d s_column / d x_j for every column j at every sample: [n, d]; its own entry is the diagonal."""
        x, own = self.points, self.points[:, [column]]  # [n, d], [n, 1]
        mixed = self._kernel @ (x * own)
        spread = x * own * self._mass - x * self._first[:, [column]] - own * self._first + mixed
        bracket = spread / self.width**2
        bracket[:, [column]] -= self._mass / self.width
        return self._solve(bracket) - self.score * self.score[:, [column]]

    def _solve(self, right: Tensor) -> Tensor:
        return torch.cholesky_solve(right, self._factor)


def pairwise_squares(points: Tensor) -> Tensor:
    """Squared distances between all rows: [n, n], exactly zero on the diagonal and symmetric."""
    norms = points.square().sum(dim=1)
    squares = (points @ points.T).mul_(-2).add_(norms[:, None]).add_(norms[None, :]).clamp_(min=0)
    return squares.fill_diagonal_(0)


def drop_column(squared_distances: Tensor, column: Tensor) -> Tensor:
    """Take one column's part out of the squared distances, in place: no need to start again when a leaf goes."""
    part = (column[:, None] - column[None, :]).square_()
    return squared_distances.sub_(part).clamp_(min=0)


def median_square(squared_distances: Tensor) -> float:
    """The median of the squared distances between different rows, as the kernel's squared bandwidth.

    A table with many equal rows has a median of zero; then the median of the positive distances stands in.
    """
    n = squared_distances.shape[0]
    step = -(-n // _ROWS_FOR_MEDIAN)
    values = squared_distances[::step, ::step].flatten()
    rows = -(-n // step)
    # The diagonal holds the `rows` smallest values and every pair comes twice: skip the first, halve the second.
    middle = float(values.kthvalue(rows + max(1, rows * (rows - 1) // 2)).values) if rows > 1 else 0.0
    if middle <= 0:
        positive = values[values > 0]
        middle = float(positive.median()) if positive.numel() else 1.0
    return middle


def stein_bytes(n_samples: int) -> int:
    """Memory one estimate takes at its peak: distances, kernel, factor and one working copy, all n x n."""
    return 4 * 8 * n_samples**2


def _ridge_factor(kernel: Tensor, ridge: float) -> Tensor:
    diagonal = kernel.diagonal()
    diagonal += ridge
    factor, failed = torch.linalg.cholesky_ex(kernel)
    diagonal -= ridge
    if int(failed):
        raise FitError(
            f"The kernel matrix of the Stein estimate is singular at ridge {ridge:g}; raise 'ridge'."
        )
    found: Tensor = factor
    return found
