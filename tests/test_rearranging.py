"""Better parents from anywhere: what no move of a single variable finds, and what the order becomes then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffan.constraints import closure
from diffan.context import Context
from diffan.dag import topological_indices
from diffan.keeping import Saved
from diffan.likelihood.moves import State, best_move
from diffan.likelihood.objective import Objective
from diffan.likelihood.rearranging import in_line, rearranged
from diffan.likelihood.refine import refine
from diffan.likelihood.search import in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import finish
from diffan.table import Table

BoolArray = npt.NDArray[np.bool_]
CAUSES, EFFECT, ROWS = 8, 8, 500  # columns 0 to 7, then their effect
PRICE = 4.0


def wave() -> npt.NDArray[np.float64]:
    """A random wave of eight columns, which shows nothing of itself through four of them."""
    generator = torch.Generator().manual_seed(10)
    points = torch.randn(ROWS, CAUSES, generator=generator)
    waves = torch.randn(CAUSES, 30, generator=generator)
    clear = torch.cos(points @ waves + 6.3 * torch.rand(30, generator=generator)).sum(dim=1)
    effect = clear / clear.std() + 0.3 * torch.randn(ROWS, generator=generator)
    values = torch.column_stack([points, effect]).double().numpy()
    return values / values.std(axis=0)


@pytest.fixture
def objective() -> Objective:
    return Objective(
        wave(),
        settings=LikelihoodSettings(),
        device=torch.device("cpu"),
        rng=np.random.default_rng(0),
    )


def effect_in_the_middle(objective: Objective) -> State:
    """Four causes before the effect and four behind it; nothing is known."""
    d = CAUSES + 1
    nothing = np.zeros((d, d), dtype=np.bool_)
    order, nobody = [0, 1, 2, 3, EFFECT, 4, 5, 6, 7], [frozenset[int]()] * d
    return State(objective, order, list(nobody), PRICE, ~np.eye(d, dtype=np.bool_), nothing, list(nobody))


def test_parents_from_anywhere_are_found_where_no_move_pays(objective: Objective) -> None:
    state = effect_in_the_middle(objective)
    moves = finish(in_step([best_move(state, node) for node in state.order], objective))
    assert all(move is None or move.gain < PRICE for move in moves)
    before = state.total()
    (found,) = finish(rearranged(state, PRICE))
    assert state.parents[EFFECT] == frozenset(range(CAUSES))
    assert state.order == [*range(CAUSES), EFFECT]  # and the others stay as they were
    assert (found.node, found.old, found.new) == (EFFECT, 4, CAUSES)
    assert found.gain == pytest.approx(before - state.total())
    assert finish(rearranged(state, PRICE)) == []  # there is nothing more to gain


def test_what_has_to_come_first_does(objective: Objective) -> None:
    state = effect_in_the_middle(objective)
    state.must_precede[EFFECT, 4] = True
    finish(rearranged(state, PRICE))
    assert 4 not in state.parents[EFFECT]
    assert state.order.index(EFFECT) < state.order.index(4)


def test_what_does_not_pay_leaves_everything_as_it_was(objective: Objective) -> None:
    state = effect_in_the_middle(objective)
    order, parents, kernels = list(state.order), list(state.parents), list(objective.kernels)
    assert finish(rearranged(state, 1e9)) == []
    assert (state.order, state.parents, objective.kernels) == (order, parents, kernels)


@dataclass
class Rules:
    """What is known, at random but without contradiction, and an order that obeys it."""

    order: list[int]
    allowed: BoolArray
    must_precede: BoolArray
    required: list[frozenset[int]]


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    d = CAUSES + 1
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    order = rng.permutation(d)
    later = np.zeros((d, d), dtype=np.bool_)
    later[np.ix_(order, order)] = np.triu(np.ones((d, d), dtype=np.bool_), 1)
    wanted = later & (rng.random((d, d)) < draw(st.sampled_from([0.0, 0.1])))
    must_precede = closure(wanted | (later & (rng.random((d, d)) < draw(st.sampled_from([0.0, 0.1])))))
    allowed = (rng.random((d, d)) < draw(st.sampled_from([0.5, 0.9, 1.0]))) | wanted
    allowed &= ~must_precede.T & ~np.eye(d, dtype=np.bool_)
    required = [frozenset(np.flatnonzero(wanted[:, j]).tolist()) for j in range(d)]
    return Rules(order.tolist(), allowed, must_precede, required)


@settings(max_examples=8, deadline=None)
@given(rules())
def test_what_is_known_holds_in_whatever_is_rearranged(known: Rules) -> None:
    objective = Objective(
        wave(), settings=LikelihoodSettings(), device=torch.device("cpu"), rng=np.random.default_rng(0)
    )
    state = State(
        objective,
        list(known.order),
        list(known.required),
        PRICE,
        known.allowed,
        known.must_precede,
        known.required,
    )
    finish(state.reselect(list(state.order), leap=True))
    before = state.total()
    found = finish(rearranged(state, PRICE))
    assert state.total() == pytest.approx(before - sum(move.gain for move in found))
    assert all(move.gain > PRICE for move in found)
    place = {node: k for k, node in enumerate(state.order)}
    assert sorted(place) == sorted(known.order)
    assert all(place[i] < place[j] for i, j in np.argwhere(known.must_precede).tolist())
    for node, parents in enumerate(state.parents):
        assert known.required[node] <= parents
        assert all(known.allowed[i, node] and place[i] < place[node] for i in parents)


class Shelf:
    """A place in memory that keeps every save, and gives out the one it is told to."""

    keeps = True

    def __init__(self, saved: Saved | None = None) -> None:
        self.saved, self.all = saved, list[Saved]()

    def load(self) -> Saved | None:
        return self.saved

    def due(self) -> bool:
        return True

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.all.append(Saved(dict(record), {name: values.copy() for name, values in arrays.items()}))


def test_cut_off_after_a_rearrangement_it_ends_the_same() -> None:
    table, context = Table.read(wave()), Context(seed=0, device="cpu")
    start = [0, 1, 2, 3, EFFECT, 4, 5, 6, 7]
    shelf = Shelf()
    whole = refine(start, table, settings=LikelihoodSettings(), context=context, place=shelf)
    assert whole.moves == [(EFFECT, 4, CAUSES)]
    assert len(shelf.all) >= 2  # before the rearrangement and after it
    for saved in shelf.all:
        again = refine(start, table, settings=LikelihoodSettings(), context=context, place=Shelf(saved))
        assert (again.order, again.moves, again.trace) == (whole.order, whole.moves, whole.trace)
        assert again.parents == whole.parents
        assert again.state is not None
        assert whole.state is not None
        assert again.state.objective.n_fits == whole.state.objective.n_fits


@st.composite
def orders_and_graphs(draw: st.DrawFn) -> tuple[list[int], BoolArray]:
    d = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graph = np.triu(rng.random((d, d)) < 0.3, 1)
    shuffled = rng.permutation(d)
    return rng.permutation(d).tolist(), graph[np.ix_(shuffled, shuffled)]


@given(orders_and_graphs())
def test_an_order_in_line_follows_the_arrows_and_stays_where_it_did(
    case: tuple[list[int], BoolArray],
) -> None:
    order, arrows = case
    found = in_line(order, arrows)
    place = {node: k for k, node in enumerate(found)}
    assert sorted(found) == sorted(order)
    assert all(place[i] < place[j] for i, j in np.argwhere(arrows).tolist())
    assert in_line(found, arrows) == found
    follows = list(topological_indices(arrows.astype(np.int8)))
    assert in_line(follows, arrows) == follows
