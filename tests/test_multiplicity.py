"""Adjusted p-values against a reference, and edges judged by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control

import diffan
from diffan.errors import InputError
from diffan.multiplicity import benjamini_yekutieli, holm


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).max() == 1.0
    assert len(holm([])) == len(benjamini_yekutieli([])) == 0


def test_benjamini_yekutieli_agrees_with_scipy() -> None:
    for seed in range(5):
        raw = np.random.default_rng(seed).random(30) ** 3
        np.testing.assert_allclose(benjamini_yekutieli(raw), false_discovery_control(raw, method="by"))


def test_holm_holds_its_level_on_pure_noise() -> None:
    rng = np.random.default_rng(0)
    any_false = [holm(rng.random(40)).min() < 0.05 for _ in range(2000)]
    assert 0.035 < np.mean(any_false) < 0.065


@pytest.mark.parametrize("edges", ["additive", "likelihood"])
def test_both_are_kept_and_one_judges(edges: str, tmp_path: Path) -> None:
    dag = diffan.simulate.random_dag(5, 6, seed=3)
    data = diffan.simulate.sample_anm(dag, 150, seed=3)
    known = diffan.Knowledge(required=["x0 -> x1"])
    raw = diffan.discover(data, "r2-sort", edges=edges, knowledge=known)
    result = diffan.discover(data, "r2-sort", edges=edges, knowledge=known, adjust="holm", cutoff=0.02)
    np.testing.assert_array_equal(raw.evidence.p_values, result.evidence.p_values)
    measures, tested = result.evidence.measures, result.evidence.tested.copy()
    assert np.isnan(measures["p_holm"][0, 1])
    tested[0, 1] = False
    np.testing.assert_allclose(measures["p_holm"][tested], holm(result.evidence.p_values[tested]))
    assert (measures["p_by"][tested] >= result.evidence.p_values[tested]).all()
    expected = tested & (measures["p_holm"] < 0.02)
    expected[0, 1] = True
    np.testing.assert_array_equal(result.evidence.chosen, expected)
    result.save(tmp_path / "run")
    back = diffan.load(tmp_path / "run").at_cutoff(0.5)
    np.testing.assert_array_equal(back.dag.adjacency, result.at_cutoff(0.5).dag.adjacency)
    assert "Holm" in result.summary()


def test_an_unknown_adjustment_is_refused() -> None:
    with pytest.raises(InputError, match="'none', 'holm' or 'by'"):
        diffan.discover(np.random.default_rng(0).normal(size=(30, 2)), "random", adjust="bonferroni")
