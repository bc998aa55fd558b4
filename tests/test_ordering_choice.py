"""From derivatives to a leaf: criteria, votes, points and the loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffan.algorithm import topological_order
from diffan.ordering.choice import choose, choose_leaf, criterion_of
from diffan.ordering.kernel_opinion import kernel_opinion
from diffan.ordering.points import OrderingPoints
from diffan.settings import OrderSettings

BASE = OrderSettings(order_batch_size=20, mean_weight=0.0)
CPU = torch.device("cpu")


def test_criteria_are_what_they_say() -> None:
    diagonals = torch.tensor([[1.0, -2.0], [3.0, -2.0], [5.0, -2.0], [100.0, -2.0]])
    np.testing.assert_allclose(criterion_of(diagonals, BASE), [np.var([1, 3, 5, 100], ddof=1), 0])
    np.testing.assert_allclose(criterion_of(diagonals, replace(BASE, criterion="mean")), [27.25, 2])
    assert criterion_of(diagonals, replace(BASE, criterion="spread"))[0] == pytest.approx(4)
    weighted = criterion_of(diagonals, replace(BASE, mean_weight=2.0))
    assert weighted[0] == pytest.approx(np.var([1, 3, 5, 100], ddof=1) * 27.25**2)


CRITERIA = np.array([[1.0, 2.0, 9.0], [5.0, 4.0, 9.0], [50.0, 40.0, 900.0]])


@pytest.mark.parametrize(("vote", "leaf"), [("majority", 1), ("log_mean", 0), ("rank", 1), ("mean", 0)])
def test_votes(vote: str, leaf: int) -> None:
    criteria = CRITERIA if vote != "log_mean" else np.array([[1.0, 4.0], [5.0, 4.0]])
    place, combined = choose(criteria, replace(BASE, vote=vote))
    assert place == leaf
    assert combined.shape == (criteria.shape[1],)


def test_a_single_level_needs_no_vote() -> None:
    for vote in ("majority", "log_mean", "rank", "mean"):
        place, combined = choose(np.array([[3.0, 1.0, 2.0]]), replace(BASE, vote=vote))
        assert place == 1
        assert np.argsort(combined).tolist() == [1, 2, 0]


def test_ties_of_a_majority_fall_to_the_lower_criterion() -> None:
    place, _ = choose(
        np.array([[1.0, 1.1, 9.0], [9.0, 1.1, 1.0], [5.0, 1.0, 5.0]]), replace(BASE, vote="majority")
    )
    assert place == 1


def test_peel_puts_causes_first_and_keeps_the_evidence() -> None:
    importance = np.array([5.0, 1.0, 3.0, 2.0])
    seen = []

    def find_leaf(remaining, removed):
        seen.append((remaining, removed))
        criterion = importance[list(remaining)]
        return remaining[int(criterion.argmin())], criterion

    order, evidence = topological_order(find_leaf, 4)
    assert order == [0, 2, 3, 1]
    assert seen[-1] == ((0, 2), (1, 3))
    np.testing.assert_array_equal(evidence[1], [5, np.nan, 3, 2])


def test_points_repeat_and_follow_the_settings() -> None:
    values = np.random.default_rng(0).normal(size=(100, 3))

    def points(**options) -> OrderingPoints:
        return OrderingPoints(values, replace(BASE, **options), 0, CPU)

    clean = points().at(0.3, 0)
    assert clean.shape == (20, 3)
    assert torch.equal(clean, points().at(0.3, 5))
    assert torch.equal(clean, points().at(0.7, 0))
    assert not torch.equal(points(resample=True).at(0.3, 0), points(resample=True).at(0.3, 1))
    noise = points(evaluate_at="noised").at(0.3, 0) - clean
    assert 0.2 < float(noise.std()) < 0.4
    torch.testing.assert_close(points(evaluate_at="as_latent").at(0.75, 0), clean * 1.25)


def test_points_in_the_users_units() -> None:
    points = OrderingPoints(np.zeros((30, 2)), BASE, 0, CPU, scale=np.array([2.0, 10.0]))
    torch.testing.assert_close(points.in_units(torch.ones(4, 1), [1]), torch.full((4, 1), 0.01))


def test_a_second_opinion_counts_twice_as_much_as_all_noise_levels() -> None:
    def diagonals(spreads) -> torch.Tensor:
        unit = torch.tensor([-1.0, 1.0, -1.0, 1.0], dtype=torch.float64)[:, None]
        return -2.0 + unit * torch.tensor(spreads, dtype=torch.float64).sqrt()

    settings = OrderSettings(noise_levels=(0.2, 0.3, 0.4), vote="log_mean", mean_weight=0.0)
    alone = OrderingPoints(np.zeros((30, 2)), settings, 0, CPU)
    network = lambda sigma: diagonals([1.0, 3.0])  # noqa: E731
    assert choose_leaf(alone, (0, 1), network)[0] == 0
    for against, leaf in (([1.6, 1.0], 0), ([1.8, 1.0], 1)):
        both = replace(alone, second_opinion=lambda remaining, against=against: diagonals(against))
        assert choose_leaf(both, (0, 1), network)[0] == leaf


def test_the_kernels_opinion_is_that_of_the_remaining_columns_alone() -> None:
    rng = np.random.default_rng(0)
    values = rng.multivariate_normal(np.zeros(3), [[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1]], size=1500)
    opinion = kernel_opinion(values, CPU)
    whole, rest = opinion((0, 1, 2)), opinion((0, 2))
    assert float(whole[:, 0].mean()) == pytest.approx(-1 / (1 - 0.36), rel=0.15)  # minus the precision
    assert float(rest[:, 0].mean()) == pytest.approx(-1.0, rel=0.15)  # column 1 is gone


def test_the_paper_asks_the_network_alone() -> None:
    assert OrderSettings.paper().kernel_columns == 0
    assert OrderSettings().kernel_columns > 0


def test_where_the_majority_decides_a_second_opinion_has_one_vote() -> None:
    settings = OrderSettings(noise_levels=(0.2, 0.3), vote="majority", mean_weight=0.0)
    unit = torch.tensor([-1.0, 1.0], dtype=torch.float64)[:, None]
    points = OrderingPoints(
        np.zeros((30, 2)), settings, 0, CPU, second_opinion=lambda remaining: unit * torch.tensor([2.0, 1.0])
    )
    assert choose_leaf(points, (0, 1), lambda sigma: unit * torch.tensor([1.0, 2.0]))[0] == 0
