"""Moves among screened neighbours: never worse, exact about what a move changes, and what the two objectives see."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffan.additive.gram import SplineGram
from diffan.likelihood.gram_scores import GramScores
from diffan.likelihood.landmark_scores import INTERACTION, RIDGES, LandmarkScores
from diffan.likelihood.low_rank import low_rank_residuals
from diffan.likelihood.neighbours import NeighbourOrder, Passage, refine_among_neighbours
from diffan.progress import Silent

CPU = torch.device("cpu")


def any_score(seed: int):  # type: ignore[no-untyped-def]
    """An arbitrary objective that is fixed for every (node, parents)."""

    def score(fits):  # type: ignore[no-untyped-def]
        return [
            float(np.random.default_rng([seed, node, *sorted(parents)]).normal(scale=10.0))
            for node, parents in fits
        ]

    return score


def total(order: list[int], neighbours: np.ndarray, score) -> float:  # type: ignore[no-untyped-def]
    place = np.argsort(order)
    return sum(
        score([(j, frozenset(int(i) for i in np.flatnonzero(neighbours[j]) if place[i] < place[j]))])[0]
        for j in order
    )


def refined(order, neighbours, score, **options):  # type: ignore[no-untyped-def]
    with Silent().task("refine") as task:
        return refine_among_neighbours(order, neighbours, score, pay=0.5, task=task, **options)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 9), st.floats(0.1, 0.9), st.integers(0, 10_000))
def test_the_objective_falls_with_every_sweep_and_is_what_it_says(d: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((d, d)) < density, 1)
    neighbours = upper | upper.T
    start = rng.permutation(d).tolist()
    must = np.zeros((d, d), bool)
    must[start[0], start[-1]] = True
    order, trace, moves = refined(start, neighbours, any_score(seed), must_precede=must)
    assert sorted(order) == list(range(d))
    assert all(later < earlier for earlier, later in pairwise(trace))
    assert trace[0] == pytest.approx(total(start, neighbours, any_score(seed)))
    assert trace[-1] == pytest.approx(total(order, neighbours, any_score(seed)))
    assert order.index(start[0]) < order.index(start[-1])
    assert (not moves) == (order == start)


def test_a_passage_that_others_have_changed_is_not_made() -> None:
    neighbours = np.ones((4, 4), bool) ^ np.eye(4, dtype=bool)
    state = NeighbourOrder([0, 1, 2, 3], neighbours)
    move = Passage(3, (2,), True, 1.0)
    assert state.still_there(move)
    assert state.make(Passage(2, (1,), True, 1.0)) == (2, 2, 1)
    assert state.order == [0, 2, 1, 3]
    assert not state.still_there(move)


def bent(n: int, noise: float, seed: int) -> np.ndarray:
    """x0 -> x2 <- x1 by a product, x2 -> x3 by a curve; standardised."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = np.sin(1.5 * a) * b + noise * rng.normal(size=n)
    e = np.cos(2 * c) + noise * rng.normal(size=n)
    values = np.column_stack([a, b, c, e])
    return (values - values.mean(0)) / values.std(0)


def test_the_kernel_objective_finds_an_order_that_fits_best_of_all() -> None:
    values = bent(600, 0.3, seed=1)
    everyone = np.ones((4, 4), bool) ^ np.eye(4, dtype=bool)
    score = LandmarkScores(values, landmarks=64, device=CPU)
    costs = {order: total(list(order), everyone, score) for order in permutations(range(4))}
    for start in ([0, 2, 1, 3], [1, 0, 3, 2], [0, 3, 1, 2]):
        order, trace, _ = refined(start, everyone, score)
        assert trace[-1] == pytest.approx(min(costs.values()))
        assert max(order.index(0), order.index(1)) < order.index(2) < order.index(3)


def test_only_the_kernel_sees_a_product() -> None:
    values = bent(800, 0.3, seed=2)
    both = frozenset({0, 1})
    additive = GramScores(SplineGram.from_values(values), CPU)
    kernel = LandmarkScores(values, landmarks=96, device=CPU)
    additive_gain = np.subtract(*additive([(2, frozenset()), (2, both)]))
    kernel_gain = np.subtract(*kernel([(2, frozenset()), (2, both)]))
    assert kernel_gain > additive_gain + 300


def test_landmark_residuals_are_those_of_single_fits() -> None:
    values = bent(400, 0.5, seed=3).astype(np.float32)
    score = LandmarkScores(values, landmarks=64, device=CPU)
    points = torch.tensor(values)
    for node, parents in ((2, [0, 1]), (3, [2]), (0, [1, 2, 3])):
        fits = [
            low_rank_residuals(
                points[:, parents],
                points[:, node],
                n_landmarks=64,
                ridge=ridge,
                interaction=INTERACTION,
                bandwidth=1.0,
            )
            for ridge in RIDGES
        ]
        best = min(fits, key=lambda residuals: float(residuals.square().mean()))
        ((_, found),) = score._batches([(node, frozenset(parents))])
        torch.testing.assert_close(found[0], best, rtol=1e-3, atol=1e-3)


def test_gram_scores_pay_for_parents_that_do_nothing() -> None:
    values = np.random.default_rng(4).normal(size=(500, 6))
    score = GramScores(SplineGram.from_values(values), CPU)
    alone, idle = score([(0, frozenset()), (0, frozenset({1, 2, 3, 4, 5}))])
    assert alone == 0.0
    assert idle > -10.0
    doubled = np.column_stack([values, values[:, 0]])
    assert np.isfinite(
        GramScores(SplineGram.from_values(doubled), CPU)([(0, frozenset({6})), (1, frozenset({0, 6}))])
    ).all()


def test_skewed_noise_turns_the_entropy() -> None:
    rng = np.random.default_rng(5)
    score = LandmarkScores(rng.exponential(size=(500, 3)), landmarks=32, device=CPU)
    score.settle_entropy([frozenset(), frozenset({0}), frozenset({1})])
    assert not score.gaussian
