"""Knowledge is never violated: whatever is known, whatever the data say, in every method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import diffan
from diffan.context import Context
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.knowledge import Knowledge
from diffan.methods import METHODS
from diffan.options import apply
from diffan.settings import Variant
from diffan.table import Table

NAMES = ["a", "b", "c", "d", "e"]
TINY: dict[str, dict[str, Any]] = {
    "diffan": {"width": 8, "depth": 1, "max_steps": 6, "greedy_steps": 2, "order_batch_size": 32},
    "gran-dag": {"max_steps": 20, "check_every": 10},
}
VARIANTS = Variant.__args__  # type: ignore[attr-defined]
CASES = [(method, {}) for method in METHODS if method != "diffan"] + [
    ("diffan", {"variant": variant, "refine": False, "edges": "additive"}) for variant in VARIANTS
]
FINISHES = [
    {"refine": "kernel", "edges": "likelihood"},
    {"refine": "additive", "edges": "additive"},
    {"refine": False, "edges": "likelihood"},
]
CASES += [("random", finish) for finish in FINISHES]
LIKELIHOOD = {"null_fits": 10, "leaps": (3,), "kernel_ridges": (0.3,), "kernel_interactions": (0.5,)}


def table(n: int = 60) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(5, 6, graph="er", seed=1)
    frame = diffan.simulate.sample_anm(dag, n, noise="gauss", noise_scale=(0.4, 0.8), seed=1)
    return frame.set_axis(NAMES, axis=1)


DATA = table()


@st.composite
def knowledge(draw: st.DrawFn) -> Knowledge:
    """Statements at random; those that contradict the ones before are left out."""
    pair = st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True).map(tuple)
    kinds = ["required", "forbidden", "roots", "leaves", "required_ancestors", "forbidden_ancestors"]
    record: dict[str, list[Any]] = {}
    if draw(st.booleans()):
        levels = draw(st.lists(st.integers(0, 3), min_size=5, max_size=5))
        record["tiers"] = [
            [name for name, level in zip(NAMES, levels, strict=True) if level == k] for k in range(3)
        ]
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=7)):
        said = draw(st.sampled_from(NAMES)) if kind in ("roots", "leaves") else draw(pair)
        try:
            Knowledge.from_record({**record, kind: [*record.get(kind, []), said]})
        except InputError:
            continue
        record.setdefault(kind, []).append(said)
    return Knowledge.from_record(record)


def violations(result: Discovery, known: Knowledge) -> Iterator[str]:
    """Every statement that the graph or its order breaks, by a reading of the words that shares no code."""
    edges, place = set(result.dag.edges), {name: k for k, name in enumerate(result.order)}
    home = {name: k for k, tier in enumerate(known.tiers) for name in tier}
    yield from (f"{pair} is missing" for pair in known.required if pair not in edges)
    yield from (f"{pair} is forbidden" for pair in known.forbidden if pair in edges)
    yield from (f"{a} causes the root {b}" for a, b in edges if b in known.roots)
    yield from (f"the leaf {a} causes {b}" for a, b in edges if a in known.leaves)
    for a, b in known.required_ancestors:
        if a not in result.dag.ancestors(b):
            yield f"{a} is no ancestor of {b}"
    for a, b in known.forbidden_ancestors:
        if a in result.dag.ancestors(b):
            yield f"{a} is an ancestor of {b}"
    for early in home:
        for late in home:
            if home[early] < home[late] and (
                place[early] > place[late] or late in result.dag.ancestors(early)
            ):
                yield f"{late} precedes or causes {early} against the tiers"
    if not result.dag.respects(result.order):
        yield "an edge runs against the order"


def discover(known: Knowledge, method: str, options: dict[str, Any]) -> Discovery:
    own = TINY.get(method, {}) | (LIKELIHOOD if options.get("edges") == "likelihood" else {})
    return diffan.discover(DATA, method, knowledge=known, device="cpu", cutoff=0.2, **own, **options)


EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)


@pytest.mark.parametrize(("method", "options"), CASES)
class TestKnowledgeHolds:
    @EXAMPLES
    @given(known=knowledge())
    def test_in_the_graph_and_the_order_at_every_cutoff(
        self, method: str, options: dict[str, Any], known: Knowledge
    ) -> None:
        result = discover(known, method, options)
        for cutoff in (None, 1e-12, 1.0):
            at = result if cutoff is None else result.at_cutoff(cutoff)
            assert list(violations(at, known)) == []
        tested = result.evidence.tested
        for cause, effect in known.forbidden:
            assert not tested[NAMES.index(cause), NAMES.index(effect)]
        for cause, effect in known.required:
            assert tested[NAMES.index(cause), NAMES.index(effect)]

    def test_inside_the_order_and_not_only_after_it(self, method: str, options: dict[str, Any]) -> None:
        data = Table.read(DATA)
        found = discover(Knowledge(), method, options)
        known = Knowledge(tiers=[[name] for name in found.order[::-1]])
        rules = known.consequences(data.names)
        own = {name: value for name, value in options.items() if name == "variant"} | TINY.get(method, {})
        (order_settings,) = apply(own, METHODS[method].default_settings("default"), what=method)
        ordering = METHODS[method].find_order(data, order_settings, Context(device="cpu", constraints=rules))
        assert [data.names[i] for i in ordering.order] == found.order[::-1]

    def test_permuting_the_columns_permutes_the_answer(self, method: str, options: dict[str, Any]) -> None:
        known = Knowledge(
            required=["d -> b"], tiers=[["e"], ["a", "b"]], forbidden_ancestors=["a -> c", "c -> b"]
        )
        own = TINY.get(method, {}) | (LIKELIHOOD if options.get("edges") == "likelihood" else {})
        moved = DATA.iloc[:, [3, 0, 4, 2, 1]]
        one, other = (
            diffan.discover(data, method, knowledge=known, device="cpu", cutoff=0.2, **own, **options)
            for data in (DATA, moved)
        )
        assert one.order == other.order
        assert set(one.dag.edges) == set(other.dag.edges)
        assert set(one.at_cutoff(0.9).dag.edges) == set(other.at_cutoff(0.9).dag.edges)


def test_the_law_can_fail() -> None:
    known = Knowledge(required=["a -> b"], forbidden=["c -> d"], roots=["e"])
    free = diffan.discover(DATA, "random", cutoff=0.999, seed=3)
    assert list(violations(free, known))
    assert np.asarray(free.dag.adjacency).any()
