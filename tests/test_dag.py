"""Dag: acyclic by construction, the same in every form."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffan.dag import Dag
from diffan.errors import InputError


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    d = draw(st.integers(1, 7))
    upper = np.triu(
        draw(st.lists(st.booleans(), min_size=d * d, max_size=d * d).map(np.array)).reshape(d, d), k=1
    )
    names = draw(st.lists(st.text(max_size=6), min_size=d, max_size=d, unique=True))
    shuffle = np.array(draw(st.permutations(range(d))))
    return Dag(upper[np.ix_(shuffle, shuffle)], names)


def test_a_cycle_is_refused_and_named() -> None:
    with pytest.raises(
        InputError, match="'a' -> 'b' -> 'c' -> 'a'|'b' -> 'c' -> 'a' -> 'b'|'c' -> 'a' -> 'b' -> 'c'"
    ):
        Dag.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], ["a", "b", "c", "d"])


def test_a_loop_is_a_cycle() -> None:
    with pytest.raises(InputError, match="'x0' -> 'x0'"):
        Dag([[1, 0], [0, 0]])


@pytest.mark.parametrize(
    ("adjacency", "names", "sentence"),
    [
        ([[0, 1]], None, "must be square"),
        ([[0, 0.5], [0, 0]], None, "only 0 and 1"),
        ([[0, 1], [0, 0]], ["a"], "needs 2 names. Got 1"),
        ([[0, 1], [0, 0]], ["a", "a"], "Repeated: 'a'"),
    ],
)
def test_what_is_no_graph_is_refused(adjacency, names, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Dag(adjacency, names)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="'z', which is not a node"):
        Dag.from_edges([("a", "z")], ["a", "b"])
    with pytest.raises(InputError, match="'z' is not a node"):
        Dag([[0]], ["a"]).parents("z")
    with pytest.raises(InputError, match="undirected"):
        Dag.from_networkx(nx.Graph([("a", "b")]))


def test_relations_of_a_diamond() -> None:
    dag = Dag.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], ["d", "c", "b", "a"])
    assert dag.parents("d") == ["c", "b"]
    assert dag.children("a") == ["c", "b"]
    assert dag.ancestors("d") == {"a", "b", "c"}
    assert dag.descendants("a") == {"b", "c", "d"}
    assert dag.topological_order() == ["a", "c", "b", "d"]
    assert dag.adjacency[dag.index("a"), dag.index("b")] == 1
    assert not dag.adjacency.flags.writeable


@given(dags())
@settings(max_examples=100, deadline=None)
def test_every_form_leads_back(dag: Dag) -> None:
    assert Dag.from_edges(dag.edges, dag.names) == dag
    assert Dag.from_networkx(dag.to_networkx()) == dag
    assert Dag.from_frame(dag.to_frame()) == dag
    assert hash(Dag(dag.adjacency, dag.names)) == hash(dag)


@given(dags())
@settings(max_examples=100, deadline=None)
def test_orders_and_ancestors_agree_with_networkx(dag: Dag) -> None:
    graph = dag.to_networkx()
    assert dag.respects(dag.topological_order())
    for name in dag.names:
        assert dag.ancestors(name) == nx.ancestors(graph, name)
        assert dag.descendants(name) == nx.descendants(graph, name)
    if dag.n_edges:
        assert not dag.respects(dag.topological_order()[::-1])


@given(dags(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_relabelling_keeps_the_graph(dag: Dag, random) -> None:
    positions = list(range(dag.n_nodes))
    random.shuffle(positions)
    moved = dag.relabelled(positions)
    assert set(moved.edges) == set(dag.edges)
    assert moved.relabelled(np.argsort(positions).tolist()) == dag
