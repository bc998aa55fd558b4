"""Stein estimates: equal to the formulas written as loops, and right where the score is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffan.errors import FitError
from diffan.score.stein import (
    SteinEstimate,
    drop_column,
    median_square,
    pairwise_squares,
    stein_bytes,
)


def points(n: int = 30, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=(n, d)))


def hessian_by_loops(x: np.ndarray, width: float, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Score [n, d] and Hessian [n, d, d], every derivative of the kernel written out."""
    n, d = x.shape
    kernel, first, second = np.zeros((n, n)), np.zeros((n, d)), np.zeros((n, d, d))
    for a in range(n):
        for b in range(n):
            apart = x[a] - x[b]
            kernel[a, b] = np.exp(-apart @ apart / (2 * width))
            for j in range(d):
                first[a, j] += kernel[a, b] * apart[j] / width
                for k in range(d):
                    second[a, j, k] += kernel[a, b] * (apart[j] * apart[k] / width**2 - (j == k) / width)
    inverse = np.linalg.inv(kernel + ridge * np.eye(n))
    score = -inverse @ first
    return score, np.einsum("ab,bjk->ajk", inverse, second) - score[:, :, None] * score[:, None, :]


def test_score_and_hessian_equal_the_loops() -> None:
    x = points()
    estimate = SteinEstimate(x, ridge=0.01)
    score, hessian = hessian_by_loops(x.numpy(), estimate.width, 0.01)
    np.testing.assert_allclose(estimate.score, score, atol=1e-9)
    np.testing.assert_allclose(estimate.hessian_diagonal(), np.einsum("ajj->aj", hessian), atol=1e-9)
    for column in range(3):
        np.testing.assert_allclose(estimate.hessian_row(column), hessian[:, column], atol=1e-9)


def test_a_gaussian_has_a_linear_score_and_a_constant_hessian() -> None:
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal(np.zeros(2), covariance, size=1500)
    estimate = SteinEstimate(torch.tensor(x), ridge=0.01)
    precision = np.linalg.inv(covariance)
    core = np.linalg.norm(x, axis=1) < 1.5
    error = estimate.score.numpy() + x @ precision
    assert np.sqrt((error[core] ** 2).mean()) < 0.15
    diagonal, row = estimate.hessian_diagonal().numpy(), estimate.hessian_row(0).numpy()
    assert np.abs(diagonal[core].mean(axis=0) + np.diag(precision)).max() < 0.15
    assert abs(row[core, 1].mean() + precision[0, 1]) < 0.15


def test_the_leaf_of_a_nonlinear_pair_has_the_steadier_hessian() -> None:
    rng = np.random.default_rng(2)
    cause = rng.normal(size=800)
    effect = np.sin(2 * cause) + 0.4 * rng.normal(size=800)
    x = np.column_stack([effect, cause])
    variance = SteinEstimate(torch.tensor(x / x.std(axis=0)), ridge=0.001).hessian_diagonal().var(dim=0)
    assert variance[0] < variance[1]


def test_dropping_a_column_equals_starting_again() -> None:
    x = points(50, 6)
    squares = pairwise_squares(x)
    for column in (4, 0):
        drop_column(squares, x[:, column])
    np.testing.assert_allclose(squares, pairwise_squares(x[:, [1, 2, 3, 5]]), atol=1e-12)


def test_bandwidth_is_the_median_over_different_rows() -> None:
    x = points(41, 2)
    squares = pairwise_squares(x)
    pairs = np.sort(squares.numpy()[np.triu_indices(41, k=1)])
    assert median_square(squares) == pytest.approx(pairs[(len(pairs) - 1) // 2])


def test_bandwidth_of_mostly_equal_rows_is_positive() -> None:
    column = torch.zeros(40, 1, dtype=torch.float64)
    column[:5] = 3.0
    assert median_square(pairwise_squares(column)) == 9.0
    assert median_square(pairwise_squares(torch.zeros(4, 1, dtype=torch.float64))) == 1.0
    assert torch.isfinite(SteinEstimate(column, ridge=0.001).hessian_diagonal()).all()


def test_bandwidth_beyond_a_few_thousand_rows_uses_evenly_spaced_rows() -> None:
    x = points(2500, 3)
    exact = float(torch.pdist(x).square().median())
    assert median_square(pairwise_squares(x)) == pytest.approx(exact, rel=0.02)


def test_a_singular_kernel_asks_for_more_ridge() -> None:
    with pytest.raises(FitError, match="raise 'ridge'"):
        SteinEstimate(points().repeat(2, 1), ridge=1e-20)


def test_memory_is_four_square_matrices() -> None:
    assert stein_bytes(1000) == 4 * 8 * 1000**2
