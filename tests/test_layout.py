"""The layout keeps its promises: nothing overlaps, arrows point down, no edge runs through a box."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import diffan
from diffan.report.crossings import count_crossings, reduce_crossings
from diffan.report.layers import layered
from diffan.report.layout import NODE_HEIGHT, Layout, place


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    n = draw(st.integers(1, 14))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    return draw(st.lists(st.floats(40, 180), min_size=n, max_size=n)), edges


def numbered(n_nodes: int, n_edges: int, graph: str, seed: int) -> list[tuple[int, int]]:
    dag = diffan.simulate.random_dag(n_nodes, n_edges, graph=graph, seed=seed)
    rank = {name: k for k, name in enumerate(dag.topological_order())}
    return sorted((rank[a], rank[b]) for a, b in dag.edges)


def boxes_apart(layout: Layout, widths: list[float]) -> bool:
    return all(
        abs(layout.x[a] - layout.x[b]) >= (widths[a] + widths[b]) / 2 + 5
        or abs(layout.y[a] - layout.y[b]) >= NODE_HEIGHT + 5
        for a, b in combinations(range(len(widths)), 2)
    )


def curve_points(route: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points on the curves as they are drawn: cubic, leaving and arriving upright."""
    points = []
    for (x0, y0), (x1, y1) in pairwise(route):
        middle = (y0 + y1) / 2
        for k in range(21):
            t = k / 20
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
            xs, ys = (x0, x0, x1, x1), (y0, middle, middle, y1)
            points.append(
                (sum(w * x for w, x in zip(weights, xs, strict=True)), sum(w * y for w, y in zip(weights, ys, strict=True)))
            )  # fmt: skip
    return points


def check(widths: list[float], edges: list[tuple[int, int]]) -> None:
    layout = place(widths, edges)
    assert boxes_apart(layout, widths)
    assert min(x - w / 2 for x, w in zip(layout.x, widths, strict=True)) >= -1e-6
    assert max(x + w / 2 for x, w in zip(layout.x, widths, strict=True)) <= layout.width + 1e-6
    assert max(layout.y) + NODE_HEIGHT / 2 <= layout.height + 1e-6
    for (source, target), route in zip(edges, layout.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        assert heights[0] == pytest.approx(layout.y[source] + NODE_HEIGHT / 2)
        assert heights[-1] == pytest.approx(layout.y[target] - NODE_HEIGHT / 2)
        assert abs(route[0][0] - layout.x[source]) <= widths[source] / 2
        assert abs(route[-1][0] - layout.x[target]) <= widths[target] / 2
        for x, y in curve_points(route):
            for node, width in enumerate(widths):
                inside = (
                    abs(x - layout.x[node]) < width / 2 - 1e-6
                    and abs(y - layout.y[node]) < NODE_HEIGHT / 2 - 1e-6
                )
                assert not inside


@given(graphs())
@settings(max_examples=80, deadline=None)
def test_nothing_overlaps_and_arrows_point_down(graph: tuple[list[float], list[tuple[int, int]]]) -> None:
    check(*graph)


@pytest.mark.parametrize(("n", "m", "graph"), [(20, 40, "er"), (50, 80, "er"), (50, 49, "sf")])
def test_larger_graphs_keep_the_same_promises(n: int, m: int, graph: str) -> None:
    check([60.0 + k % 7 * 10 for k in range(n)], numbered(n, m, graph, seed=1))


def test_fewer_crossings_than_the_first_order() -> None:
    before, after = 0, 0
    for seed in range(6):
        found = layered(25, numbered(25, 35, "er", seed))
        before += count_crossings(found)
        reduce_crossings(found)
        after += count_crossings(found)
    assert after < 0.6 * before


def test_a_tree_has_no_crossing() -> None:
    found = layered(15, [((k - 1) // 2, k) for k in range(1, 15)])
    reduce_crossings(found)
    assert count_crossings(found) == 0


def test_a_chain_stands_straight() -> None:
    layout = place([60.0] * 4, [(0, 1), (1, 2), (2, 3)])
    assert max(layout.x) - min(layout.x) < 1e-6


def test_large_graphs_are_no_ribbons() -> None:
    layout = place([60.0] * 300, numbered(300, 330, "er", 2))
    assert 0.5 < layout.width / layout.height < 3.5


def test_nodes_without_edges_and_no_nodes() -> None:
    alone = place([50.0] * 9, [])
    assert boxes_apart(alone, [50.0] * 9)
    assert alone.width < 9 * 50
    assert place([], []).routes == []
