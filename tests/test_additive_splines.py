"""The basis of one column: shape, order of roughness, and columns that are not smooth samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import PPoly

from diffan.additive.gram import SplineGram
from diffan.additive.splines import column_basis


def basis_of(column: np.ndarray, n_basis: int = 10):  # type: ignore[no-untyped-def]
    return SplineGram.from_values(column[:, None], n_basis=n_basis).bases[0]


def test_functions_are_centred_orthonormal_and_ever_rougher() -> None:
    column = np.random.default_rng(0).gamma(2.0, size=800)
    basis = basis_of(column)
    functions = basis.evaluate(column)
    assert functions.shape == (800, 9)
    np.testing.assert_allclose(functions.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(functions.T @ functions / 800, np.eye(9), atol=1e-10)
    assert basis.penalties[0] == 0
    assert np.all(np.diff(basis.penalties) > 0)


def test_penalties_are_the_integrals_of_squared_second_derivatives() -> None:
    column = np.random.default_rng(1).standard_normal(300)
    basis = basis_of(column, n_basis=6)
    bends = PPoly(basis.coefficients, basis.breaks).derivative(2)
    for a in range(5):
        for b in range(5):
            integral = sum(
                quad(lambda x, a=a, b=b: bends(x)[a] * bends(x)[b], left, right)[0]
                for left, right in zip(basis.breaks[:-1], basis.breaks[1:], strict=True)
            )
            expected = basis.penalties[a] if a == b else 0.0
            assert integral == pytest.approx(expected, rel=1e-6, abs=1e-6 * basis.penalties[-1])


def test_first_function_is_the_standardised_column() -> None:
    column = np.random.default_rng(2).standard_normal(500) * 7 + 3
    first = basis_of(column).evaluate(column)[:, 0]
    np.testing.assert_allclose(first, (column - column.mean()) / column.std(), atol=1e-10)


def test_a_smaller_basis_draws_no_curve_a_larger_one_cannot() -> None:
    column = np.random.default_rng(3).standard_normal(400)
    small, large = basis_of(column, 5).evaluate(column), basis_of(column, 10).evaluate(column)
    np.testing.assert_allclose(small, large @ (large.T @ small / 400), atol=1e-6)


@pytest.mark.parametrize(("n_values", "width"), [(1, 0), (2, 1), (3, 2), (5, 4), (30, 9)])
def test_few_distinct_values_carry_few_functions(n_values: int, width: int) -> None:
    column = np.arange(600.0) % n_values
    assert basis_of(column).width == width


def test_rare_values_are_not_clipped_away() -> None:
    column = np.zeros(1000)
    column[:8] = 1.0
    basis = basis_of(column)
    assert basis.width == 1
    assert len(np.unique(basis.evaluate(column))) == 2


def test_an_outlier_gets_no_function_of_its_own() -> None:
    column = np.random.default_rng(4).standard_normal(1000)
    column[0] = 1e5
    functions = basis_of(column).evaluate(column)
    assert (functions[0] ** 2 / 1000).max() < 0.5  # its leverage in any single function; 1 if left as it is


def test_values_that_nearly_coincide_do_not_break_the_basis() -> None:
    rng = np.random.default_rng(5)
    column = rng.integers(0, 2, 500) + 1e-9 * rng.standard_normal(500)
    basis = column_basis(column, 9)
    assert np.isfinite(basis.evaluate(column)).all()
    assert np.diff(basis.breaks).min() > 1e-4
