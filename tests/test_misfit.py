"""Where the model is wrong, evidence counts for less; where it holds, nothing changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import diffan
from diffan.context import Context
from diffan.keeping import Saved
from diffan.likelihood.dependence import spread_explained
from diffan.likelihood.misfit import misfit, misfit_warning, owed_nats
from diffan.likelihood.refine import refine
from diffan.likelihood.select import select
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.snapshot import freeze, thaw
from diffan.simulate import random_dag, sample_anm
from diffan.simulate.gene_network import simulate_gene_network
from diffan.table import Table

CONTEXT = Context(seed=0, device="cpu")
CHARGED, FREE = LikelihoodSettings(), LikelihoodSettings(charge_misfit=False)


def test_the_share_is_that_of_a_regression_and_its_p_value_that_of_chi_square() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 2))
    residuals = np.stack([rng.normal(size=200), values[:, 0] ** 2 * rng.normal(size=200)])
    shares, p_values = spread_explained(residuals, values, np.ones((2, 2), dtype=bool))
    ranks = stats.rankdata(np.abs(residuals[1] - residuals[1].mean()))
    design = np.column_stack([np.ones(200), values[:, 0], values[:, 0] ** 2])
    left = ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0]
    assert shares[0, 1] == pytest.approx(1 - left.var() / ranks.var())
    assert p_values[0, 1] == pytest.approx(stats.chi2.sf(200 * shares[0, 1], 2))
    assert p_values[0, 1] < 1e-6 < p_values[0, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.5, 0.3, 0.02])
def test_a_straight_square_explains_no_more_than_its_column(dtype: type, share: float) -> None:
    """The square of a column of two values is the column again, whatever rounding has left of it."""
    exact = (np.arange(300) < 300 * share).astype(np.float64)[:, None]
    coin = ((exact - exact.mean()) / exact.std()).astype(dtype)
    noise = np.random.default_rng(1).normal(size=(1, 300)) * (0.5 + exact.T)
    shares, _ = spread_explained(noise, coin, np.ones((1, 1), dtype=bool))
    ranks = stats.rankdata(np.abs(noise[0] - noise[0].mean()))
    assert shares[0, 0] == pytest.approx(np.corrcoef(ranks, exact[:, 0])[0, 1] ** 2, rel=1e-4)


def test_chance_and_slight_dependence_owe_nothing() -> None:
    rng = np.random.default_rng(2)
    values, earlier = rng.normal(size=(500, 3)), np.triu(np.ones((3, 3), dtype=bool), 1)
    assert misfit(owed_nats(rng.normal(size=(3, 500)), values, earlier)) == 0.0
    grown = rng.normal(size=(3, 500)) * (0.3 + np.abs(values[:, 0]))
    owed = owed_nats(grown, values, earlier)
    assert owed[0, 1:].min() > 50
    assert not owed[:, 0].any()
    assert misfit(owed) == pytest.approx(owed[0, 1:].sum() / 3)


def test_the_sentence_tells_what_an_edge_had_to_show() -> None:
    owed, table = np.zeros((8, 8)), Table.read(np.random.default_rng(0).normal(size=(90, 8)))
    assert misfit_warning(owed, table, 4.0, 4.0) is None
    owed[0, 1] = 80.0
    assert misfit_warning(owed, table, 4.0, 4.0) is None  # one of eight is no pattern
    assert "57.0 nats of evidence instead of 4.0;" in str(misfit_warning(owed, table, 57.0, 4.0))
    assert "2346 nats of evidence instead of 4.0;" in str(misfit_warning(owed, table, 2345.6, 4.0))
    owed[:3, 1:4] = 80.0
    told = str(misfit_warning(owed, table, 4.0, 4.0))
    assert "'x1', 'x2', 'x3'" in told
    assert told.endswith("expect wrong edges, and try transform='rank'.")  # no logarithms of negative numbers
    assert "missed edges and some wrong ones" in str(misfit_warning(owed, table, 57.0, 4.0))
    assert "5.2 nats of evidence instead of 4.9" in str(misfit_warning(owed, table, 5.2, 4.9))
    positive = Table.read(np.exp(np.random.default_rng(0).normal(size=(90, 8))))
    assert "transform='log' or 'rank'" in str(misfit_warning(owed, positive, 4.0, 4.0))
    in_logarithms = Table.read(np.exp(table.values), transform="log")
    assert str(misfit_warning(owed, in_logarithms, 4.0, 4.0)).endswith("try transform='rank'.")
    in_ranks = Table.read(np.exp(table.values), transform="rank")
    assert "transform='log' if all columns are positive" in str(misfit_warning(owed, in_ranks, 4.0, 4.0))


def test_a_table_that_fits_is_not_charged_along_its_order() -> None:
    dag = random_dag(8, 10, "er", seed=3)
    table = Table.read(sample_anm(dag, 300, noise="gauss", seed=3, device="cpu"))
    order = [dag.index(name) for name in dag.topological_order()]
    mended = [refine(order, table, settings=settings, context=CONTEXT) for settings in (CHARGED, FREE)]
    assert mended[0].trace == mended[1].trace
    one, other = (
        select(found.order, table, settings=settings, context=CONTEXT, refined=found)
        for found, settings in zip(mended, (CHARGED, FREE), strict=True)
    )
    np.testing.assert_array_equal(one.p_values, other.p_values)
    np.testing.assert_array_equal(one.chosen, other.chosen)
    assert one.cutoff == other.cutoff


@pytest.mark.parametrize(("d", "seed"), [(3, 2), (8, 4), (8, 5)])
def test_what_a_wrong_order_is_charged_does_not_last(d: int, seed: int) -> None:
    """Noise varies with earlier columns where the order is wrong, too; once it is mended nothing is left to pay."""
    dag = random_dag(d, d, "er", seed=seed)
    table = Table.read(sample_anm(dag, 500, noise="gauss", seed=seed, device="cpu"))
    order = [dag.index(name) for name in dag.topological_order()][::-1]
    once = replace(CHARGED, max_sweeps=1)
    at_first, *mended = (
        refine(order, table, settings=settings, context=CONTEXT) for settings in (once, CHARGED, FREE)
    )
    state = mended[0].state
    assert at_first.state is not None
    assert at_first.state.price > CHARGED.edge_nats
    assert state is not None
    assert state.price == max(state.misfit, CHARGED.edge_nats) < at_first.state.price
    assert mended[0].trace[-1] == pytest.approx(state.total())
    charged, free = (
        select(found.order, table, settings=settings, context=CONTEXT, refined=found)
        for found, settings in zip(mended, (CHARGED, FREE), strict=True)
    )
    assert diffan.metrics.shd(dag, diffan.Dag(charged.chosen, table.names)) <= diffan.metrics.shd(
        dag, diffan.Dag(free.chosen, table.names)
    )


def test_what_was_not_charged_or_is_no_longer_is_not_charged_at_the_end() -> None:
    frame, _ = simulate_gene_network(7, 7, 300, seed=53)
    table, order = Table.read(frame), np.random.default_rng(53).permutation(7)
    found = refine(order.tolist(), table, settings=CHARGED, context=CONTEXT)
    assert found.state is not None
    assert found.state.price == CHARGED.edge_nats
    assert found.trace[-1] == pytest.approx(found.state.total())


def test_of_two_columns_one_may_owe() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 2))
    grown = np.stack([rng.normal(size=300), rng.normal(size=300) * np.abs(values[:, 0])])
    assert misfit(owed_nats(grown, values, np.triu(np.ones((2, 2), dtype=bool), 1))) > 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_odd_column_does_not_cost_the_others_their_edges(seed: int) -> None:
    """What is drawn as yes or no has a noise that varies with its cause: that is one column's misfit, not the table's."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=700)
    flag = (rng.random(700) < 1 / (1 + np.exp(-3 * cause))).astype(float)
    effect = 0.35 * np.sin(2 * cause) + 0.7 * rng.normal(size=700)
    table = Table.read(np.column_stack([cause, flag, effect]))
    found = select([0, 1, 2], table, settings=CHARGED, context=CONTEXT)
    assert found.chosen[0].tolist() == [False, True, True]


