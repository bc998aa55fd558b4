"""SCORE, NoGAM, DAS, CAM and the sorts: right on easy data, honest about options and memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from diffan.baselines import cam, das, memory, nogam, score, sorts
from diffan.baselines.kernel_regression import landmark_rows, leave_one_out
from diffan.baselines.stein_order import strong_parents
from diffan.context import Context
from diffan.errors import FitError, InputError
from diffan.metrics import order_divergence
from diffan.ordering.result import Ordering
from diffan.table import Table

CPU = Context(device="cpu")
TRUTH = np.zeros((4, 4), dtype=np.int8)  # 2 -> 0 -> 3, 2 -> 1, 1 -> 3
for _cause, _effect in [(2, 0), (0, 3), (2, 1), (1, 3)]:
    TRUTH[_cause, _effect] = 1

BY_STEIN = [
    (score, score.ScoreOptions()),
    (das, das.DasOptions()),
    (nogam, nogam.NogamOptions(landmarks=100)),
]
SEARCHES = [*BY_STEIN, (cam, cam.CamOptions())]


def easy_table(seed: int, n: int = 500, noise: str = "normal") -> Table:
    rng = np.random.default_rng([seed, n])

    def draw() -> np.ndarray:
        drawn = rng.exponential(size=n) - 1 if noise == "exponential" else rng.normal(size=n)
        return 0.4 * drawn

    root = rng.normal(size=n)
    left = root**2 / 2 + draw()
    right = np.tanh(2 * root) + draw()
    last = np.sin(2 * left) + right**2 + draw()
    return Table.read(np.column_stack([left, right, root, last]))


@pytest.mark.parametrize(("module", "options"), SEARCHES, ids=lambda value: getattr(value, "__name__", ""))
def test_most_easy_orders_are_right(module: Any, options: Any) -> None:
    wrong = [
        order_divergence(TRUTH, module.find_order(easy_table(seed), options, CPU).order) for seed in range(5)
    ]
    assert np.median(wrong) == 0
    assert sum(wrong) <= 4  # of 20 edges; a random order turns about 10 around


def test_nogam_needs_no_gaussian_noise() -> None:
    wrong = [
        order_divergence(
            TRUTH, nogam.find_order(easy_table(seed, 400, "exponential"), nogam.NogamOptions(), CPU).order
        )
        for seed in range(4)
    ]
    assert sum(wrong) <= 3


@pytest.mark.parametrize(("module", "options"), BY_STEIN, ids=lambda value: getattr(value, "__name__", ""))
def test_evidence_names_the_leaf_at_every_step(module: Any, options: Any) -> None:
    found: Ordering = module.find_order(easy_table(0), options, CPU)
    assert found.evidence is not None
    assert found.evidence.shape == (3, 4)
    assert np.nanargmin(found.evidence, axis=1).tolist() == found.order[:0:-1]
    assert np.isnan(found.evidence).sum(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("module", "options"), SEARCHES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_single_column_and_discrete_columns_are_fine(module: Any, options: Any) -> None:
    table = easy_table(1, 60)
    assert module.find_order(table.select([2]), options, CPU).order == [0]
    rounded = Table.read(
        np.column_stack([table.values[:, 0], table.values[:, 1] > 0.5, np.round(table.values[:, 2:])])
    )
    assert sorted(module.find_order(rounded, options, CPU).order) == [0, 1, 2, 3]


def test_das_and_stein_pruning_keep_edges_along_the_order() -> None:
    table = easy_table(2, 600)
    for found in (
        das.find_order(table, das.DasOptions(), CPU),
        score.find_order(table, score.ScoreOptions(stein_pruning=True), CPU),
    ):
        assert found.candidates is not None
        place = np.argsort(found.order)
        causes, effects = np.nonzero(found.candidates)
        assert (place[causes] < place[effects]).all()
        assert (found.candidates & (TRUTH == 1)).sum() >= 3
    assert score.find_order(table, score.ScoreOptions(), CPU).candidates is None


def test_das_caps_the_parents() -> None:
    found = das.find_order(easy_table(3), das.DasOptions(min_parents=1, max_parents=1), CPU)
    assert found.candidates is not None
    assert found.candidates.sum(axis=0).max() == 1


def test_strong_parents_sees_odd_and_even_effects_and_little_else() -> None:
    rng = np.random.default_rng(0)
    others = torch.tensor(rng.normal(size=(400, 22)))
    row = torch.tensor(rng.normal(size=(400, 22)))
    row[:, 0] += 1.0  # a line: its derivative has a mean
    row[:, 1] += others[:, 1]  # a square: its derivative has none
    kept = strong_parents(row, others, cutoff=0.01, min_parents=0, max_parents=22)
    assert kept[:2].all()
    assert kept[2:].sum() <= 1
    assert strong_parents(row, others, cutoff=0.01, min_parents=5, max_parents=22).sum() >= 5
    assert strong_parents(row, others, cutoff=0.99, min_parents=0, max_parents=3).sum() == 3


def test_leave_one_out_equals_refitting_without_each_row() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(25, 2)), rng.normal(size=25)
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 2)
    rows = landmark_rows(25, 100, torch.device("cpu"))
    fast = leave_one_out(torch.tensor(kernel)[None], rows, torch.tensor(y)[None], 0.1)[0]
    slow = []
    for a in range(25):
        rest = np.delete(np.arange(25), a)
        weights = np.linalg.solve(kernel[np.ix_(rest, rest)] + 0.1 * np.eye(24), y[rest])
        slow.append(y[a] - kernel[a, rest] @ weights)
    np.testing.assert_allclose(fast, slow, atol=1e-5)


def test_sorts_sort() -> None:
    table = easy_table(4)
    scaled = replace(table, scale=np.array([3.0, 1.0, 4.0, 2.0]))
    assert sorts.find_order(scaled, sorts.VarSortOptions(), CPU).order == [1, 3, 0, 2]
    values = table.values
    direct = [
        1 - np.var(values[:, j] - _linear_fit(np.delete(values, j, axis=1), values[:, j])) for j in range(4)
    ]
    np.testing.assert_allclose(sorts.linear_r2(values), direct, atol=1e-6)
    assert sorts.find_order(table, sorts.R2SortOptions(), CPU).order == np.argsort(direct).tolist()
    draws = {tuple(sorts.find_order(table, sorts.RandomOptions(), Context(seed=s)).order) for s in range(20)}
    assert len(draws) > 5
    with pytest.raises(InputError, match="A sort needs"):
        sorts.find_order(table, None, CPU)  # type: ignore[arg-type]


def _linear_fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(y)), x])
    return design @ np.linalg.lstsq(design, y, rcond=None)[0]


@pytest.mark.parametrize(("module", "options"), BY_STEIN, ids=lambda value: getattr(value, "__name__", ""))
def test_too_many_rows_give_a_sentence_with_the_rows_that_fit(
    module: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**9)
    values = np.random.default_rng(0).normal(size=(50_000, 2))
    with pytest.raises(FitError, match=r"50,000 rows need 80.0 GB .* 1.0 GB .* at most 5,590 rows"):
        module.find_order(Table.read(values), options, CPU)


def test_free_memory_is_known_here() -> None:
    free = memory.free_bytes(torch.device("cpu"))
    assert free is None or 10**6 < free < 10**16
    assert memory.largest_fitting(lambda n: 8 * n * n, 8 * 300**2, 50_000) == 300


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: score.ScoreOptions(ridge=0), "'ridge' parameter of ScoreOptions must be a number above 0"),
        (lambda: score.ScoreOptions(stein_pruning=1), "must be one of True, False. Got 1"),  # type: ignore[arg-type]
        (lambda: score.ScoreOptions(stein_cutoff=1.0), "above 0 and below 1"),
        (lambda: das.DasOptions(max_parents=3), "must be at least min_parents"),
        (lambda: das.DasOptions(min_parents=True), "a whole number of 0 or more"),
        (lambda: nogam.NogamOptions(landmarks=2.5), "a whole number of 10 or more"),  # type: ignore[arg-type]
        (lambda: cam.CamOptions(search_basis=1), "a whole number of 2 or more"),
        (lambda: cam.CamOptions(min_gain=-1), "a number of 0 or more"),
    ],
)
def test_bad_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
