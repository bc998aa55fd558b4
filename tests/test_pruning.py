"""Pruning: against stored p-values of mgcv, along orders and candidates, and on columns that are hard to test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from diffan.additive import SplineGram, fit_nodes
from diffan.additive.batched import fit_batches
from diffan.context import Context
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.pruning import PruneSettings, candidates_along, p_values, prune, term_tests
from diffan.table import Table

FIXTURES = sorted((Path(__file__).parent / "fixtures" / "mgcv").glob("case*.npz"))
CPU = Context(device="cpu")


def along(order: list[int]) -> np.ndarray:
    d = len(order)
    return candidates_along(order, np.ones((d, d)))


def table_of(values: np.ndarray) -> Table:
    """A table past the reader's checks, so that columns it would refuse reach the tests."""
    spread = values.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    names = tuple(f"v{j}" for j in range(values.shape[1]))
    return Table((values - values.mean(axis=0)) / scale, names, values.mean(axis=0), scale)


def pruned(values: np.ndarray, candidates: np.ndarray | None = None, **settings: object) -> EdgeEvidence:
    order = list(range(values.shape[1]))
    return prune(order, table_of(values), candidates, settings=PruneSettings(**settings), context=CPU)  # type: ignore[arg-type]


# ---- against mgcv -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cases() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For every stored case, on the tested edges: whether true, mgcv's p-value, ours."""
    found = []
    for file in FIXTURES:
        with np.load(file) as stored:
            values, order = stored["X"].astype(float), [int(i) for i in stored["order"]]
            tested = along(order)
            found.append(
                (stored["A"][tested] == 1, stored["pvalue"][tested], p_values(order, values)[tested])
            )
    return found


