"""CAM's search: its likelihood never falls, its scores equal a refit, its graph has no cycle."""

from __future__ import annotations

import numpy as np
import pytest

from diffan.additive.gram import SplineGram
from diffan.baselines import cam
from diffan.baselines.cam_search import PenalisedGram, TargetFit, greedy_search, smoothing_for
from diffan.context import Context
from diffan.dag import Dag
from diffan.progress import Silent
from diffan.table import Table

N = 250


def values(seed: int = 0, d: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, d))
    for j in range(2, d):
        x[:, j] = np.sin(1.5 * x[:, j - 1]) + 0.5 * x[:, j - 2] ** 2 + 0.5 * x[:, j]
    return Table.read(x).values


def refitted_share(gram: SplineGram, x: np.ndarray, target: int, parents: list[int], edf: float) -> float:
    """Penalised residual share of the target from the rows themselves, nothing shared between fits."""
    design = (
        np.hstack([gram.bases[p].evaluate(x[:, p]) for p in parents]) if parents else np.empty((len(x), 0))
    )
    penalty = np.concatenate(
        [smoothing_for(gram.bases[p].penalties, edf) * gram.bases[p].penalties for p in parents] or [[]]
    )
    y = gram.bases[target].evaluate(x[:, target])[:, 0]  # the target, clipped and standardised
    augmented = np.vstack([design / np.sqrt(len(x)), np.diag(np.sqrt(penalty + 1e-8))])
    right = np.append(y / np.sqrt(len(x)), np.zeros(len(penalty)))
    coefficients = np.linalg.lstsq(augmented, right, rcond=None)[0]
    return float(((right - augmented @ coefficients) ** 2).sum())


def search(x: np.ndarray, edf: float = 5.0, min_gain: float = 0.0):  # type: ignore[no-untyped-def]
    gram = SplineGram.from_values(x)
    penalised = PenalisedGram.build(gram, edf)
    candidates = ~np.eye(x.shape[1], dtype=np.bool_)
    with Silent().task("") as task:
        return gram, penalised, greedy_search(penalised, candidates, task, min_gain=min_gain)


def test_likelihood_never_decreases_and_no_cycle_arises() -> None:
    _, _, found = search(values())
    losses = np.array(found.negative_log_likelihood)
    assert len(losses) == len(found.edges) + 1
    assert (np.diff(losses) < 0).all()
    assert (
        Dag(found.adjacency).n_edges == len(found.edges) == 15
    )  # every pair of 6 nodes, as CAM without pruning


def test_gains_and_shares_equal_a_refit_from_scratch() -> None:
    x = values(1)
    gram, penalised, found = search(x)
    target = int(found.adjacency.sum(axis=0).argmax())
    parents = [cause for cause, effect in found.edges if effect == target]
    fit = TargetFit(penalised, target, np.delete(np.arange(6), target))
    for count, parent in enumerate(parents[:3]):
        before = refitted_share(gram, x, target, parents[:count], 5.0)
        assert fit.unexplained == pytest.approx(before, abs=1e-7)
        gains = fit.gains()
        for place, candidate in enumerate(fit.candidates):
            if candidate in parents[:count]:
                assert gains[place] == 0
                continue
            after = refitted_share(gram, x, target, [*parents[:count], candidate], 5.0)
            assert gains[place] == pytest.approx(0.5 * np.log(before / after), abs=1e-6)
        fit.add(int(np.flatnonzero(fit.candidates == parent)[0]))


def test_each_edge_was_the_best_one_left() -> None:
    x = values(2, 4)
    gram, _, found = search(x)
    parents: dict[int, list[int]] = {j: [] for j in range(4)}
    built = np.zeros((4, 4), dtype=np.int8)
    for cause, effect in found.edges:
        gains = {}
        for i in range(4):
            for j in range(4):
                trial = built.copy()
                trial[i, j] = 1
                if i == j or built[i, j] or _cyclic(trial):
                    continue
                shares = [refitted_share(gram, x, j, p, 5.0) for p in (parents[j], [*parents[j], i])]
                gains[i, j] = np.log(shares[0] / shares[1])
        assert gains[cause, effect] == pytest.approx(max(gains.values()), abs=1e-6)
        parents[effect].append(cause)
        built[cause, effect] = 1


def _cyclic(adjacency: np.ndarray) -> bool:
    return bool(
        np.trace(np.linalg.matrix_power(np.eye(len(adjacency)) + adjacency, len(adjacency))) > len(adjacency)
    )


def test_a_minimum_gain_leaves_weak_edges_out() -> None:
    x = values(3)
    _, _, every = search(x)
    _, _, strong = search(x, min_gain=0.05)
    assert 0 < len(strong.edges) < len(every.edges)
    assert strong.edges == every.edges[: len(strong.edges)]


@pytest.mark.parametrize("edf", [1.5, 4.0, 8.5])
def test_smoothing_reaches_its_degrees_of_freedom(edf: float) -> None:
    penalties = np.append(0.0, 10.0 ** np.arange(8))
    kept = 1 / (1 + smoothing_for(penalties, edf) * penalties)
    assert kept.sum() == pytest.approx(edf, rel=1e-6)
    assert smoothing_for(penalties, 9.0) == 0.0


def test_a_repeated_column_and_few_rows_do_not_break_the_search() -> None:
    x = values(4, 4)
    doubled = np.column_stack([x, x[:, 0] + 1e-9 * x[:, 1]])
    _, _, found = search(doubled)
    assert np.isfinite(found.negative_log_likelihood).all()
    assert Dag(found.adjacency).n_nodes == 5
    few = cam.find_order(Table.read(x[:14]), cam.CamOptions(), Context())
    assert sorted(few.order) == [0, 1, 2, 3]


def test_neighbour_selection_limits_the_candidates() -> None:
    table = Table.read(values(5, 8))
    found = cam.find_order(table, cam.CamOptions(preselect_above=5, neighbours=2), Context())
    assert found.candidates is not None
    assert found.candidates.sum(axis=0).max() <= 2
    assert found.candidates[2, 3] or found.candidates[3, 2]
    place = np.argsort(found.order)
    causes, effects = np.nonzero(found.candidates)
    assert (place[causes] < place[effects]).all()