def test_a_state_that_was_kept_asks_for_the_same_fits() -> None:
    frame, _ = simulate_gene_network(8, 9, 200, seed=2)
    table = Table.read(frame)
    found = refine(range(8), table, settings=CHARGED, context=CONTEXT)
    record, arrays = freeze(found)
    kept = thaw(Saved(record, arrays), table, CHARGED, CONTEXT)
    asked = []
    for refined in (found, kept):
        assert refined.state is not None
        select(found.order, table, settings=CHARGED, context=CONTEXT, refined=refined)
        asked.append(refined.state.objective.n_fits)
    assert asked[0] == asked[1]


def test_a_table_that_does_not_fit_pays_for_it() -> None:
    frame, truth = simulate_gene_network(12, 14, 300, seed=2)
    table = Table.read(frame)
    order = [truth.index(name) for name in truth.topological_order()]
    charged, free = (select(order, table, settings=s, context=CONTEXT) for s in (CHARGED, FREE))
    assert charged.chosen.sum() < free.chosen.sum()
    assert diffan.metrics.shd(truth, diffan.Dag(charged.chosen, table.names)) < diffan.metrics.shd(
        truth, diffan.Dag(free.chosen, table.names)
    )
    assert any("nats of evidence instead of" in sentence for sentence in charged.warnings)
    assert not any("nats of evidence instead of" in sentence for sentence in free.warnings)
    nats, tested = charged.measures["nats"], charged.tested
    by_evidence, by_p = np.argsort(nats[tested]), charged.p_values[tested]
    assert (np.diff(by_p[by_evidence]) <= 0).all()  # evidence counts for less, in the same order
    assert (charged.p_values[charged.chosen] < charged.cutoff).all()
    assert (charged.p_values[tested & ~charged.chosen] >= charged.cutoff).all()


def test_mending_is_charged_too() -> None:
    frame, truth = simulate_gene_network(10, 12, 300, seed=2)
    table = Table.read(frame)
    order = [truth.index(name) for name in truth.topological_order()][::-1]
    charged, free = (refine(order, table, settings=s, context=CONTEXT).state for s in (CHARGED, FREE))
    assert charged is not None
    assert free is not None
    assert charged.price == charged.misfit > CHARGED.edge_nats
    assert (free.price, free.misfit) == (FREE.edge_nats, 0.0)
