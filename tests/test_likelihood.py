"""The likelihood: its formulas against refitting, its search against exhaustive search, its null against chance."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from scipy import stats

import diffan
from diffan.context import Context
from diffan.errors import InputError
from diffan.knowledge import Knowledge
from diffan.likelihood.additive import refine_additively
from diffan.likelihood.entropy import gaussian_entropy, looks_gaussian, spacing_entropy
from diffan.likelihood.exact import inverse, leave_one_out
from diffan.likelihood.kernel import kernel_matrix
from diffan.likelihood.low_rank import low_rank_residuals
from diffan.likelihood.moves import State
from diffan.likelihood.null import NullModel
from diffan.likelihood.refine import refine
from diffan.likelihood.select import even_odds, price_of_set, select, settle
from diffan.likelihood.settings import LikelihoodSettings
from diffan.table import Table

CONTEXT = Context(seed=0, device="cpu")
SETTINGS = LikelihoodSettings()


def planted(d: int, n: int, seed: int, n_edges: int | None = None) -> tuple[Table, diffan.Dag]:
    dag = diffan.simulate.random_dag(d, n_edges or d, seed=seed)
    return Table.read(diffan.simulate.sample_anm(dag, n, noise_scale=(0.3, 0.5), seed=seed)), dag


# ---- formulas -----------------------------------------------------------------------------------


def test_leave_one_out_equals_refitting_without_the_row() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(30, 2, dtype=torch.float64, generator=generator)
    target = torch.sin(points[:, 0]) * points[:, 1]
    ridge = 0.3
    kernel = kernel_matrix(points, points, 0.85, 1.0)
    shifted = kernel + ridge * torch.eye(30, dtype=torch.float64)
    found = leave_one_out(inverse(shifted)[None], target[None])[0]
    for i in range(30):
        rest = [k for k in range(30) if k != i]
        weights = torch.linalg.solve(shifted[rest][:, rest], target[rest])
        assert found[i] == pytest.approx(float(target[i] - kernel[i, rest] @ weights), abs=1e-10)


def test_every_row_a_landmark_is_nearly_exact() -> None:
    generator = torch.Generator().manual_seed(1)
    points = torch.randn(120, 2, generator=generator)
    target = torch.tanh(points[:, 0] + points[:, 1]) + 0.3 * torch.randn(120, generator=generator)
    shifted = kernel_matrix(points, points, 0.85, 1.0) + 0.3 * torch.eye(120)
    exact = leave_one_out(inverse(shifted)[None], target[None])[0]
    options = {"ridge": 0.3, "interaction": 0.85, "bandwidth": 1.0}
    full = low_rank_residuals(points, target, n_landmarks=120, **options)
    few = low_rank_residuals(points, target, n_landmarks=40, **options)
    assert float((full - exact).std() / exact.std()) < 0.02
    assert float((few - exact).std() / exact.std()) < 0.15


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda rng: rng.normal(size=20_000), 0.5 * np.log(2 * np.pi * np.e)),
        (lambda rng: rng.uniform(size=20_000), 0.0),
        (lambda rng: rng.exponential(size=20_000), 1.0),
        (lambda rng: rng.laplace(size=20_000), 1 + np.log(2)),
    ],
)
def test_the_entropy_of_known_laws(draw, truth: float) -> None:
    sample = torch.tensor(draw(np.random.default_rng(0)))
    assert float(spacing_entropy(sample)) == pytest.approx(truth, abs=0.03)
    assert float(gaussian_entropy(sample)) >= truth - 0.01  # no law of that spread has more


def test_the_gate_between_the_entropies() -> None:
    rng = np.random.default_rng(0)
    assert looks_gaussian(torch.tensor(rng.normal(size=(9, 1000))))
    assert not looks_gaussian(torch.tensor(rng.laplace(size=(9, 1000))))
    assert not looks_gaussian(torch.tensor(rng.exponential(size=(9, 1000)) - 1))


def test_the_null_gives_uniform_p_values_and_an_honest_tail() -> None:
    rng = np.random.default_rng(0)
    null = NullModel.fit(rng.chisquare(1, 400) - 3)
    fresh = null.p_value(rng.chisquare(1, 20_000) - 3)
    assert abs(np.mean(fresh < 0.05) - 0.05) < 0.02
    assert np.mean(fresh < 0.001) < 0.002
    rising = null.p_value(np.linspace(-3, 60, 200))
    assert (np.diff(rising) <= 0).all()
    assert 0 < rising[-1] < 1e-6
    assert float(null.p_value(null.level(1e-4))) == pytest.approx(1e-4)


# ---- refine -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_refining_never_worsens_and_mends_a_planted_order(seed: int) -> None:
    table, dag = planted(6, 300, seed)
    start = np.random.default_rng(seed).permutation(6).tolist()
    found = refine(start, table, settings=SETTINGS, context=CONTEXT)
    assert sorted(found.order) == list(range(6))
    assert all(later <= earlier for earlier, later in zip(found.trace, found.trace[1:], strict=False))
    assert diffan.metrics.order_divergence(dag, found.order) <= diffan.metrics.order_divergence(dag, start)
    truth = [dag.index(name) for name in dag.topological_order()]
    from_truth = refine(truth, table, settings=SETTINGS, context=CONTEXT)
    assert found.trace[-1] <= from_truth.trace[0] + 0.02 * abs(from_truth.trace[0])


def test_refining_agrees_with_exhaustive_search_in_most_cases() -> None:
    """All 24 orders of four variables: the refined one is among the best."""
    agreed = 0
    free = LikelihoodSettings(entropy="gauss")
    fixed = LikelihoodSettings(
        entropy="gauss", move_nats=1e9
    )  # no move pays: the objective of the order given
    for seed in range(6):
        table, _ = planted(4, 200, seed, n_edges=4)
        totals = {
            order: refine(order, table, settings=fixed, context=CONTEXT).trace[-1]
            for order in permutations(range(4))
        }
        found = refine((3, 2, 1, 0), table, settings=free, context=CONTEXT)
        agreed += totals[tuple(found.order)] <= min(totals.values()) + free.move_nats
    assert agreed >= 4


def test_moves_respect_what_must_precede() -> None:
    table, dag = planted(6, 200, 1)
    backwards = [dag.index(name) for name in dag.topological_order()][::-1]
    first, last = (table.names[backwards[place]] for place in (0, -1))
    rules = Knowledge(tiers=[[first], [last]]).consequences(table.names)
    bound = replace(CONTEXT, constraints=rules)
    for found in (
        refine(backwards, table, settings=SETTINGS, context=bound),
        refine_additively(backwards, table, context=bound),
    ):
        assert found.order.index(backwards[0]) < found.order.index(backwards[-1])
    with pytest.raises(InputError, match="must obey what is known"):
        refine(backwards[::-1], table, settings=SETTINGS, context=bound)


def test_additive_refinement_lowers_its_objective_and_mends_additive_data() -> None:
    before = after = 0
    for seed in range(4):
        dag = diffan.simulate.random_dag(6, 8, seed=seed)
        frame = diffan.simulate.sample_anm(
            dag, 400, mechanism="additive-gp", noise_scale=(0.3, 0.5), seed=seed
        )
        start = np.random.default_rng(seed).permutation(6).tolist()
        found = refine_additively(start, Table.read(frame), context=CONTEXT)
        assert all(later < earlier for earlier, later in zip(found.trace, found.trace[1:], strict=False))
        before += diffan.metrics.order_divergence(dag, start)
        after += diffan.metrics.order_divergence(dag, found.order)
    assert after < before / 2


# ---- select -------------------------------------------------------------------------------------


def test_selection_finds_the_planted_edges_with_their_evidence() -> None:
    missed = false = total = 0
    for seed in range(3):
        table, dag = planted(6, 400, seed)
        order = [dag.index(name) for name in dag.topological_order()]
        found = select(order, table, settings=SETTINGS, context=CONTEXT)
        truth = np.array(dag.adjacency, dtype=bool)
        missed += int((truth & ~found.chosen).sum())
        false += int((found.chosen & ~truth).sum())
        total += dag.n_edges
        np.testing.assert_array_equal(found.chosen, found.tested & (found.p_values < found.cutoff))
        assert not np.isnan(found.measures["nats"][found.tested]).any()
        assert found.tested.sum() == 15
        chosen, others = (
            found.measures["nats"][found.chosen],
            found.measures["nats"][found.tested & ~found.chosen],
        )
        assert chosen.min() > others.max()
    assert missed <= 3
    assert false <= 1
    assert total == 18


def test_unrelated_columns_get_no_edges() -> None:
    rng = np.random.default_rng(0)
    edges = sum(
        int(
            select(
                range(5), Table.read(rng.normal(size=(200, 5))), settings=SETTINGS, context=CONTEXT
            ).chosen.sum()
        )
        for _ in range(5)
    )
    assert edges <= 1


def test_candidates_bound_the_selection() -> None:
    table, dag = planted(6, 200, 0)
    order = [dag.index(name) for name in dag.topological_order()]
    candidates = np.zeros((6, 6), dtype=bool)
    candidates[order[0], order[5]] = True
    found = select(order, table, settings=SETTINGS, context=CONTEXT, candidates=candidates)
    np.testing.assert_array_equal(found.tested, candidates)


def test_sparse_graphs_ask_for_more_evidence_and_dense_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    null = NullModel.fit(2.0 * rng.exponential(size=1000) - 8.0)  # falls by a factor e every 2 nats
    useless = np.full(170, -20.0)
    strong, weak = np.geomspace(50, 300, 20), np.linspace(5, 60, 90)
    price = null.level(0.005)
    sparse = even_odds(null, np.concatenate([useless, strong]), price)
    assert price + 2 < sparse < 30
    # just there, as many false edges as true ones are expected in a small step
    false = 170 * float(null.p_value(sparse)) / null.scale
    width = np.log(strong).std(ddof=1) * np.sqrt(1 + 1 / 20) * np.sqrt(3) / np.pi
    law = stats.logistic(np.log(strong).mean(), width)
    true = (20 - 170 * 0.005) * law.pdf(np.log(sparse)) / sparse
    assert false == pytest.approx(true, rel=0.05)  # the steps it is looked for in
    assert even_odds(null, np.concatenate([useless, weak]), null.level(0.0005)) == null.level(0.0005)
    assert even_odds(null, useless, price) == price


def test_parents_that_pay_only_beside_each_other_must_pay_together() -> None:
    """Worth 12 nats as a pair and nothing alone: by chance among twenty columns, not between the only two."""
    assert price_of_set(8.0, 19, 0) == 0.0
    assert price_of_set(8.0, 19, 1) == 8.0
    assert price_of_set(8.0, 2, 2) == pytest.approx(8.0)
    assert price_of_set(8.0, 3, 2) == pytest.approx(8.0 + 2 * np.log(3))
    assert price_of_set(8.0, 19, 2) == pytest.approx(16.0)
    pair = frozenset({0, 1})

    def settled(among: int, required: frozenset[int]) -> frozenset[int]:
        def value(node: int, parents: frozenset[int]) -> float:
            return -12.0 if pair <= parents else 0.0

        state = SimpleNamespace(
            objective=SimpleNamespace(value=value),
            cost=lambda node, parents: value(node, parents) + 8.0 * len(parents),
            price=8.0,
            parents=[pair],
            required=[required],
        )
        search = settle(cast(State, state), 0, list(range(among)))
        while True:
            try:
                next(search)
            except StopIteration as stop:
                return stop.value[0]

    assert settled(2, frozenset()) == pair
    assert settled(20, frozenset()) == frozenset()
    assert settled(20, frozenset({0})) == pair  # what is known costs nothing


def test_dependent_noise_is_reported() -> None:
    rng = np.random.default_rng(0)
    cause, *noise = rng.normal(size=(3, 600))
    effects = [cause**2 + (0.1 + cause**2) * noise[0], np.sin(2 * cause) + (0.1 + np.abs(cause)) * noise[1]]
    found = select(
        [0, 1, 2], Table.read(np.column_stack([cause, *effects])), settings=SETTINGS, context=CONTEXT
    )
    assert found.chosen[0, 1]
    assert any("'x1', 'x2'" in warning for warning in found.warnings)
    clean = np.column_stack([cause, cause**2 + 0.5 * noise[0], np.sin(2 * cause) + 0.5 * noise[1]])
    assert select([0, 1, 2], Table.read(clean), settings=SETTINGS, context=CONTEXT).warnings == ()


# ---- wiring -------------------------------------------------------------------------------------


def test_auto_means_likelihood_for_diffan_and_published_for_the_rest() -> None:
    table, dag = planted(5, 150, 0)
    frame = diffan.simulate.sample_anm(dag, 150, seed=0)
    small = {"width": 16, "depth": 1, "max_steps": 20, "device": "cpu"}
    assert diffan.discover(frame, **small).settings["refine"] == "kernel"
    assert diffan.discover(frame, **small).settings["edges"] == "likelihood"
    paper = diffan.discover(frame, preset="paper", max_steps=10, device="cpu").settings
    assert (paper["refine"], paper["edges"]) == (False, "additive")
    baseline = diffan.discover(frame, "r2-sort").settings
    assert (baseline["refine"], baseline["edges"]) == (False, "additive")
    mended = diffan.discover(frame, "random", refine="kernel", edges="likelihood", device="cpu")
    assert "nats" in mended.evidence.measures
    assert table.n_variables == 5
    with pytest.raises(
        InputError, match="'refine' parameter must be one of 'auto', 'additive', 'kernel', False"
    ):
        diffan.discover(frame, refine=True)


def test_a_given_cutoff_holds_for_the_likelihood_too() -> None:
    _, dag = planted(5, 150, 0)
    frame = diffan.simulate.sample_anm(dag, 150, seed=0)
    options = {"refine": False, "edges": "likelihood", "device": "cpu"}
    result = diffan.discover(frame, "r2-sort", cutoff=0.3, **options)
    assert result.evidence.cutoff == 0.3
    assert result.dag.n_edges >= diffan.discover(frame, "r2-sort", **options).dag.n_edges


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_units_do_not_matter_where_columns_keep_them(unit: float) -> None:
    """Bandwidths are in standard deviations, also of a table that is not standardised."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=300)
    middle = np.sin(1.5 * cause) + 0.3 * rng.normal(size=300)
    effect = middle**2 + 0.3 * rng.normal(size=300)
    values = np.column_stack([cause, middle, effect]) * unit
    raw = Table.read(values, standardize=False)
    settings, context = LikelihoodSettings(), Context(seed=0, device="cpu")
    plain = select([0, 1, 2], Table.read(values), settings=settings, context=context)
    kept = select([0, 1, 2], raw, settings=settings, context=context)
    assert kept.chosen.tolist() == plain.chosen.tolist()
    assert {(0, 1), (1, 2)} <= {(int(i), int(j)) for i, j in np.argwhere(kept.chosen)}
