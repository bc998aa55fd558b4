"""Wood's test: known limits, invariance, and its size when the smoothing is given."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f as f_distribution

from diffan.additive.term_test import wald_test


def covariance(rng: np.random.Generator, terms: int, width: int) -> np.ndarray:
    factor = rng.standard_normal((terms, width, 2 * width))
    return factor @ factor.swapaxes(1, 2) / width


def test_rank_one_is_the_ordinary_test_of_one_coefficient() -> None:
    statistic, p_value = wald_test(
        np.array([[2.5]]), np.array([[[1.3]]]), np.array([1.0]), np.array([1]), np.array([200.0])
    )
    assert statistic[0] == pytest.approx(2.5**2 / 1.3)
    assert p_value[0] == pytest.approx(f_distribution.sf(2.5**2 / 1.3, 1, 200))


def test_whole_rank_uses_the_largest_eigenvalues() -> None:
    effects = np.array([[3.0, 1.0, 2.0]])
    spread = np.diag([0.5, 2.0, 1.0])[None]
    statistic, _ = wald_test(effects, spread, np.array([2.0]), np.array([3]), np.array([100.0]))
    assert statistic[0] == pytest.approx((1.0**2 / 2.0 + 2.0**2 / 1.0) / 2)


def test_fractional_rank_lies_between_and_is_continuous() -> None:
    rng = np.random.default_rng(0)
    effects, spread = rng.standard_normal((1, 5)), covariance(rng, 1, 5)

    def total(rank: float) -> float:
        statistic, _ = wald_test(effects, spread, np.array([rank]), np.array([5]), np.array([100.0]))
        return float(statistic[0] * rank)

    assert total(2.0) <= total(2.5) <= total(3.0)
    assert total(2.0 + 1e-9) == pytest.approx(total(2.0), abs=1e-6)
    assert total(3.0 - 1e-9) == pytest.approx(total(3.0), abs=1e-6)


def test_rotating_the_basis_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    effects, spread = rng.standard_normal((4, 6)), covariance(rng, 4, 6)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    ranks, widths, df = np.array([1.0, 2.3, 4.7, 6.0]), np.full(4, 6), np.full(4, 300.0)
    first = wald_test(effects, spread, ranks, widths, df)
    second = wald_test(effects @ turn, turn.T @ spread @ turn, ranks, widths, df)
    np.testing.assert_allclose(first, second, rtol=1e-8)


def test_empty_terms_have_p_value_one() -> None:
    statistic, p_value = wald_test(
        np.zeros((2, 3)), np.zeros((2, 3, 3)), np.zeros(2), np.zeros(2, dtype=np.intp), np.full(2, 10.0)
    )
    np.testing.assert_array_equal(statistic, 0.0)
    np.testing.assert_array_equal(p_value, 1.0)


def test_size_at_a_fixed_smoothing() -> None:
    # y is noise; with orthonormal functions the shrunken coefficients have Bayesian covariance diag(keep)
    rng = np.random.default_rng(2)
    n_draws = 20_000

    def share_below(keep: np.ndarray, level: float) -> float:
        effects = keep * rng.standard_normal((n_draws, len(keep)))
        spread = np.tile(np.diag(keep), (n_draws, 1, 1))
        rank, width = np.full(n_draws, (2 * keep - keep**2).sum()), np.full(n_draws, len(keep))
        return float((wald_test(effects, spread, rank, width, np.full(n_draws, 1e6))[1] < level).mean())

    curve = 1 / (1 + np.array([0.0, 0.05, 0.5, 2.0, 10.0, 50.0]))
    for level in (0.2, 0.05, 0.01):
        assert share_below(np.ones(1), level) == pytest.approx(level, rel=0.15)  # a line: the t-test
        assert share_below(curve, level) < level  # a given curve: conservative
