"""The second look: curves follow the truth, doubts are raised where they must be and only there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import diffan
from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.inspection import stored
from diffan.inspection.look import inspected
from diffan.inspection.sortability import sortability
from diffan.inspection.values import Diagnostic
from diffan.table import Table


def look(frame: pd.DataFrame, edges: list[tuple[str, str]], **table_options: Any) -> Discovery:
    """The second look at a graph that is given, so that only the look is under test."""
    table = Table.read(frame, **table_options)
    dag = Dag.from_edges(edges, table.names)
    chosen = dag.adjacency.astype(bool)
    evidence = EdgeEvidence(p_values=np.where(chosen, 1e-9, 1.0), tested=chosen, chosen=chosen, cutoff=0.001)
    result = Discovery(
        order=dag.topological_order(),
        names=table.names,
        evidence=evidence,
        method="given",
        settings={"transform": table.transform},
        seed=0,
        n_samples=table.n_samples,
    )
    return inspected(result, table)


def answer(result: Discovery, topic: str) -> Diagnostic:
    (found,) = [one for one in result.diagnostics if topic in one.topic]
    return found


def bent(n: int = 800, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = np.sin(2 * a) + 0.5 * b**2 + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"a": 100 + 5 * a, "b": b, "c": 7 * c})


def test_curves_follow_the_true_effects_in_the_users_units() -> None:
    result = look(bent(), [("a", "c"), ("b", "c")])
    curve = next(c for c in result.inspection.curves if result.names[c.cause] == "a")
    assert 85 < curve.low < 92
    assert 108 < curve.high < 115
    true = 7 * np.sin(2 * (curve.grid() - 100) / 5)
    off = curve.fit - true - (curve.fit - true).mean()
    assert np.sqrt((off**2).mean()) < 0.8  # of a swing of 14
    assert np.mean(np.abs(off) < 2.5 * curve.error) > 0.8
    assert curve.straightness < 0.7
    assert result.inspection.r2[2] > 0.85
    assert np.abs(result.inspection.residuals[:, 2]).std() < 0.35 * 7


def test_a_good_run_raises_no_doubt() -> None:
    result = look(bent(), [("a", "c"), ("b", "c")])
    assert [one.topic for one in result.diagnostics if one.level == "doubt"] == []
    assert answer(result, "directions").level == "fine"
    assert answer(result, "independent of the causes").level == "fine"
    assert "doubt" not in result.summary()


def test_a_straight_gaussian_edge_has_no_direction() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=600)})
    found = answer(look(frame, [("x", "y")]), "directions")
    assert (found.level, found.edges) == ("doubt", (("x", "y"),))
    assert "the other way round" in found.text
    assert found.advice
    frame["y"] = 2 * x + rng.exponential(size=600)
    assert answer(look(frame, [("x", "y")]), "directions").level == "note"


def test_noise_that_follows_the_cause_is_seen() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=1500)
    frame = pd.DataFrame({"x": x, "y": np.tanh(x) + (0.2 + np.abs(x)) * rng.normal(size=1500)})
    result = look(frame, [("x", "y")])
    found = answer(result, "independent of the causes")
    assert (found.level, found.edges) == ("doubt", (("x", "y"),))
    assert "doubt: " in result.summary()


def test_noise_far_from_gaussian_is_seen() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=500), "y": rng.exponential(size=500)})
    assert answer(look(frame, []), "Gaussian").variables == ("y",)


def test_discrete_columns_outliers_and_few_rows_are_seen() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    frame["b"] = rng.integers(0, 3, 300)
    frame.loc[0, "c"] = 1e3
    result = look(frame, [])
    assert answer(result, "continuous").variables == ("b",)
    assert answer(result, "outliers").variables == ("c",)
    assert answer(result, "enough rows").level == "fine"
    wide = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    assert answer(look(wide, []), "enough rows").level == "doubt"


def test_sortability_counts_ancestor_pairs() -> None:
    chain = Dag.from_edges([("a", "b"), ("b", "c")], ["a", "b", "c"])
    assert sortability(chain, [1, 2, 3]) == (1.0, 3)
    assert sortability(chain, [3, 2, 1]) == (0.0, 3)
    assert sortability(chain, [1, 3, 2]) == (pytest.approx(2 / 3), 3)
    assert sortability(chain, [1, 1, 1]) == (0.5, 3)
    assert sortability(Dag.from_edges([], ["a", "b"]), [1, 2]) == (0.5, 0)


def test_variance_that_grows_along_the_paths_is_said() -> None:
    rng = np.random.default_rng(5)
    columns = [rng.normal(size=500)]
    for _ in range(4):
        columns.append(2 * np.tanh(columns[-1]) * columns[-1] + rng.normal(size=500))
    frame = pd.DataFrame(np.column_stack(columns) * 10.0 ** np.arange(5), columns=list("abcde"))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    assert answer(look(frame, edges), "variance").level == "note"
    assert answer(look(frame, edges, standardize=False), "variance").level == "doubt"
    assert answer(look(frame[list("edcba")], edges), "variance").level == "note"
    shuffled = frame * 10.0 ** np.array([2, -3, 1, 4, -9])
    assert answer(look(shuffled, edges), "variance").level == "fine"


def test_close_leaf_choices_are_said() -> None:
    table = Table.read(bent())
    plain = look(bent(), [("a", "c")])
    for second, level in [(1.001, "doubt"), (2.0, "fine")]:
        evidence = np.array([[second, 5.0, 1.0], [1.0, second, np.nan]])
        result = inspected(replace(plain, leaf_evidence=evidence), table)
        assert answer(result, "close call").level == level


def test_every_reason_for_doubt_says_what_to_do() -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.integers(0, 3, size=(60, 8)) * 1.0, columns=list("abcdefgh"))
    result = look(frame, [("a", "b"), ("b", "c")])
    doubts = [one for one in result.diagnostics if one.level == "doubt"]
    assert doubts
    assert all(one.advice.endswith(".") and one.text.endswith(".") for one in doubts)


def test_tiny_and_wide_tables_are_looked_at_too() -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.normal(size=(10, 6)), columns=list("abcdef"))
    result = look(frame, [(a, "f") for a in "abcde"])
    assert len(result.inspection.curves) == 5
    assert np.isfinite(result.inspection.residuals).all()


@pytest.mark.parametrize("scale", [1e-300, 1e150, 1e307])
def test_columns_of_any_magnitude(tmp_path, scale: float) -> None:
    result = look(bent(120) * [scale / 100, scale, scale / 10], [("a", "c"), ("b", "c")])
    result.save(tmp_path / "run")
    assert diffan.load(tmp_path / "run").inspection.curves[0].edf == result.inspection.curves[0].edf
    plain = look(bent(120), [("a", "c"), ("b", "c")])
    np.testing.assert_allclose(result.inspection.skewness, plain.inspection.skewness, atol=1e-3)


def test_discover_looks_unless_told_not_to(tmp_path) -> None:
    result = diffan.discover(bent(300), "r2-sort")
    assert len(result.inspection.curves) == result.dag.n_edges
    assert result.timings["inspect"] > 0
    result.save(tmp_path / "run")
    again = diffan.load(tmp_path / "run")
    assert stored.to_json(again.inspection, again.names) == stored.to_json(result.inspection, result.names)
    blind = diffan.discover(bent(300), "r2-sort", inspect=False)
    assert (blind.inspection, blind.diagnostics) == (None, ())
    blind.save(tmp_path / "run")
    assert not (tmp_path / "run" / "inspection.json").exists()
    assert diffan.load(tmp_path / "run").inspection is None


def test_long_tables_are_thinned() -> None:
    result = look(bent(9000), [("a", "c")])
    assert (result.inspection.rows, result.inspection.values.shape) == (5000, (200, 3))


def damage(content: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    changed = json.loads(json.dumps(content))
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], "other"),
        (["schema"], 2),
        (["schema"], True),
        (["names"], ["a", "b"]),
        (["names"], None),
        (["rows"], -1),
        (["rows"], "many"),
        (["values"], [[1.0]]),
        (["values", 0], 3),
        (["values", 0, 0], None),
        (["values", 0, 0], "1"),
        (["values", 0, 0], True),
        (["values", 0, 0], 10**400),
        (["residuals", 1], []),
        (["r2"], [0.0]),
        (["curves", 0], None),
        (["curves", 0, "cause"], 3),
        (["curves", 0, "cause"], 0.5),
        (["curves", 0, "fit"], []),
        (["curves", 0, "error"], [1.0]),
        (["curves", 0, "edf"], [1]),
        (["curves"], {}),
        (["diagnostics", 0], "text"),
        (["diagnostics", 0, "level"], "panic"),
        (["diagnostics", 0, "level"], ["fine"]),
        (["diagnostics", 0, "variables"], ["nobody"]),
        (["diagnostics", 0, "variables"], [["a"]]),
        (["diagnostics", 0, "edges"], [["a"]]),
        (["diagnostics", 0, "edges"], [["a", {}]]),
    ],
)
def test_a_damaged_second_look_is_refused_in_a_sentence(tmp_path, path: list[Any], value: Any) -> None:
    result = look(bent(60), [("a", "c")])
    result.save(tmp_path / "run")
    file = tmp_path / "run" / "inspection.json"
    file.write_text(json.dumps(damage(json.loads(file.read_text()), path, value)))
    with pytest.raises(InputError, match=r"inspection.json' is damaged .*; delete it"):
        diffan.load(tmp_path / "run")


def test_a_second_look_that_is_no_json_is_refused(tmp_path) -> None:
    look(bent(60), []).save(tmp_path / "run")
    file = tmp_path / "run" / "inspection.json"
    for text in ("", "[" * 100_000, "[]", '{"format": NaN}', "\x00"):
        file.write_text(text)
        with pytest.raises(InputError, match="is damaged"):
            diffan.load(tmp_path / "run")


# ---- what the model leaves out ----------------------------------------------------------------

NEITHER, APART, SEQUENCE = "one way round", "unconnected variables", "independent of each other"


def hidden_cause(seed: int, n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    hidden, one, other = rng.normal(size=(3, n))
    return pd.DataFrame(
        {"x": np.tanh(2 * hidden) + 0.3 * one, "y": hidden**2 + hidden + 0.3 * other, "z": rng.normal(size=n)}
    )


@pytest.mark.parametrize("edge", [("x", "y"), ("y", "x")])
def test_an_edge_that_stands_for_a_hidden_cause_fits_neither_way(edge: tuple[str, str]) -> None:
    found = answer(look(hidden_cause(0), [edge]), NEITHER)
    assert found.level == "doubt"
    assert found.edges == (edge,)
    assert "common cause" in found.advice


@pytest.mark.parametrize("edge", [("a", "b"), ("b", "a")])
def test_an_edge_that_is_the_wrong_way_round_is_not_called_a_hidden_cause(edge: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=600)
    frame = pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.4 * rng.normal(size=600)})
    assert answer(look(frame, [edge]), NEITHER).level == "fine"


def test_feedback_with_skewed_noise_fits_neither_way() -> None:
    one, other = np.random.default_rng(0).exponential(size=(2, 500))
    frame = pd.DataFrame({"a": (one + 0.5 * other) / 0.65, "b": (0.7 * one + other) / 0.65})
    assert answer(look(frame, [("a", "b")]), NEITHER).level == "doubt"
    assert answer(look(frame, [("b", "a")]), NEITHER).level == "doubt"


def test_unconnected_variables_whose_noise_goes_together_are_named() -> None:
    result = look(hidden_cause(2), [])
    found = answer(result, APART)
    assert found.level == "doubt"
    assert found.variables == ("x", "y")
    assert answer(look(hidden_cause(2), [("x", "y")]), APART).level == "fine"


def in_time(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = np.zeros(n), np.zeros(n)
    for t in range(1, n):
        a[t] = 0.6 * a[t - 1] + rng.normal()
        b[t] = np.tanh(2 * a[t]) + 0.3 * rng.normal()
    return pd.DataFrame({"a": a, "b": b, "c": rng.normal(size=n)})


def test_rows_that_follow_one_another_are_seen_and_shuffled_ones_are_not() -> None:
    found = answer(look(in_time(), [("a", "b")]), SEQUENCE)
    assert found.level == "doubt"
    assert found.variables == ("a",)  # the noise of b is its own
    assert "lagged" in found.advice
    shuffled = in_time().sample(frac=1, random_state=0)
    assert answer(look(shuffled, [("a", "b")]), SEQUENCE).level == "fine"


def test_groups_of_rows_and_long_tables_are_seen_too() -> None:
    rng = np.random.default_rng(3)
    person = np.repeat(rng.normal(size=1500), 4)  # more rows than the regressions use
    frame = pd.DataFrame({"u": person + 0.5 * rng.normal(size=6000), "v": rng.normal(size=6000)})
    assert answer(look(frame, []), SEQUENCE).variables == ("u",)


def test_a_sorted_table_is_no_time_series() -> None:
    found = answer(look(bent().sort_values("a"), [("a", "c"), ("b", "c")]), SEQUENCE)
    assert (found.level, found.variables) == ("note", ("a",))


def test_columns_of_few_values_are_not_taken_for_a_sequence() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"coin": rng.integers(2, size=600), "dice": rng.integers(1, 7, size=600)})
    result = look(frame.astype(float), [])
    assert [answer(result, topic).level for topic in (NEITHER, APART, SEQUENCE)] == ["fine"] * 3


def test_rows_in_random_order_are_not_judged_by_their_sequence() -> None:
    for options in ({"rows": 300}, {"stream": True}):
        result = diffan.discover(in_time().to_numpy(), "random", **options)
        found = answer(result, SEQUENCE)
        assert (found.level, found.text[:13]) == ("note", "Not looked at")
    assert answer(diffan.discover(in_time(), "random"), SEQUENCE).level == "doubt"


def test_few_rows_are_not_asked() -> None:
    result = look(bent(60), [("a", "c"), ("b", "c")])
    for topic in (NEITHER, APART, SEQUENCE):
        assert answer(result, topic).text.startswith("Not looked at")


@pytest.mark.parametrize("noise", ["gauss", "exp", "laplace"])
def test_simulated_tables_without_a_violation_raise_none_of_these_doubts(noise: str) -> None:
    from diffan.simulate.grid import paper_case

    for density in (1, 3):
        frame, dag = paper_case("er", density, noise, 0, 1, n_nodes=10)
        result = look(frame, list(dag.edges))
        for topic in (NEITHER, APART, SEQUENCE):
            assert answer(result, topic).level == "fine", topic


def test_the_kernel_test_is_calibrated_and_sees_what_correlation_does_not() -> None:
    from diffan.inspection.independence import Sample, dependence

    rng = np.random.default_rng(5)
    p_values = [dependence(*(Sample.of(rng.exponential(size=100)) for _ in range(2)))[0] for _ in range(200)]
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.11
    x = rng.normal(size=200)
    assert dependence(Sample.of(x), Sample.of(x**2 + 0.3 * rng.normal(size=200)))[0] < 1e-8
    assert dependence(Sample.of(x), Sample.of(x))[1] == pytest.approx(1.0)
    assert dependence(Sample.of(x), Sample.of(np.zeros(200))) == (1.0, 0.0)
