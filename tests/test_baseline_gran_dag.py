"""GraN-DAG: the acyclicity falls below its tolerance, a DAG always comes out, the algebra is right."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffan.baselines.gran_dag import GranDagOptions, find_order
from diffan.baselines.gran_dag_model import (
    Networks,
    connectivity,
    initial_weights,
    mean_absolute_jacobian,
    negative_log_likelihood,
    predictions,
    write_gradient,
)
from diffan.constraints import Constraints
from diffan.context import Context
from diffan.dag import Dag
from diffan.errors import InputError
from diffan.metrics import order_divergence
from diffan.table import Table

CPU = Context(device="cpu")
FAST = GranDagOptions(
    hidden=5, later_rate=0.01, penalty=1.0, progress_wanted=0.3, edge_clamp=1e-3, check_every=50, patience=1
)


def chain(seed: int = 0, n: int = 300) -> Table:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=n)
    c = np.cos(2 * b) + 0.3 * rng.normal(size=n)
    return Table.read(np.column_stack([c, a, b]))


def networks(d: int = 4, hidden: int = 3, seed: int = 0) -> Networks:
    rng = np.random.default_rng(seed)
    flat = torch.tensor(initial_weights(d, hidden, rng) + 0.1 * rng.normal(size=_count(d, hidden)))
    return Networks.view(flat, d, hidden)


def _count(d: int, hidden: int) -> int:
    return sum(int(np.prod(shape)) for shape in Networks.shapes(d, hidden))


def one_network(nets: Networks, mask: np.ndarray, j: int, x: np.ndarray) -> np.ndarray:
    """Network j by itself: x [d] -> its prediction of variable j."""

    def leaky(value: np.ndarray) -> np.ndarray:
        return np.where(value > 0, value, 0.01 * value)

    hidden = leaky((x * mask[:, j]) @ nets.first[:, j].numpy() + nets.first_bias[j].numpy())
    hidden = leaky(hidden @ nets.second[j].numpy() + nets.second_bias[j].numpy())
    return hidden @ nets.last[j].numpy() + nets.last_bias[j].numpy()


def test_batched_networks_equal_each_network_alone() -> None:
    nets, rng = networks(), np.random.default_rng(1)
    mask = (rng.random((4, 4)) < 0.6) & ~np.eye(4, dtype=bool)
    x = rng.normal(size=(7, 4))
    together = predictions(nets, torch.tensor(mask, dtype=torch.float64), torch.tensor(x))
    alone = [[one_network(nets, mask, j, row) for j in range(4)] for row in x]
    np.testing.assert_allclose(together, alone, atol=1e-12)
    residual = (x - np.array(alone)) / np.exp(nets.log_std.numpy())
    expected = (0.5 * residual**2 + nets.log_std.numpy()).sum(axis=1).mean()
    loss = negative_log_likelihood(nets, torch.tensor(mask, dtype=torch.float64), torch.tensor(x))
    assert float(loss) == pytest.approx(expected)


def test_connectivity_is_the_mean_over_all_paths() -> None:
    nets = networks()
    mask = 1 - torch.eye(4, dtype=torch.float64)
    strength = connectivity(nets, mask)
    paths = [
        abs(float(nets.first[1, 2, a] * nets.second[2, a, b] * nets.last[2, b]))
        for a in range(3)
        for b in range(3)
    ]
    assert float(strength[1, 2]) == pytest.approx(np.mean(paths))
    assert not strength.diagonal().any()


def test_jacobian_equals_finite_differences() -> None:
    nets, rng = networks(seed=3), np.random.default_rng(4)
    mask = 1 - torch.eye(4, dtype=torch.float64)
    x = rng.normal(size=(5, 4))
    step = 1e-6
    columns = []
    for i in range(4):
        moved = [torch.tensor(x + sign * step * np.eye(4)[i]) for sign in (1, -1)]
        up, down = (predictions(nets, mask, at) for at in moved)
        columns.append(((up - down) / (2 * step)).abs().mean(dim=0))
    np.testing.assert_allclose(
        mean_absolute_jacobian(nets, mask, torch.tensor(x)), torch.stack(columns), atol=1e-6
    )


def test_gradient_equals_the_automatic_one() -> None:
    rng = np.random.default_rng(5)
    mask = torch.tensor((rng.random((4, 4)) < 0.7) & ~np.eye(4, dtype=bool), dtype=torch.float64)
    x, pull = torch.tensor(rng.normal(size=(9, 4))), torch.tensor(rng.random((4, 4)))
    flat = torch.cat([part.flatten() for part in networks(seed=6)]).requires_grad_()
    nets = Networks.view(flat, 4, 3)
    loss = negative_log_likelihood(nets, mask, x) + (pull * connectivity(nets, mask)).sum()
    loss.backward()
    gradient = torch.full_like(flat, np.nan, requires_grad=False)
    with torch.no_grad():
        write_gradient(nets, mask, x, pull, Networks.view(gradient, 4, 3))
    np.testing.assert_allclose(gradient, flat.grad, atol=1e-12)


def test_acyclicity_falls_below_its_tolerance() -> None:
    found = find_order(chain(), FAST, CPU)
    acyclicity = found.losses["acyclicity"]
    assert acyclicity[0] > 1e-3
    assert acyclicity[-1] < FAST.tolerance
    assert found.warnings == ()
    assert found.candidates is not None
    assert Dag(found.candidates).n_nodes == 3
    assert len(found.losses["validation"]) == len(acyclicity) == len(found.losses["step"])


def test_the_chain_is_found() -> None:
    truth = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0]])
    wrong = [order_divergence(truth, find_order(chain(seed), FAST, CPU).order) for seed in range(3)]
    assert np.median(wrong) == 0


def test_running_out_of_steps_still_gives_a_dag_and_a_warning() -> None:
    found = find_order(chain(1), GranDagOptions(max_steps=30), CPU)
    assert found.candidates is not None
    assert sorted(found.order) == [0, 1, 2]
    place = np.argsort(found.order)
    causes, effects = np.nonzero(found.candidates)
    assert len(causes) == 3
    assert (place[causes] < place[effects]).all()
    assert "stopped after 30 iterations" in found.warnings[0]


def test_same_seed_same_graph_and_other_seeds_differ() -> None:
    few = GranDagOptions(max_steps=20)
    runs = [find_order(chain(), few, Context(seed=s, device="cpu")) for s in (0, 0, 1)]
    assert runs[0].losses == runs[1].losses
    assert runs[0].losses != runs[2].losses


def test_neighbour_selection_limits_the_candidates() -> None:
    found = find_order(chain(), GranDagOptions(preselect_above=1, neighbours=1, max_steps=20), CPU)
    assert found.candidates is not None
    assert found.candidates.sum(axis=0).max() <= 1


def test_strongest_dag_drops_the_weakest_edge_of_a_cycle() -> None:
    strength = np.zeros((3, 3))
    strength[0, 1], strength[1, 2], strength[2, 0] = 3.0, 1.0, 2.0
    free = Constraints.none
    assert np.argwhere(free(len(strength)).strongest_dag(strength)).tolist() == [[0, 1], [2, 0]]
    dense = free(12).strongest_dag(np.random.default_rng(0).random((12, 12)))
    assert Dag(dense).n_edges == 66
    assert not free(2).strongest_dag(np.zeros((2, 2))).any()


def test_bad_options_are_refused() -> None:
    with pytest.raises(
        InputError, match="'hidden' parameter of GranDagOptions must be a whole number of 1 or more"
    ):
        GranDagOptions(hidden=0)
    with pytest.raises(InputError, match="'holdout' parameter"):
        GranDagOptions(holdout=1.0)
    with pytest.raises(InputError, match="'neighbours' parameter"):
        GranDagOptions(neighbours=0)