def test_decisions_agree_with_mgcv(cases: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
    assert len(cases) == 6
    differ = sum(int(((ours < 0.001) != (mgcv < 0.001)).sum()) for _, mgcv, ours in cases)
    assert differ <= 0.015 * sum(len(mgcv) for _, mgcv, _ in cases)


def test_p_values_rank_like_mgcvs(cases: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
    for _, mgcv, ours in cases:
        logs = np.log(np.maximum([mgcv, ours], 1e-16))
        assert spearmanr(*logs).statistic > 0.9


def test_power_is_mgcvs(cases: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
    for true, mgcv, ours in cases:
        assert abs((ours < 0.001)[true].mean() - (mgcv < 0.001)[true].mean()) < 0.05


def test_torch_batches_decide_the_same() -> None:
    with np.load(FIXTURES[-1]) as stored:
        gram, order = SplineGram.from_values(stored["X"].astype(float)), [int(i) for i in stored["order"]]
    regressions = [(order[k], tuple(order[:k])) for k in range(len(order))]
    for here, there in zip(fit_nodes(gram, regressions), fit_batches(gram, regressions, "cpu"), strict=True):
        np.testing.assert_allclose(term_tests(here), term_tests(there), rtol=1e-4)


# ---- orders and candidates ----------------------------------------------------------------


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 500))
    c = np.sin(2 * a) + 0.3 * rng.standard_normal(500)
    d = c + b**2 + 0.5 * rng.standard_normal(500)
    return pd.DataFrame({"d": d, "a": a, "c": c, "b": b})


def test_true_edges_are_found_and_only_they(frame: pd.DataFrame) -> None:
    evidence = prune([1, 3, 2, 0], Table.read(frame), settings=PruneSettings(), context=CPU)
    edges = {(frame.columns[i], frame.columns[j]) for i, j in np.argwhere(evidence.chosen)}
    assert edges == {("a", "c"), ("c", "d"), ("b", "d")}
    assert evidence.cutoff == 0.001
    np.testing.assert_array_equal(evidence.tested, along([1, 3, 2, 0]))
    np.testing.assert_array_equal(evidence.at_cutoff(1.0).chosen, evidence.tested & (evidence.p_values < 1.0))


def test_measures_describe_tested_edges_only(frame: pd.DataFrame) -> None:
    evidence = prune([1, 3, 2, 0], Table.read(frame), settings=PruneSettings(), context=CPU)
    assert set(evidence.measures) == {"edf", "f_statistic", "deviance_explained", "r2"}
    for measure in evidence.measures.values():
        np.testing.assert_array_equal(np.isnan(measure), ~evidence.tested)
    a, c = 1, 2
    assert evidence.measures["deviance_explained"][a, c] > 0.6
    assert evidence.measures["r2"][a, c] >= evidence.measures["deviance_explained"][a, c]
    assert evidence.measures["edf"][a, c] > 3


def test_names_and_positions_give_the_same(frame: pd.DataFrame) -> None:
    by_name = p_values(["a", "b", "c", "d"], frame)
    np.testing.assert_array_equal(by_name, p_values([1, 3, 2, 0], frame))
    np.testing.assert_array_equal(by_name, p_values([1, 3, 2, 0], frame.to_numpy()))
    assert (by_name[~along([1, 3, 2, 0])] == 1.0).all()


def test_permuting_columns_permutes_the_answer(frame: pd.DataFrame) -> None:
    order = ["a", "b", "c", "d"]
    first = pd.DataFrame(p_values(order, frame), frame.columns, frame.columns)
    turned = frame[["b", "c", "a", "d"]]
    second = pd.DataFrame(p_values(order, turned), turned.columns, turned.columns)
    np.testing.assert_allclose(
        np.log(second.loc[first.index, first.columns]), np.log(first), rtol=1e-6, atol=1e-9
    )


def test_only_candidates_are_tested(frame: pd.DataFrame) -> None:
    candidates = np.zeros((4, 4), dtype=bool)
    candidates[1, 2] = candidates[3, 0] = True
    found = p_values([1, 3, 2, 0], frame, candidates)
    assert (found < 1).sum() == 2
    assert found[1, 2] < 1e-20


def test_candidates_against_the_order_are_refused(frame: pd.DataFrame) -> None:
    candidates = np.zeros((4, 4), dtype=bool)
    candidates[0, 1] = True
    with pytest.raises(InputError, match=r"agree with the order.*'d' -> 'a'"):
        p_values(["a", "b", "c", "d"], frame, candidates)
    assert not candidates_along([1, 3, 2, 0], candidates).any()
    with pytest.raises(InputError, match="4 x 4 table of true or false"):
        p_values(["a", "b", "c", "d"], frame, np.ones((3, 3)))


@pytest.mark.parametrize("order", [["a", "b", "c"], ["a", "a", "b", "c"], [0, 1, 2, 7], ["a", "b", "c", "e"]])
def test_orders_must_list_every_column_once(frame: pd.DataFrame, order: list[object]) -> None:
    with pytest.raises(InputError, match="each of the 4 columns exactly once"):
        p_values(order, frame)


def test_many_columns_are_screened_unless_candidates_are_given() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((400, 54))
    values[:, 53] += np.sin(2 * values[:, 7]) + values[:, 30] ** 2
    screened = pruned(values, max_neighbours=5)
    assert screened.tested.sum(axis=0).max() == 5
    assert screened.chosen[[7, 30], 53].all()
    asked = pruned(values[:, :20])
    assert asked.tested.sum() == 190


def test_rules_set_the_cutoff() -> None:
    rng = np.random.default_rng(2)
    values = rng.standard_normal((300, 12))
    values[:, 11] += values[:, :3].sum(axis=1)
    fdr, adaptive = pruned(values, rule="fdr"), pruned(values, rule="adaptive")
    np.testing.assert_array_equal(fdr.p_values, adaptive.p_values)
    for evidence in (fdr, adaptive):
        assert evidence.chosen[:3, 11].all()
        assert evidence.chosen.sum() <= 6
        np.testing.assert_array_equal(
            evidence.chosen, evidence.tested & (evidence.p_values < evidence.cutoff)
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cutoff", 0.0),
        ("cutoff", "small"),
        ("rule", "bonferroni"),
        ("fdr_level", 1.0),
        ("edge_probability", -0.1),
        ("n_basis", 2),
        ("max_neighbours", 0),
        ("screen_above", 1.5),
    ],
)
def test_bad_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"'{name}' parameter must be"):
        PruneSettings(**{name: value})  # type: ignore[arg-type]


