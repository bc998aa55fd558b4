"""Metrics against brute force, a naive d-separation SID, published examples and laws."""

from __future__ import annotations

import itertools
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffan import metrics
from diffan.dag import Dag
from diffan.errors import FitError, InputError
from diffan.simulate import random_dag


@st.composite
def dags(draw, n_nodes: int | None = None) -> Dag:
    size = draw(st.integers(1, 7)) if n_nodes is None else n_nodes
    n_edges = draw(st.integers(0, size * (size - 1) // 2))
    return random_dag(size, n_edges, "er", draw(st.integers(0, 10**6)))


@st.composite
def pairs_of_dags(draw) -> tuple[Dag, Dag]:
    size = draw(st.integers(1, 7))
    return draw(dags(size)), draw(dags(size))


# ---- oracles ------------------------------------------------------------------------------


def naive_shd(truth: Dag, estimate: Dag) -> int:
    """Pairs of nodes whose relation (none, forward, backward) differs."""
    a, b = truth.adjacency, estimate.adjacency
    pairs = itertools.combinations(range(truth.n_nodes), 2)
    return sum((a[i, j], a[j, i]) != (b[i, j], b[j, i]) for i, j in pairs)


def naive_order_divergence(truth: Dag, order: list[str]) -> int:
    return sum(order.index(cause) > order.index(effect) for cause, effect in truth.edges)


def naive_sid(truth: Dag, estimate: Dag) -> int:
    """Peters and Buhlmann's definition, by the adjustment criterion and d-separation on the true graph."""
    graph = truth.to_networkx()
    return sum(
        not _effect_is_right(graph, i, j, set(estimate.parents(i)))
        for i in truth.names
        for j in truth.names
        if i != j
    )


def _effect_is_right(graph: nx.DiGraph, cause: str, effect: str, adjusted: set[str]) -> bool:
    if effect in adjusted:  # the estimate says there is no effect
        return effect not in nx.descendants(graph, cause)
    below = nx.descendants(graph, cause)
    on_path = {node for node in below if node == effect or effect in nx.descendants(graph, node)}
    if any(({node} | nx.descendants(graph, node)) & adjusted for node in on_path):
        return False
    proper_back_door = graph.copy()
    proper_back_door.remove_edges_from([(cause, child) for child in on_path if graph.has_edge(cause, child)])
    return bool(nx.is_d_separator(proper_back_door, {cause}, {effect}, adjusted))


@settings(deadline=None)
@given(pairs_of_dags())
def test_shd_agrees_with_brute_force(pair):
    assert metrics.shd(*pair) == naive_shd(*pair)


@settings(deadline=None, max_examples=60)
@given(pairs_of_dags())
def test_sid_agrees_with_a_naive_one(pair):
    assert metrics.sid(*pair) == naive_sid(*pair)


@given(dags(), st.randoms(use_true_random=False))
def test_order_divergence_agrees_with_brute_force(dag, random):
    order = list(dag.names)
    random.shuffle(order)
    assert metrics.order_divergence(dag, order) == naive_order_divergence(dag, order)


def test_peters_and_buhlmann_example():
    """Their figure 1: one extra edge costs nothing under intervention, one reversed edge costs 8."""
    names = ["X1", "X2", "Y1", "Y2", "Y3"]
    common = [(x, y) for x in ("X1", "X2") for y in ("Y1", "Y2", "Y3")]
    truth = Dag.from_edges([("X1", "X2"), *common], names)
    extra = Dag.from_edges([("X1", "X2"), *common, ("Y1", "Y2")], names)
    turned = Dag.from_edges([("X2", "X1"), *common], names)
    assert (metrics.shd(truth, extra), metrics.sid(truth, extra)) == (1, 0)
    assert (metrics.shd(truth, turned), metrics.sid(truth, turned)) == (1, 8)


def test_hand_counted_errors_and_scores():
    truth = Dag.from_edges([("a", "b"), ("b", "c"), ("c", "d")], "abcd")
    estimate = Dag.from_edges([("a", "b"), ("c", "b"), ("a", "d")], "abcd")
    assert metrics.edge_errors(truth, estimate) == (1, 1, 1)  # c-d missing, a-d extra, b-c reversed
    assert metrics.shd(truth, estimate) == 3
    assert metrics.edge_scores(truth, estimate) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert metrics.skeleton_scores(truth, estimate) == pytest.approx((2 / 3, 2 / 3, 2 / 3))


@settings(deadline=None)
@given(pairs_of_dags())
def test_scores_agree_with_sets(pair):
    truth, estimate = (set(dag.edges) for dag in pair)
    scores = metrics.edge_scores(*pair)
    if truth and estimate:
        assert scores.precision == len(truth & estimate) / len(estimate)
        assert scores.recall == len(truth & estimate) / len(truth)
    total = scores.precision + scores.recall
    assert scores.f1 == pytest.approx(2 * scores.precision * scores.recall / total if total else 0.0)
    skeletons = [{frozenset(edge) for edge in dag.edges} for dag in pair]
    if all(skeletons):
        skeleton = metrics.skeleton_scores(*pair)
        assert skeleton.recall == len(skeletons[0] & skeletons[1]) / len(skeletons[0])


def test_empty_graphs_have_defined_scores():
    empty, edge = Dag(np.zeros((2, 2))), Dag([[0, 1], [0, 0]])
    assert metrics.edge_scores(empty, empty) == (1.0, 1.0, 1.0)
    assert metrics.edge_scores(edge, empty) == (1.0, 0.0, 0.0)
    assert metrics.edge_scores(empty, edge) == (0.0, 1.0, 0.0)


def test_one_node_is_safe():
    single = Dag([[0]])
    assert metrics.evaluate(single, single, order=[0])["sid"] == 0
    assert metrics.shd(single, single) == 0


# ---- laws ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs_of_dags())
def test_shd_is_symmetric_and_zero_only_for_equals(pair):
    truth, estimate = pair
    assert metrics.shd(truth, estimate) == metrics.shd(estimate, truth)
    assert (metrics.shd(truth, estimate) == 0) == (truth == estimate)
    assert metrics.shd(truth, estimate) == sum(metrics.edge_errors(truth, estimate))


@settings(deadline=None)
@given(dags())
def test_the_truth_is_at_distance_zero(dag):
    report = metrics.evaluate(dag, dag, order=dag.topological_order())
    wrong = ("shd", "sid", "order_divergence", "missing", "extra", "reversed")
    assert [report[name] for name in wrong] == [0] * 6
    assert report["f1"] == report["skeleton_f1"] == 1.0


@given(dags(), st.randoms(use_true_random=False))
def test_an_order_and_its_reverse_share_the_edges(dag, random):
    order = list(range(dag.n_nodes))
    random.shuffle(order)
    there, back = metrics.order_divergence(dag, order), metrics.order_divergence(dag, order[::-1])
    assert there + back == dag.n_edges


@settings(deadline=None)
@given(pairs_of_dags())
def test_order_divergence_bounds_shd_from_below(pair):
    truth, estimate = pair
    assert metrics.order_divergence(truth, estimate.topological_order()) <= metrics.shd(truth, estimate)


@settings(deadline=None)
@given(pairs_of_dags(), st.randoms(use_true_random=False))
def test_relabelling_changes_nothing(pair, random):
    truth, estimate = pair
    positions = list(range(truth.n_nodes))
    random.shuffle(positions)
    order = estimate.topological_order()
    expected = metrics.evaluate(truth, estimate, order)
    assert metrics.evaluate(truth.relabelled(positions), estimate.relabelled(positions), order) == expected
    assert metrics.evaluate(truth, estimate.relabelled(positions), order) == expected  # matched by name


@settings(deadline=None, max_examples=30)
@given(pairs_of_dags())
def test_every_form_of_graph_gives_the_same(pair):
    truth, estimate = pair
    expected = metrics.evaluate(truth, estimate)
    forms = (
        Dag.to_frame,
        Dag.to_networkx,
        lambda dag: np.array(dag.adjacency),
        lambda dag: dag.adjacency.tolist(),
    )
    for form in forms:
        assert metrics.evaluate(form(truth), form(estimate)) == expected
        assert metrics.evaluate(truth, form(estimate)) == expected


# ---- forms, order and refusals ------------------------------------------------------------


def test_named_graphs_are_matched_by_name_and_arrays_by_position():
    truth = Dag([[0, 1], [0, 0]], ["a", "b"])
    swapped = Dag([[0, 0], [1, 0]], ["b", "a"])  # the same edge a -> b
    assert metrics.shd(truth, swapped) == 0
    assert metrics.shd(truth, swapped.to_frame()) == 0
    assert metrics.edge_errors(truth, np.array(swapped.adjacency)).reversed == 1


def test_order_takes_names_and_indices():
    truth = Dag.from_edges([("a", "b"), ("a", "c")], "abc")
    assert metrics.order_divergence(truth, ["b", "a", "c"]) == 1
    assert metrics.order_divergence(truth, np.array([1, 0, 2])) == 1
    assert metrics.order_divergence(truth, np.array(["b", "c", "a"])) == 2


def test_evaluate_reports_every_number():
    truth, estimate = random_dag(6, 8, seed=1), random_dag(6, 8, seed=2)
    report = metrics.evaluate(truth, estimate, estimate.topological_order())
    assert report["shd"] == metrics.shd(truth, estimate)
    assert report["sid"] == metrics.sid(truth, estimate)
    assert (report["true_edges"], report["estimated_edges"]) == (8, 8)
    assert "order_divergence" not in metrics.evaluate(truth, estimate)
    assert "sid" not in metrics.evaluate(truth, estimate, include_sid=False)


@pytest.mark.parametrize(
    ("estimate", "sentence"),
    [
        (
            Dag(np.zeros((2, 2)), ["a", "z"]),
            "Both graphs must name the same nodes. In one of them only: 'b', 'z'.",
        ),
        (np.zeros((3, 3)), "Both graphs must have the same nodes. The truth has 2, the estimate 3."),
        (np.array([[0, 1], [1, 0]]), "A DAG must have no cycle"),
        (np.array([[0, 0.3], [0, 0]]), "must hold only 0 and 1"),
        (nx.Graph([("a", "b")]), "needs a directed graph"),
    ],
)
def test_graphs_that_cannot_be_compared(estimate, sentence):
    with pytest.raises(InputError, match=sentence):
        metrics.shd(Dag([[0, 1], [0, 0]], ["a", "b"]), estimate)


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (["a"], "An order must hold each of the 2 nodes exactly once"),
        (["a", "a"], "Got 2 entries, 1 of them distinct"),
        ([1, 2], "An order must hold each of the 2 nodes exactly once"),
        (["a", "q"], "'q' is not a node of this graph"),
    ],
)
def test_orders_that_are_none(order, sentence):
    with pytest.raises(InputError, match=sentence):
        metrics.order_divergence(Dag([[0, 1], [0, 0]], ["a", "b"]), order)


def test_sid_without_gadjid_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(FitError, match="pip install gadjid"):
        metrics.sid(np.zeros((2, 2)), np.zeros((2, 2)))
