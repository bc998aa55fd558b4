"""The local variant: the screen, the small denoisers, the peeling that recomputes only what was felt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import diffan
from diffan.additive.gram import SplineGram
from diffan.algorithm import topological_order
from diffan.errors import InputError
from diffan.local_settings import LocalSettings
from diffan.ordering.diffan_order import automatic_variant
from diffan.ordering.local import LocalCriteria, local_finder
from diffan.progress import Silent
from diffan.score.local_batches import SCHEDULE
from diffan.score.local_network import Group, make_groups, score_derivative
from diffan.score.local_training import train_local
from diffan.score.screening import screen
from diffan.settings import OrderSettings

CPU = torch.device("cpu")


def chain(d: int, n: int, seed: int = 0) -> np.ndarray:
    """x0 -> x1 -> ... with a bent mechanism, standardised."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n)]
    for _ in range(d - 1):
        columns.append(np.sin(2 * columns[-1]) + 0.4 * rng.normal(size=n))
    values = np.column_stack(columns)
    return (values - values.mean(0)) / values.std(0)


def screened(values: np.ndarray, **changes: object) -> np.ndarray:
    return screen(SplineGram.from_values(values), LocalSettings(**changes), CPU).neighbours  # type: ignore[arg-type]


def test_the_screen_keeps_every_link_of_a_chain_and_little_else() -> None:
    found = screened(chain(12, 2000))
    links = {(k, k + 1) for k in range(11)}
    kept = {(int(i), int(j)) for i, j in np.argwhere(np.triu(found))}
    assert links <= kept
    assert len(kept) < 3 * len(links)
    assert (found == found.T).all()
    assert not found.diagonal().any()


def test_a_hub_keeps_all_its_children_though_each_node_names_few() -> None:
    rng = np.random.default_rng(1)
    hub = rng.normal(size=(3000, 1))
    children = np.cos(hub + rng.normal(size=30)) + 0.3 * rng.normal(size=(3000, 30))
    found = screened(np.hstack([hub, children]), screen_top=3)
    assert found[0, 1:].all()


def test_the_screen_bears_fewer_rows_than_functions_and_equal_columns() -> None:
    values = chain(30, 60, seed=2)
    found = screen(SplineGram.from_values(values), LocalSettings(), CPU)
    assert found.ridge > 0
    assert np.isfinite(found.strength).all()
    twice = np.column_stack([values[:, :3], values[:, 0]])
    assert np.isfinite(screen(SplineGram.from_values(twice), LocalSettings(), CPU).strength).all()


def some_groups(neighbours: np.ndarray, seed: int = 0) -> list[Group]:
    rng = np.random.default_rng(seed)
    groups = make_groups(neighbours, width=8, depth=2, rng=rng, devices=[CPU])
    for group in groups:  # away from the quiet start, so that there is something to see
        group.weights[-1].mul_(10.0)
    return groups


def test_own_derivative_is_autograds() -> None:
    values = chain(6, 40)
    neighbours = screened(chain(6, 2000))
    (group,) = some_groups(neighbours)
    sigma = torch.full((40,), 0.3)

    def score_of_own(columns: torch.Tensor) -> torch.Tensor:
        inputs = group.inputs(columns, sigma, group.there[:, :, None], SCHEDULE)
        output = group.forward(inputs)
        own = columns[group.columns]
        return -own / (1 + sigma**2) + output / (sigma * (1 + sigma**2).sqrt())

    columns = torch.tensor(values.T, dtype=torch.float32, requires_grad=True)
    expected = []
    for place, node in enumerate(group.nodes):
        (gradient,) = torch.autograd.grad(score_of_own(columns)[place].sum(), columns)
        expected.append(gradient[node])
    inputs = group.inputs(columns.detach(), sigma, group.there[:, :, None], SCHEDULE)
    found = score_derivative(group.own_derivative(inputs), sigma)
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_an_absent_candidate_cannot_be_seen() -> None:
    values = torch.tensor(chain(6, 30).T, dtype=torch.float32)
    (group,) = some_groups(screened(chain(6, 2000)))
    present = group.there.clone()[:, :, None]
    gone = int(group.candidates[0, 0])
    present[(group.candidates == gone) & (group.there > 0)] = 0.0
    sigma = torch.full((30,), 0.3)
    before = group.forward(group.inputs(values, sigma, present, SCHEDULE))
    changed = values.clone()
    changed[gone] += 5.0
    after = group.forward(group.inputs(changed, sigma, present, SCHEDULE))
    others = torch.tensor([node != gone for node in group.nodes])
    torch.testing.assert_close(before[others], after[others])


def test_peeling_with_updates_is_peeling_from_scratch() -> None:
    values = chain(14, 200, seed=3)
    neighbours = screened(chain(14, 2000, seed=3))
    groups = some_groups(neighbours, seed=4)
    settings = OrderSettings()
    quick, _ = topological_order(local_finder(LocalCriteria(groups, values, settings)), 14)

    def from_scratch(remaining: object, removed: object) -> object:
        return local_finder(LocalCriteria(groups, values, settings))(remaining, removed)  # type: ignore[arg-type]

    slow, _ = topological_order(from_scratch, 14)  # type: ignore[arg-type]
    assert quick == slow


