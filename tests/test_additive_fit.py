"""Penalised fits: against brute force on the rows, the derivatives, the smoothing, and the effects."""

from __future__ import annotations

import numpy as np
import pytest

from diffan.additive import SplineGram, fit_node, fit_nodes, term_effect
from diffan.additive.batched import fit_batches
from diffan.additive.criterion import FIRST_SHARE, derivatives, solve
from diffan.additive.fit import NodeFit
from diffan.additive.nested import NestedSolver
from diffan.additive.newton import minimise
from diffan.additive.system import basis_size, layout, numpy_system
from diffan.errors import InputError


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    rng = np.random.default_rng(5)
    table = rng.standard_normal((600, 6))
    table[:, 1] += 0.8 * table[:, 0]
    table[:, 5] = np.sin(2 * table[:, 0]) + 0.5 * table[:, 1] + 0.3 * rng.standard_normal(600)
    return table


@pytest.fixture(scope="module")
def gram(values: np.ndarray) -> SplineGram:
    return SplineGram.from_values(values)


@pytest.fixture(scope="module")
def fit(gram: SplineGram) -> NodeFit:
    return fit_node(gram, 5, range(5))


def test_fit_is_ridge_regression_on_the_rows(values: np.ndarray, gram: SplineGram, fit: NodeFit) -> None:
    functions = np.hstack([gram.bases[j].evaluate(values[:, j]) for j in range(5)])
    penalty = np.concatenate([fit.smoothing[j] * gram.bases[j].penalties for j in range(5)])
    target = values[:, 5] - values[:, 5].mean()
    normal = functions.T @ functions / 600 + np.diag(penalty + fit.ridge)
    coefficients = np.linalg.solve(normal, functions.T @ target / 600)
    np.testing.assert_allclose(fit.coefficients.ravel(), coefficients, atol=1e-6)
    residual = target - functions @ coefficients
    hat = np.trace(np.linalg.solve(normal, functions.T @ functions / 600))
    assert fit.edf.sum() == pytest.approx(hat, abs=1e-6)
    assert fit.residual_variance == pytest.approx((residual**2).sum() / (600 - 1 - hat), rel=1e-6)
    assert fit.r2 == pytest.approx(1 - residual.var() / target.var(), abs=1e-8)
    assert fit.log_likelihood == pytest.approx(-300 * (np.log(2 * np.pi * residual.var()) + 1), rel=1e-6)
    least_squares = np.linalg.lstsq(functions, target, rcond=None)[1][0]
    assert fit.noise_variance == pytest.approx(least_squares / (600 - 1 - 45), rel=1e-3)


def test_smoothing_minimises_the_score(gram: SplineGram, fit: NodeFit) -> None:
    system = numpy_system(gram, layout(gram, 5, range(5)))
    scale = layout(gram, 5, range(5)).scale
    best = 1 / (1 + fit.smoothing * scale)[None]
    lowest = solve(system, best).score[0]
    assert lowest == pytest.approx(fit.gcv, abs=1e-9)
    for term in range(5):
        for factor in (0.5, 2.0):
            moved = best.copy()
            moved[0, term] = np.clip(moved[0, term] * factor, 1e-6, 1 - 1e-6)
            assert solve(system, moved).score[0] > lowest - 1e-3


def test_derivatives_agree_with_differences(gram: SplineGram) -> None:
    system = numpy_system(gram, layout(gram, 5, range(5)))
    share = np.array([[0.3, 0.05, 0.6, 0.1, 0.4]])
    gradient, hessian = derivatives(system, share, solve(system, share))
    step = 1e-5
    for k in range(5):
        up, down = share.copy(), share.copy()
        up[0, k] += step
        down[0, k] -= step
        slope = (solve(system, up).score - solve(system, down).score)[0] / (2 * step)
        assert gradient[0, k] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        bend = (
            derivatives(system, up, solve(system, up))[0] - derivatives(system, down, solve(system, down))[0]
        )[0]
        # only the trace part is approximated, by leaving out what terms do to each other's edf
        np.testing.assert_allclose(
            hessian[0, k], bend / (2 * step), rtol=0.05, atol=0.02 * np.abs(hessian).max()
        )


