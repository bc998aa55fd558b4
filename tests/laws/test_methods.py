"""What every method owes its users, whatever its mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import diffan
from diffan.discovery import Discovery
from diffan.methods import METHODS

FAST: dict[str, dict[str, Any]] = {
    "diffan": {"width": 24, "depth": 2, "max_steps": 60},
    "gran-dag": {"max_steps": 200},
}
VARIANTS = [("diffan", "masking"), ("diffan", "deciduous"), ("diffan", "greedy")]
CASES = [(method, "auto") for method in METHODS] + VARIANTS


def table(seed: int = 0, n: int = 150) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(5, 5, graph="er", seed=seed)
    return diffan.simulate.sample_anm(dag, n, noise="gauss", noise_scale=(0.4, 0.8), seed=seed)


def discover(data: pd.DataFrame, method: str, variant: str, seed: int = 0) -> Discovery:
    return diffan.discover(data, method, variant=variant, seed=seed, device="cpu", **FAST.get(method, {}))


def edges(result: Discovery) -> set[tuple[str, str]]:
    return set(result.dag.edges)


@pytest.mark.parametrize(("method", "variant"), CASES)
class TestLaws:
    def test_a_dag_that_respects_its_order(self, method: str, variant: str) -> None:
        data = table()
        result = discover(data, method, variant)
        assert sorted(result.order) == sorted(data.columns)
        assert result.dag.respects(result.order)
        assert result.evidence.p_values.shape == (5, 5)
        assert not np.isnan(result.evidence.p_values).any()
        assert (result.evidence.p_values[result.evidence.chosen] < result.evidence.cutoff).all()
        assert set(result.timings) >= {"order", "edges"}

    def test_same_seed_same_answer_and_input_untouched(self, method: str, variant: str) -> None:
        data = table(1)
        before = data.copy()
        one, other = discover(data, method, variant, seed=3), discover(data, method, variant, seed=3)
        assert one.order == other.order
        np.testing.assert_array_equal(one.evidence.p_values, other.evidence.p_values)
        pd.testing.assert_frame_equal(data, before)

    def test_permuting_the_columns_permutes_the_answer(self, method: str, variant: str) -> None:
        data = table(2)
        moved = data.iloc[:, [3, 0, 4, 2, 1]]
        one, other = discover(data, method, variant), discover(moved, method, variant)
        assert one.order == other.order
        assert edges(one) == edges(other)
        pd.testing.assert_frame_equal(
            one.p_values.loc[moved.columns, moved.columns], other.p_values, check_exact=True
        )
        if one.leaf_evidence is not None and other.leaf_evidence is not None:
            np.testing.assert_array_equal(one.leaf_evidence[:, [3, 0, 4, 2, 1]], other.leaf_evidence)

    def test_units_do_not_matter(self, method: str, variant: str) -> None:
        if method == "var-sort":
            pytest.skip("sorting by raw variance reads the units: that is its point")
        data = table(3)
        one, other = (
            discover(data, method, variant),
            discover(data * [1e-6, 3.7, 1e9, 0.1, 42.0], method, variant),
        )
        assert one.order == other.order
        assert edges(one) == edges(other)


def test_raw_variance_is_what_var_sort_sorts_by() -> None:
    data = table(3) * [5.0, 1.0, 4.0, 2.0, 3.0] / table(3).std()
    assert diffan.discover(data, "var-sort").order == list(data.std().sort_values().index)