# ---- hard columns -------------------------------------------------------------------------


def hard_tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    normal = rng.standard_normal
    repeated = normal((200, 5))
    repeated[:, 3] = repeated[:, 0]
    repeated[:, 4] = repeated[:, 1] + repeated[:, 2]
    determined = normal((200, 3))
    determined[:, 1] = determined[:, 0] ** 3
    outlying = normal((200, 4))
    outlying[0] = 1e7
    constant = normal((200, 4))
    constant[:, 2] = 0.0
    return {
        "one column": normal((50, 1)),
        "two columns": normal((50, 2)),
        "fewer rows than coefficients": normal((25, 15)),
        "fewer rows than columns": normal((12, 20)),
        "ties": np.round(normal((200, 5))),
        "two values": (rng.random((200, 4)) < 0.3).astype(float),
        "rare values": (rng.random((400, 4)) < 0.01).astype(float),
        "mostly zero": rng.exponential(size=(200, 4)) * (rng.random((200, 4)) < 0.2),
        "repeated columns": repeated,
        "exact functions": determined,
        "outliers": outlying,
        "no moments": rng.standard_cauchy((200, 4)),
        "constant column": constant,
        "nearly two values": (rng.random((200, 4)) < 0.5) + 1e-9 * normal((200, 4)),
    }


@pytest.mark.parametrize("name", list(hard_tables()))
@pytest.mark.filterwarnings("error")
def test_hard_columns_give_proper_p_values(name: str) -> None:
    values = hard_tables()[name]
    before = values.copy()
    evidence = pruned(values)
    assert ((evidence.p_values > 0) & (evidence.p_values <= 1)).all()
    for measure in evidence.measures.values():
        assert np.isfinite(measure[evidence.tested]).all()
    np.testing.assert_array_equal(values, before)


def test_a_graph_of_roots_has_no_edges() -> None:
    evidence = pruned(np.random.default_rng(4).standard_normal((300, 6)), np.zeros((6, 6)))
    assert not evidence.tested.any()
    assert not evidence.chosen.any()
    assert (evidence.p_values == 1.0).all()


def test_weak_tests_come_with_a_warning() -> None:
    tables = hard_tables()
    assert any(
        "'v0'" in w and "'v3'" in w and "repeat" in w for w in pruned(tables["repeated columns"]).warnings
    )
    assert any("ridge" in w and "more" in w for w in pruned(tables["fewer rows than columns"]).warnings)
    assert any("lines or parabolas" in w for w in pruned(tables["fewer rows than coefficients"]).warnings)
    assert pruned(tables["ties"]).warnings == ()


def test_too_few_rows_do_not_make_edges() -> None:
    rng = np.random.default_rng(5)
    chosen = [pruned(rng.standard_normal((n, 20))).chosen.sum() for n in (12, 20, 30, 45, 60)]
    assert sum(chosen) <= 3  # of 950 tests at 0.001


def test_null_p_values_are_calibrated() -> None:
    rng = np.random.default_rng(6)
    causes = np.zeros((14, 14), dtype=bool)
    causes[:6, 6:] = True
    found = []
    for _ in range(12):
        values = rng.standard_t(3, (500, 14))
        values[:, :6] += rng.standard_normal((500, 1))
        found.append(pruned(values, causes).p_values[causes])
    p = np.concatenate(found)
    assert 0.025 < (p < 0.05).mean() < 0.08  # 576 tests; the benchmark measures it properly
    assert (p < 0.001).sum() <= 4