def test_groups_by_number_of_candidates_leave_no_one_out() -> None:
    rng = np.random.default_rng(5)
    neighbours = np.triu(rng.random((60, 60)) < 0.05, 1)
    neighbours[0, 1:] = True
    neighbours = neighbours | neighbours.T
    groups = make_groups(neighbours, width=4, depth=1, rng=rng, devices=[CPU, CPU])
    assert sorted(np.concatenate([g.nodes for g in groups]).tolist()) == list(range(60))
    assert len({g.candidates.shape[1] for g in groups}) > 1
    for group in groups:
        for place, node in enumerate(group.nodes):
            own = group.candidates[place][group.there[place] > 0].tolist()
            assert own == np.flatnonzero(neighbours[node]).tolist()


def test_training_learns_what_independence_cannot_know(tmp_path: Path) -> None:
    values = chain(5, 600).astype(np.float32)
    neighbours = screened(values.astype(np.float64))
    settings = LocalSettings(local_steps=200, local_width=32)

    def trained(rows: np.ndarray) -> tuple[list[Group], dict[str, list[float]]]:
        return train_local(rows, neighbours, settings, np.random.default_rng(0), [CPU], Silent())

    groups, losses = trained(values)
    assert min(losses["validation"]) < 0.95 * losses["validation"][0]
    np.save(tmp_path / "rows.npy", values)
    mapped, _ = trained(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    for group, other in zip(groups, mapped, strict=True):
        for one, two in zip(group.parameters, other.parameters, strict=True):
            assert torch.isfinite(one).all()
            assert torch.equal(one, two)


def test_products_in_bfloat16_learn_the_same() -> None:
    values = chain(5, 600)
    neighbours = screened(values)

    def best(**changes: bool) -> float:
        settings = LocalSettings(local_steps=150, local_width=32, **changes)
        _, losses = train_local(values, neighbours, settings, np.random.default_rng(0), [CPU], Silent())
        return min(losses["validation"])

    assert best(local_bf16=True) == pytest.approx(best(), rel=0.02)


def test_a_rate_far_too_high_ends_in_a_sentence() -> None:
    settings = LocalSettings(local_rate=1e30, local_steps=50, local_decay=0.0)
    with pytest.raises(diffan.FitError, match="local_rate"):
        train_local(
            chain(4, 100), np.ones((4, 4), bool) ^ np.eye(4, dtype=bool), settings,
            np.random.default_rng(0), [CPU], Silent(),
        )  # fmt: skip


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="screen_top"):
        LocalSettings(screen_top=0)
    with pytest.raises(InputError, match="local_absent"):
        LocalSettings(local_absent=1.5)


def test_auto_takes_the_dense_network_for_few_variables() -> None:
    assert automatic_variant(20) == "masking"
    assert automatic_variant(500) == "local"


QUICK = {"variant": "local", "local_steps": 60, "local_width": 16, "refine": False, "edges": "additive"}


def test_columns_permuted_and_rescaled_give_the_same_graph() -> None:
    import pandas as pd

    frame = pd.DataFrame(chain(6, 300), columns=list("abcdef"))
    turned = frame[list("dfacbe")] * [1.0, 2.0, 4.0, 0.5, 8.0, 1.0]
    first = diffan.discover(frame, device="cpu", **QUICK)
    second = diffan.discover(turned, device="cpu", **QUICK)
    assert first.order == second.order
    assert set(first.graph.edges) == set(second.graph.edges)


def test_the_result_tells_what_was_screened_and_how_long_it_took(tmp_path: Path) -> None:
    found = diffan.discover(chain(6, 300), device="cpu", **QUICK)
    assert {"screen", "train", "order", "edges"} <= set(found.timings)
    assert found.losses["validation"]
    assert 5 <= found.screened["pairs"] <= 10
    found.save(tmp_path / "run")
    assert diffan.load(tmp_path / "run").screened == found.screened
    assert found.evidence.tested.sum() == found.screened["pairs"]


def test_a_wide_table_is_finished_among_neighbours() -> None:
    """A chain of 110 columns: every step is on the wide path, and most links must come out."""
    options = {"local_steps": 60, "local_width": 16}
    found = diffan.discover(chain(110, 1500, seed=6), device="cpu", **options)
    assert found.settings["refine"] == "kernel"
    assert found.settings["edges"] == "additive"
    place = {name: k for k, name in enumerate(found.names)}
    links = {(place[a], place[b]) for a, b in found.graph.edges}
    right = sum((k, k + 1) in links for k in range(109))
    reversed_ = sum((k + 1, k) in links for k in range(109))
    assert right >= 85
    assert right + reversed_ >= 105
    assert len(links) <= right + reversed_ + 5


def test_edges_of_a_narrow_table_are_not_left_to_the_screen() -> None:
    """A screen goes by main effects; where all pairs can be looked at, the likelihood looks at all."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 4))
    values[:, 3] = values[:, 0] * values[:, 1] + 0.3 * rng.normal(size=120)  # no main effect at all
    result = diffan.discover(values, device="cpu", **(QUICK | {"refine": "auto", "edges": "auto"}))
    assert int(result.evidence.tested.sum()) == 4 * 3 // 2
