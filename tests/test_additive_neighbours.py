"""Screening by boosting on the Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest

from diffan.additive import SplineGram
from diffan.additive.neighbours import neighbour_mask, selection_df


def test_screening_keeps_the_causes_whatever_their_shape() -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((800, 40))
    table[:, 39] += np.sin(2 * table[:, 3]) + 0.7 * table[:, 11] ** 2 - 0.5 * table[:, 20]
    allowed = np.triu(np.ones((40, 40), dtype=bool), 1)
    kept = neighbour_mask(SplineGram.from_values(table), allowed, 6)
    assert kept[[3, 11, 20], 39].all()
    assert kept.sum(axis=0).max() == 6
    assert not (kept & ~allowed).any()
    np.testing.assert_array_equal(kept[:, :7], allowed[:, :7])  # no more than six to choose from


def test_a_repeated_cause_does_not_crowd_out_another() -> None:
    rng = np.random.default_rng(1)
    table = rng.standard_normal((600, 12))
    table[:, :5] = table[:, [0]] + 0.05 * rng.standard_normal((600, 5))
    table[:, 11] += 2 * table[:, 0] + 0.4 * np.cos(2 * table[:, 8])
    allowed = np.zeros((12, 12), dtype=bool)
    allowed[:11, 11] = True
    kept = neighbour_mask(SplineGram.from_values(table), allowed, 3)
    assert kept[8, 11]


def test_the_cost_of_choosing_agrees_with_simulation() -> None:
    rng = np.random.default_rng(2)
    draws = np.sort(rng.chisquare(1, (4000, 59)), axis=1)[:, -20:].sum(axis=1).mean()
    assert selection_df(59, 20) == pytest.approx(draws - 20, rel=0.02)
    assert selection_df(20, 20) == 0.0
    assert selection_df(20, 0) == 0.0
