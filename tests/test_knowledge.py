"""Statements, what follows from them and what clashes, checked against every graph of four nodes."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import diffan
from diffan.confidence import Replicate, count
from diffan.constraints import Constraints, closure
from diffan.dag import topological_indices
from diffan.errors import InputError
from diffan.knowledge import Knowledge

NAMES = list("abcd")
PAIR_KINDS = ("required", "forbidden", "required_ancestors", "forbidden_ancestors")
Reach = tuple[np.ndarray, np.ndarray]


# ---- the oracle: all DAGs of four nodes, and which of them obey -----------------------------------


@lru_cache(maxsize=1)
def all_dags() -> list[Reach]:
    cells = [(i, j) for i in range(4) for j in range(4) if i != j]
    found = []
    for bits in product((False, True), repeat=len(cells)):
        graph = np.zeros((4, 4), dtype=bool)
        for cell, bit in zip(cells, bits, strict=True):
            graph[cell] = bit
        reach = closure(graph)
        if not reach.diagonal().any():
            found.append((graph, reach))
    return found


def obeys(dag: Reach, record: dict[str, Any]) -> bool:
    graph, reach = dag
    at = NAMES.index
    home = {at(name): k for k, tier in enumerate(record.get("tiers", [])) for name in tier}
    return (
        all(graph[at(a), at(b)] for a, b in record.get("required", []))
        and not any(graph[at(a), at(b)] for a, b in record.get("forbidden", []))
        and all(reach[at(a), at(b)] for a, b in record.get("required_ancestors", []))
        and not any(reach[at(a), at(b)] for a, b in record.get("forbidden_ancestors", []))
        and not any(graph[:, at(name)].any() for name in record.get("roots", []))
        and not any(graph[at(name)].any() for name in record.get("leaves", []))
        and not any(reach[late, early] for early in home for late in home if home[early] < home[late])
    )


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    record: dict[str, Any] = {}
    pair = st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True)
    for kind in PAIR_KINDS:
        record[kind] = draw(st.lists(pair, max_size=2))
    for kind in ("roots", "leaves"):
        record[kind] = draw(st.lists(st.sampled_from(NAMES), max_size=1))
    if draw(st.booleans()):
        levels = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
        record["tiers"] = [
            [n for n, level in zip(NAMES, levels, strict=True) if level == k] for k in range(3)
        ]
    return record


def test_there_are_543_dags_of_four_nodes() -> None:
    assert len(all_dags()) == 543


@settings(max_examples=300, deadline=None, derandomize=True)
@given(record=records())
def test_refused_exactly_when_no_graph_obeys_and_no_obeying_graph_is_lost(record: dict[str, Any]) -> None:
    obeying = [dag for dag in all_dags() if obeys(dag, record)]
    refusal = ""
    try:
        rules = Knowledge.from_record(record).consequences(NAMES)
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert not obeying or "say through which variables" in refusal
        return
    assert obeying
    for graph, _ in obeying:
        assert not (graph & ~rules.permitted).any()
        assert len(topological_indices((graph | rules.must_precede).astype(np.int8))) == 4


@settings(max_examples=300, deadline=None, derandomize=True)
@given(record=records(), seed=st.integers(0, 10**6))
def test_whatever_was_chosen_the_settled_graph_obeys(record: dict[str, Any], seed: int) -> None:
    try:
        rules = Knowledge.from_record(record).consequences(NAMES)
    except InputError:
        return
    rng = np.random.default_rng(seed)
    order = rules.mended(rng.permutation(4).tolist())
    chosen, p_values = rng.random((4, 4)) < rng.random(), rng.random((4, 4))
    settled = rules.settled_edges(chosen, p_values, order)
    assert obeys((settled, closure(settled)), record)
    place = np.argsort(order)
    assert all(place[i] < place[j] for i, j in np.argwhere(settled | rules.must_precede))
    again = rules.settled_edges(settled, p_values, order)
    np.testing.assert_array_equal(again, settled)
    strongest = rules.strongest_dag(p_values)
    assert len(topological_indices((strongest | rules.must_precede).astype(np.int8))) == 4
    assert not (rules.required & ~strongest).any()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(record=records(), seed=st.integers(0, 10**6))
def test_the_consensus_of_replicates_that_obey_obeys(record: dict[str, Any], seed: int) -> None:
    try:
        rules = Knowledge.from_record(record).consequences(NAMES)
    except InputError:
        return
    rng, replicates = np.random.default_rng(seed), []
    for _ in range(4):
        order = rules.mended(rng.permutation(4).tolist())
        edges = rules.settled_edges(rng.random((4, 4)) < 0.7, rng.random((4, 4)), order)
        replicates.append(Replicate(tuple(order), tuple((int(i), int(j)) for i, j in np.argwhere(edges))))
    found = count(replicates, NAMES, rules, scheme="subsample", expected_false=1.0)
    graph = found.consensus.adjacency.astype(bool)
    assert obeys((graph, closure(graph)), record)


# ---- what is said ---------------------------------------------------------------------------------


def test_pairs_may_be_texts_and_repeats_count_once() -> None:
    known = Knowledge(required=["a -> b", ("a", "b"), ["c", "d"]])
    assert known.required == (("a", "b"), ("c", "d"))
    assert known
    assert not Knowledge()


def test_a_record_brings_the_same_knowledge_back() -> None:
    known = Knowledge(required=["a -> b"], tiers=[["a"], ["b", "c"]], leaves=["d"])
    assert known.record() == {"required": [["a", "b"]], "tiers": [["a"], ["b", "c"]], "leaves": ["d"]}
    assert Knowledge.from_record(known.record()) == known


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"required": ["a -> b", "b -> c", "c -> a"]},
            "'a' -> 'b' is required; 'b' -> 'c' is required; 'c' -> 'a' is required",
        ),
        (
            {"required": ["a -> b"], "tiers": [["b"], ["c"], ["a"]]},
            "'a' -> 'b' is required; 'b' is in tier 1 and 'c' in tier 2; 'c' is in tier 2 and 'a' in tier 3",
        ),
        (
            {"required": ["a -> b"], "forbidden": ["a -> b"]},
            "'a' -> 'b' is required; 'a' -> 'b' is forbidden",
        ),
        ({"required": ["a -> b"], "roots": ["b"]}, "'a' -> 'b' is required; 'b' is a root"),
        ({"required_ancestors": ["a -> b"], "leaves": ["a"]}, "required ancestor of 'b'; 'a' is a leaf"),
        (
            {"required": ["a -> b", "b -> c"], "forbidden_ancestors": ["a -> c"]},
            "'a' -> 'b' is required; 'b' -> 'c' is required; 'a' may not be an ancestor of 'c'",
        ),
        ({"tiers": [["a", "b"], ["a"]]}, "'a' is in tier 1; 'a' is in tier 2"),
        ({"required": ["a -> a"]}, "joins 'a' with itself"),
        ({"required": ["a, b"]}, "takes pairs such as"),
        ({"required": "a -> b"}, "must be a list"),
        ({"roots": [3]}, "takes names of columns"),
        ({"require": ["a -> b"]}, "did you mean 'required'?"),
    ],
)
def test_a_clash_is_refused_with_its_chain(said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        Knowledge.from_record(said)
    assert sentence in str(refused.value)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    data = np.random.default_rng(0).normal(size=(40, 2))
    frame = diffan.Table.read(data)
    with pytest.raises(InputError, match="names 'X1', which is no column; did you mean 'x1'"):
        diffan.discover(frame, "random", knowledge=Knowledge(required=["x0 -> X1"]))


def test_both_files_say_the_same(tmp_path: Path) -> None:
    lines = tmp_path / "known.txt"
    lines.write_text(
        "# what we know\nrequire a -> b\nforbid c -> d  # never\ntier a, b\ntier c\nroot a\nancestor a -> c\n"
    )
    toml = tmp_path / "known.toml"
    toml.write_text(
        'required = ["a -> b"]\nforbidden = [["c", "d"]]\ntiers = [["a", "b"], ["c"]]\nroots = ["a"]\n'
        'required_ancestors = ["a -> c"]\n'
    )
    assert Knowledge.read(lines) == Knowledge.read(toml) == Knowledge.of(str(toml))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("k.toml", "required = [", "is not TOML"),
        ("k.toml", 'tier = [["a"]]', "did you mean 'tiers'?"),
        ("k.txt", "a causes b", "Line 1 must begin with one of require"),
        ("k.txt", "\nroot\n", "Line 2 must begin"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        Knowledge.read(file)
    assert sentence in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        Knowledge.read(tmp_path / "nowhere.txt")


def test_together_they_say_what_each_says() -> None:
    one, other = Knowledge(required=["a -> b"], tiers=[["a"], ["b"]]), Knowledge(roots=["c"])
    assert (one | other) == Knowledge(required=["a -> b"], tiers=[["a"], ["b"]], roots=["c"])
    with pytest.raises(InputError, match="given twice"):
        one | Knowledge(tiers=[["b"], ["a"]])


# ---- what follows ---------------------------------------------------------------------------------


def test_an_order_that_obeys_is_left_alone_and_another_changes_little() -> None:
    rules = Knowledge(tiers=[["a"], ["d"]]).consequences(NAMES)
    assert rules.mended([1, 0, 2, 3]) == [1, 0, 2, 3]
    assert rules.mended([3, 1, 2, 0]) == [0, 3, 1, 2]
    assert Constraints.none(4).mended([3, 1, 2, 0]) == [3, 1, 2, 0]


def test_a_required_ancestor_without_a_path_gets_its_most_likely_edge() -> None:
    rules = Knowledge(required_ancestors=["a -> d"]).consequences(NAMES)
    chosen, p_values = np.zeros((4, 4), dtype=bool), np.ones((4, 4))
    chosen[0, 1] = True
    p_values[0, 1], p_values[1, 3], p_values[0, 3] = 0.0, 0.02, 0.4
    settled = rules.settled_edges(chosen, p_values, [0, 1, 2, 3])
    assert np.argwhere(settled).tolist() == [[0, 1], [1, 3]]


def test_the_weakest_edge_of_a_forbidden_path_goes() -> None:
    rules = Knowledge(tiers=[["a"], ["d"]], forbidden_ancestors=["a -> d"]).consequences(NAMES)
    chosen, p_values = np.zeros((4, 4), dtype=bool), np.ones((4, 4))
    for edge, p in {(0, 1): 0.001, (1, 3): 0.01, (0, 2): 0.02}.items():
        chosen[edge], p_values[edge] = True, p
    settled = rules.settled_edges(chosen, p_values, [0, 1, 2, 3])
    assert np.argwhere(settled).tolist() == [[0, 1], [0, 2]]


def test_required_edges_are_conditioned_on() -> None:
    """c is caused by b alone; a is only correlated with b, and looks like a cause of c unless b is a regressor."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=400)
    a = b + 0.3 * rng.normal(size=400)
    c = np.sin(2 * b) + 0.3 * rng.normal(size=400)
    data = {"a": a, "b": b, "c": c}
    import pandas as pd

    known = Knowledge(required=["b -> c"], tiers=[["a", "b"], ["c"]])
    result = diffan.discover(pd.DataFrame(data), "random", knowledge=known, seed=0)
    assert ("b", "c") in result.dag.edges
    assert ("a", "c") not in result.dag.edges
    blind = diffan.discover(
        pd.DataFrame(data), "random", knowledge={"forbidden": ["b -> c"], "leaves": ["c"]}
    )
    assert ("a", "c") in blind.dag.edges


def test_knowledge_is_kept_with_the_run(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(60, 4))
    known = Knowledge(required=["x0 -> x1"], forbidden_ancestors=["x2 -> x3"])
    result = diffan.discover(data, "r2-sort", knowledge=known)
    result.save(tmp_path / "run")
    back = diffan.load(tmp_path / "run")
    assert back.knowledge == known
    assert back.at_cutoff(1e-9).dag.edges == [("x0", "x1")]
    file = tmp_path / "run" / "graph.json"
    file.write_text(file.read_text().replace('"required"', '"requierd"'))
    with pytest.raises(InputError, match="is damaged .*did you mean 'required'"):
        diffan.load(file)
