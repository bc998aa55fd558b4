"""Orders from learned scores, on data small enough to train in a moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffan.context import Context
from diffan.ordering.diffan_order import find_order
from diffan.ordering.result import Ordering
from diffan.settings import DiffanSettings, OrderSettings, ScoreSettings
from diffan.table import Table

SMALL = DiffanSettings(
    score=ScoreSettings(width=64, depth=2, dropout=0.0, weight_decay=0.3, max_steps=300, patience=60),
    order=OrderSettings(order_batch_size=200, kernel_columns=0),  # the learned score alone
)


def table(values: np.ndarray) -> Table:
    center, scale = values.mean(0), values.std(0)
    names = tuple(f"x{k}" for k in range(values.shape[1]))
    return Table((values - center) / scale, names, center, scale)


def chain(d: int, count: int, seed: int) -> tuple[Table, list[int]]:
    """A chain of bent mechanisms with Gaussian noise, its columns shuffled; and the true order."""
    rng = np.random.default_rng(seed)
    values = np.zeros((count, d))
    for node in range(d):
        noise = rng.normal(size=count)
        if node == 0:
            values[:, 0] = noise
            continue
        cause = values[:, node - 1] / values[:, node - 1].std()
        values[:, node] = np.sin(rng.uniform(0.8, 1.2) * cause + rng.uniform(0, 2 * np.pi)) + 0.5 * noise
    places = rng.permutation(d)  # column k shows node places[k]
    return table(values[:, places]), np.argsort(places).tolist()


def order_of(data: Table, settings: DiffanSettings = SMALL, seed: int = 0) -> Ordering:
    return find_order(data, settings, Context(seed=seed, device="cpu"))


def test_two_variables_are_told_apart() -> None:
    right = 0
    for seed in range(20):
        data, truth = chain(2, 400, seed)
        right += order_of(data, seed=seed).order == truth
    assert right >= 18


def test_the_first_leaf_of_a_chain_is_found() -> None:
    """What every variant begins with; how they go on is what tells them apart."""
    right = 0
    for seed in range(5):
        data, truth = chain(5, 800, seed)
        right += order_of(data, seed=seed).order[-1] == truth[-1]
    assert right == 5


def test_greedy_orders_a_chain_of_five() -> None:
    greedy = replace(SMALL, variant="greedy")
    orders = [(chain(5, 800, seed), seed) for seed in range(5)]
    right = sum(order_of(data, greedy, seed).order == truth for (data, truth), seed in orders)
    assert right >= 4


@pytest.mark.parametrize("variant", ["masking", "deciduous", "greedy"])
def test_with_the_kernels_opinion_every_variant_orders_a_chain_of_five(variant: str) -> None:
    both = replace(SMALL, variant=variant, order=OrderSettings(order_batch_size=200))
    orders = [(chain(5, 800, seed), seed) for seed in range(4)]
    right = sum(order_of(data, both, seed).order == truth for (data, truth), seed in orders)
    assert right >= 3


@pytest.mark.parametrize("variant", ["masking", "deciduous"])
def test_a_chain_of_three_needs_no_retraining(variant: str) -> None:
    right = 0
    for seed in range(6):
        data, truth = chain(3, 800, seed)
        right += order_of(data, replace(SMALL, variant=variant), seed).order == truth
    assert right >= 4


def test_units_count_only_in_a_table_that_keeps_them() -> None:
    """A scale of 100 makes a column's derivative small, hence a leaf, unless columns are standardised."""
    data, truth = chain(2, 400, 0)
    brief = replace(SMALL, score=replace(SMALL.score, max_steps=100))
    scale = np.ones(2)
    scale[truth[0]] = 100.0
    raw = replace(data, values=data.values * scale, scale=scale, standardized=False)
    assert order_of(data, brief).order == truth
    assert order_of(raw, brief).order == truth[::-1]


@pytest.mark.parametrize("variant", ["masking", "deciduous", "greedy"])
def test_same_seed_same_bytes(variant: str) -> None:
    data, _ = chain(3, 150, 0)
    brief = replace(SMALL, variant=variant, score=replace(SMALL.score, max_steps=40))
    first, second = order_of(data, brief), order_of(data, brief)
    assert first.order == second.order
    assert first.evidence is not None
    assert second.evidence is not None
    assert first.evidence.tobytes() == second.evidence.tobytes()
    assert all(first.model[name].tobytes() == second.model[name].tobytes() for name in first.model)


@pytest.mark.parametrize("variant", ["masking", "deciduous", "greedy"])
def test_the_result_is_complete(variant: str) -> None:
    data, _ = chain(3, 150, 0)
    before = data.values.copy()
    found = order_of(data, replace(SMALL, variant=variant, score=replace(SMALL.score, max_steps=40)))
    assert sorted(found.order) == [0, 1, 2]
    assert found.evidence is not None
    assert found.evidence.shape == (2, 3)
    assert np.isnan(found.evidence).sum(axis=1).tolist() == [0, 1]
    assert np.nanargmin(found.evidence[0]) == found.order[-1]
    assert set(found.timings) == {"train", "order"}
    assert set(found.losses) == {"step", "train", "validation"}
    assert found.model
    assert all(array.dtype == np.float32 for array in found.model.values())
    assert np.array_equal(data.values, before)


def test_paper_settings_run() -> None:
    data, _ = chain(3, 120, 0)
    paper = DiffanSettings.paper()
    found = order_of(data, replace(paper, score=replace(paper.score, max_steps=20)))
    assert sorted(found.order) == [0, 1, 2]


def test_one_variable_is_its_own_order() -> None:
    data = table(np.random.default_rng(0).normal(size=(60, 1)))
    found = order_of(data, replace(SMALL, score=replace(SMALL.score, max_steps=20)))
    assert found.order == [0]
    assert found.evidence is not None
    assert found.evidence.shape == (0, 1)


def test_recursion_runs_on_a_network() -> None:
    data, _ = chain(3, 150, 0)
    slow = replace(
        SMALL, variant="deciduous", order=replace(SMALL.order, residue="recursion", order_batch_size=20)
    )
    found = order_of(data, replace(slow, score=replace(SMALL.score, max_steps=40)))
    assert sorted(found.order) == [0, 1, 2]


def test_memory_bound_does_not_change_the_order() -> None:
    data, _ = chain(4, 150, 0)
    brief = replace(SMALL, variant="deciduous", score=replace(SMALL.score, width=256, max_steps=40))
    tight = replace(brief, order=replace(SMALL.order, memory_mb=1))
    wide, narrow = order_of(data, brief), order_of(data, tight)
    assert wide.order == narrow.order
    np.testing.assert_allclose(wide.evidence, narrow.evidence, rtol=1e-3)


def test_gpu_and_cpu_agree() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    data, truth = chain(5, 800, 0)
    found = find_order(data, SMALL, Context(device="cuda"))
    assert found.order == truth
