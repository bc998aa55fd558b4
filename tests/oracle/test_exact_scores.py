"""The mathematics of leaf removal, on models whose score is known exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from diffan.algorithm import topological_order
from diffan.ordering.curvature import AutogradField
from diffan.ordering.deciduous import deciduous_finder, fill, schur_diagonal, without_leaf
from diffan.ordering.greedy import greedy_finder
from diffan.ordering.masking import masking_finder
from diffan.ordering.points import OrderingPoints
from diffan.settings import OrderSettings

DOF = 5.0
LOG_DENSITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "gauss": lambda r: -0.5 * r.square(),
    "logistic": lambda r: -r - 2 * torch.nn.functional.softplus(-r),
    "student": lambda r: -0.5 * (DOF + 1) * torch.log1p(r.square() / DOF),
    "gumbel": lambda r: -(r + torch.exp(-r)),
}
QUANTILES = {
    "gauss": scipy.stats.norm.ppf,
    "logistic": scipy.stats.logistic.ppf,
    "student": lambda u: scipy.stats.t.ppf(u, DOF),
    "gumbel": scipy.stats.gumbel_r.ppf,
}
GRAPHS: dict[str, dict[int, list[int]]] = {  # node -> parents, nodes numbered causes first
    "chain3": {0: [], 1: [0], 2: [1]},
    "fork": {0: [], 1: [0], 2: [0]},
    "collider": {0: [], 1: [], 2: [0, 1]},
    "chain4": {0: [], 1: [0], 2: [1], 3: [2]},
    "five": {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 3]},
}


@dataclass(frozen=True)
class ExactAnm:
    """x_i = fading^i (1.5 sin(weighted sum of parents + i) + half the sum) + noise_i, in double precision."""

    parents: dict[int, list[int]]
    noise: str
    fading: float = 1.0

    @property
    def n_nodes(self) -> int:
        return len(self.parents)

    def mean(self, node: int, point: Tensor) -> Tensor:
        total = torch.zeros_like(point[..., 0])
        for parent in self.parents[node]:
            total = total + (1.0 + 0.3 * parent) * point[..., parent]
        bent = 1.5 * torch.sin(total + node) + 0.5 * total
        return self.fading**node * bent if self.parents[node] else total

    def score(self, nodes: list[int] | None = None) -> Callable[[Tensor], Tensor]:
        """The exact score of the marginal over `nodes` (a set closed under parents); 0 at the other entries."""
        kept = list(self.parents) if nodes is None else nodes
        log_noise = LOG_DENSITIES[self.noise]

        def log_density(point: Tensor) -> Tensor:
            return torch.stack([log_noise(point[i] - self.mean(i, point)) for i in kept]).sum()

        return torch.func.grad(log_density)

    def sample(self, count: int, seed: int = 0) -> Tensor:
        uniform = np.random.default_rng(seed).uniform(1e-4, 1 - 1e-4, (count, self.n_nodes))
        noise = torch.from_numpy(QUANTILES[self.noise](uniform))
        rows = torch.zeros(count, self.n_nodes, dtype=torch.float64)
        for node in self.parents:
            rows[:, node] = self.mean(node, rows) + noise[:, node]
        return rows

    def is_order(self, order: list[int]) -> bool:
        place = {node: k for k, node in enumerate(order)}
        return all(
            place[parent] < place[node] for node, parents in self.parents.items() for parent in parents
        )


NOISES = ("gauss", "logistic", "student", "gumbel")
EXACT = OrderSettings(
    noise_levels=(0.1,), order_batch_size=200, fill_iterations=60, fill_tolerance=1e-12, fill_floor=0.0
)
every_case = pytest.mark.parametrize("noise", NOISES)
every_graph = pytest.mark.parametrize("graph", GRAPHS)


def marginal_jacobian(model: ExactAnm, kept: list[int], rows: Tensor) -> Tensor:
    return AutogradField(model.score(kept)).jacobian(rows, 0.0)


def scores_at(point_score, rows: Tensor) -> Tensor:
    return AutogradField(point_score).score(rows, 0.0)


@every_case
@every_graph
def test_the_residue_with_a_minus_gives_the_marginal_score(graph: str, noise: str) -> None:
    model = ExactAnm(GRAPHS[graph], noise)
    leaf, kept = model.n_nodes - 1, list(range(model.n_nodes - 1))
    rows = model.sample(50)
    truth = scores_at(model.score(kept), rows)[:, kept]
    whole = scores_at(model.score(), rows)[:, kept]
    minus = scores_at(without_leaf(model.score(), leaf), rows)[:, kept]
    plus = whole + (whole - minus)
    # H_ll can come close to 0 away from Gaussian noise, where the quotient loses digits.
    curvature = AutogradField(model.score()).jacobian(rows, 0.0)[:, leaf, leaf].abs()
    sound = curvature > 1e-3
    assert sound.sum() > 30
    assert (minus - truth)[sound].abs().max() < 1e-8
    assert (plus - truth).abs().mean() == pytest.approx(2 * float((whole - truth).abs().mean()), rel=1e-3)
    assert (plus - truth).abs().mean() > 0.1


@every_case
def test_two_leaves_need_the_recursion_not_a_sum_over_the_first_score(noise: str) -> None:
    model = ExactAnm(GRAPHS["chain4"], noise)
    rows = model.sample(50)
    kept = [0, 1]
    truth = scores_at(model.score(kept), rows)[:, kept]
    whole = model.score()
    recursion = scores_at(without_leaf(without_leaf(whole, 3), 2), rows)[:, kept]
    summed = sum(scores_at(whole, rows) - scores_at(without_leaf(whole, leaf), rows) for leaf in (3, 2))
    wrong = (scores_at(whole, rows) - summed)[:, kept]
    sound = (AutogradField(whole).diagonal(rows, 0.0, [3]).abs().squeeze(1) > 1e-3) & (
        AutogradField(model.score([0, 1, 2])).diagonal(rows, 0.0, [2]).abs().squeeze(1) > 1e-3
    )
    assert sound.sum() > 30
    assert (recursion - truth)[sound].abs().max() < 1e-7
    assert (wrong - truth)[sound].abs().mean() > 0.1


@every_case
@pytest.mark.parametrize("count", [1, 2, 3])
def test_fill_and_schur_gives_the_marginal_hessian(noise: str, count: int) -> None:
    model = ExactAnm(GRAPHS["five"], noise)
    field = AutogradField(model.score())
    kept, removed = list(range(5 - count)), list(range(4, 4 - count, -1))
    rows = model.sample(40, seed=count)
    filled = rows
    for so_far in range(1, count + 1):
        filled = fill(field, filled, 0.1, removed[:so_far], EXACT)
    assert torch.equal(filled[:, kept], rows[:, kept])
    assert field.score(filled, 0.1)[:, removed].abs().max() < 1e-10
    truth = marginal_jacobian(model, kept, rows).diagonal(dim1=1, dim2=2)[:, kept]
    found = schur_diagonal(field.jacobian(filled, 0.1), kept, removed)
    unfilled = schur_diagonal(field.jacobian(rows, 0.1), kept, removed)
    assert (found - truth).abs().max() < 1e-8
    assert (unfilled - truth).abs().max() > 0.1


@pytest.mark.parametrize(
    ("graph", "residue", "resample"),
    [(graph, "fill", resample) for graph in GRAPHS for resample in (False, True)]
    + [(graph, "recursion", False) for graph in GRAPHS if graph != "five"],
)
def test_deciduous_orders_exactly(graph: str, residue: str, resample: bool) -> None:
    model = ExactAnm(GRAPHS[graph], "gauss")
    settings = OrderSettings(
        noise_levels=(0.1,),
        order_batch_size=60,
        residue=residue,
        resample=resample,
        fill_iterations=60,
        fill_tolerance=1e-12,
        fill_floor=0.0,
    )
    points = points_of(model, settings)
    order, evidence = topological_order(deciduous_finder(AutogradField(model.score()), points), model.n_nodes)
    assert model.is_order(order)
    assert evidence.shape == (model.n_nodes - 1, model.n_nodes)
    least = torch.from_numpy(evidence).nan_to_num(torch.inf).min(dim=1).values
    assert least.max() < 1e-12


@every_graph
def test_greedy_orders_exactly(graph: str) -> None:
    model = ExactAnm(GRAPHS[graph], "gauss")
    points = points_of(model, EXACT)

    def refit(columns):
        kept = list(columns)
        score = model.score(kept)
        pad = torch.zeros(model.n_nodes, dtype=torch.float64)
        return AutogradField(lambda point: score(pad.index_copy(0, torch.tensor(kept), point))[kept])

    order, _ = topological_order(greedy_finder(refit, points), model.n_nodes)
    assert model.is_order(order)


@pytest.mark.parametrize("graph", ["fork", "collider"])
def test_masking_orders_where_no_removed_leaf_hides_a_mechanism(graph: str) -> None:
    model = ExactAnm(GRAPHS[graph], "gauss")
    order, _ = topological_order(
        masking_finder(AutogradField(model.score()), points_of(model, EXACT)), model.n_nodes
    )
    assert model.is_order(order)


@pytest.mark.parametrize("graph", ["chain3", "chain4", "five"])
def test_masking_orders_when_the_masked_mechanisms_are_gentle(graph: str) -> None:
    """A leaf at 0 leaves its residual at -f: masking is right as long as f is small against the causes' curvature."""
    model = ExactAnm(GRAPHS[graph], "gauss", fading=0.35)
    order, _ = topological_order(
        masking_finder(AutogradField(model.score()), points_of(model, EXACT)), model.n_nodes
    )
    assert model.is_order(order)


def test_masking_is_an_approximation_that_deciduous_mends() -> None:
    model = ExactAnm(GRAPHS["chain3"], "gauss")
    field, points = AutogradField(model.score()), points_of(model, EXACT)
    masked, _ = topological_order(masking_finder(field, points), 3)
    mended, _ = topological_order(deciduous_finder(field, points), 3)
    assert not model.is_order(masked)
    assert model.is_order(mended)


def test_the_plus_sign_picks_the_root_of_a_chain() -> None:
    model = ExactAnm(GRAPHS["chain3"], "gauss")
    whole = model.score()
    minus = without_leaf(whole, 2)
    rows = model.sample(100)
    truth = AutogradField(minus).diagonal(rows, 0.0, [0, 1]).var(dim=0)
    wrong = AutogradField(lambda x: 2 * whole(x) - minus(x)).diagonal(rows, 0.0, [0, 1]).var(dim=0)
    assert truth.argmin() == 1
    assert wrong.argmin() == 0


def points_of(model: ExactAnm, settings: OrderSettings) -> OrderingPoints:
    values = model.sample(300, seed=7).numpy()
    return OrderingPoints(values, settings, 0, torch.device("cpu"), torch.float64)