def test_newton_stays_in_the_box_and_finds_the_least() -> None:
    centre = np.array([[0.3, -1.0], [0.9, 2.0]])  # the second coordinate wants to leave the box

    def bowl(rows: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        away = point - centre[rows]
        return (away**2).sum(axis=1), 2 * away, np.tile(2 * np.eye(2), (len(rows), 1, 1))

    found = minimise(np.full((2, 2), 0.5), bowl, edge=1e-6, tolerance=1e-12)
    np.testing.assert_allclose(found, [[0.3, 1e-6], [0.9, 1 - 1e-6]], atol=1e-6)


def test_lines_and_curves_are_told_apart(fit: NodeFit) -> None:
    assert fit.edf[0] > 4  # sin(2 x) over the range
    assert fit.edf[1] < 2.5
    assert fit.deviance_explained[0] > fit.deviance_explained[1] > 20 * fit.deviance_explained[2:].max()


def test_deviance_explained_is_what_dropping_the_term_loses(gram: SplineGram, fit: NodeFit) -> None:
    place = layout(gram, 5, range(5))
    system = numpy_system(gram, place)
    best = 1 / (1 + fit.smoothing * place.scale)[None]

    def explained(kept: list[int]) -> float:
        part = numpy_system(gram, layout(gram, 5, kept))
        at = solve(part, best[:, kept])
        return float((part.target * at.coefficients).sum())

    full = float((system.target * solve(system, best).coefficients).sum())
    for term in range(5):
        lost = full - explained([k for k in range(5) if k != term])
        assert fit.deviance_explained[term] == pytest.approx(lost, abs=1e-8)


def test_term_effect_draws_the_function_within_its_error(gram: SplineGram, fit: NodeFit) -> None:
    grid = np.linspace(-2, 2, 50)
    effect, error = term_effect(gram, fit, 0, grid)
    truth = np.sin(2 * grid)
    assert np.abs(effect - truth).max() < 0.2
    assert (np.abs(effect - truth) < 3 * error).mean() > 0.9
    assert (error > 0).all()
    with pytest.raises(InputError, match="Column 5 is not a parent"):
        term_effect(gram, fit, 5, grid)


def test_nested_sets_grow_to_the_direct_solution(gram: SplineGram) -> None:
    solver = NestedSolver(FIRST_SHARE)
    for k in range(1, 6):
        place = layout(gram, 5, range(k))
        system = numpy_system(gram, place)
        grown = solver.solution(system, place)
        direct = solve(system, np.full((1, k), FIRST_SHARE))
        np.testing.assert_allclose(grown.inverse, direct.inverse, atol=1e-8)
        assert grown.score[0] == pytest.approx(direct.score[0], abs=1e-8)


def test_fits_do_not_depend_on_what_was_fitted_before(gram: SplineGram) -> None:
    regressions = [(1, (0,)), (2, (0, 1)), (5, (2, 0)), (3, ()), (5, (0, 1, 2, 3, 4))]
    for together, (target, parents) in zip(fit_nodes(gram, regressions), regressions, strict=True):
        alone = fit_node(gram, target, parents)
        np.testing.assert_allclose(together.edf, alone.edf, atol=1e-6)


def test_rounding_does_not_grow_along_columns_that_nearly_repeat_one_another() -> None:
    rng = np.random.default_rng(3)
    common = rng.standard_normal((500, 2)) @ rng.standard_normal((2, 14))
    gram = SplineGram.from_values(np.tanh(common) + 0.03 * rng.standard_normal((500, 14)))
    regressions = [(k, tuple(range(k))) for k in range(14)]
    for nested, (target, parents) in zip(fit_nodes(gram, regressions), regressions, strict=True):
        assert nested.noise_variance == pytest.approx(
            fit_node(gram, target, parents).noise_variance, rel=1e-6
        )


def test_batches_on_torch_give_the_same_fits(gram: SplineGram) -> None:
    regressions = [(j, tuple(range(j))) for j in range(6)] + [(0, (5, 3)), (4, (1,))]
    for here, there in zip(fit_nodes(gram, regressions), fit_batches(gram, regressions, "cpu"), strict=True):
        assert (here.target, here.parents) == (there.target, there.parents)
        np.testing.assert_allclose(here.edf, there.edf, atol=1e-6)
        np.testing.assert_allclose(here.coefficients, there.coefficients, atol=1e-6)
        np.testing.assert_allclose(here.covariances, there.covariances, atol=1e-8)
        assert here.noise_variance == pytest.approx(there.noise_variance, rel=1e-8)


def test_units_do_not_matter(values: np.ndarray, fit: NodeFit) -> None:
    scaled = fit_node(SplineGram.from_values(values * 100 + 7), 5, range(5))
    np.testing.assert_allclose(scaled.edf, fit.edf, atol=1e-4)
    assert scaled.r2 == pytest.approx(fit.r2, abs=1e-8)
    assert scaled.residual_variance == pytest.approx(1e4 * fit.residual_variance, rel=1e-6)


def test_basis_shrinks_by_cams_rule() -> None:
    assert basis_size(1000, 19, 10) == 10
    assert basis_size(500, 19, 10) == 9  # ceil(500 / 57)
    assert basis_size(40, 19, 10) == 2  # never below the line
    assert basis_size(40, 0, 10) == 10


def test_more_coefficients_than_rows_get_a_ridge() -> None:
    gram = SplineGram.from_values(np.random.default_rng(1).standard_normal((15, 30)))
    fit = fit_node(gram, 29, range(29))
    assert fit.is_weak
    assert 0 < fit.edf.sum() < 15
    assert np.isfinite(fit.covariances).all()


def test_bad_regressions_are_refused(gram: SplineGram) -> None:
    for target, parents in ((6, (0,)), (0, (0, 1)), (0, (1, 1)), (0, (-1,))):
        with pytest.raises(InputError, match="each at most once"):
            fit_node(gram, target, parents)
