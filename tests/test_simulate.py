"""Simulated graphs and samples: laws, moments and refusals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from diffan.dag import Dag
from diffan.errors import InputError
from diffan.simulate import gaussian_process, random_dag, sample_anm, two_variable
from diffan.simulate.graphs import grow_scale_free
from diffan.simulate.mechanisms import additive_gp, linear, mechanism_named, sigmoid
from diffan.simulate.noise import STANDARD_NOISE, draw_noise

MECHANISMS = ["gp", "additive-gp", "mlp", "linear", "sigmoid"]


# ---- graphs -------------------------------------------------------------------------------


@given(st.data(), st.integers(1, 15), st.integers(0, 2**40))
def test_er_has_exactly_the_edges_asked_for(data, n_nodes, seed):
    n_edges = data.draw(st.integers(0, n_nodes * (n_nodes - 1) // 2))
    dag = random_dag(n_nodes, n_edges, "er", seed)
    assert (dag.n_nodes, dag.n_edges) == (n_nodes, n_edges)
    assert len(dag.topological_order()) == n_nodes
    assert dag == random_dag(n_nodes, n_edges, "er", seed)


@given(st.data(), st.integers(1, 15), st.integers(0, 2**40))
def test_sf_has_the_edges_its_docstring_promises(data, n_nodes, seed):
    n_edges = data.draw(st.integers(0, n_nodes * (n_nodes - 1)))
    dag = random_dag(n_nodes, n_edges, "sf", seed)
    each, remainder = divmod(n_edges, n_nodes)
    full = each * n_nodes - each * (each + 1) // 2
    assert dag.n_edges == full + min(remainder, n_nodes - 1 - each)
    assert len(dag.topological_order()) == n_nodes
    assert dag == random_dag(n_nodes, n_edges, "sf", seed)


def test_sf_counts_of_the_paper():
    assert random_dag(20, 20, "sf").n_edges == 19
    assert random_dag(20, 100, "sf").n_edges == 85
    assert random_dag(20, 7, "sf").n_edges == 7


def test_every_small_dag_of_er_is_reached_equally_often():
    """Three nodes and one edge: six DAGs, each with probability 1/6."""
    counts = np.zeros((3, 3))
    for seed in range(1200):
        counts += random_dag(3, 1, "er", seed).adjacency
    off_diagonal = counts[~np.eye(3, dtype=bool)]
    assert stats.chisquare(off_diagonal).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["er", "sf"])
def test_labels_do_not_betray_the_order(kind):
    forward = [np.triu(random_dag(12, 24, kind, seed).adjacency).sum() for seed in range(200)]
    share = np.sum(forward) / sum(random_dag(12, 24, kind, seed).n_edges for seed in range(200))
    assert abs(share - 0.5) < 0.04


def test_scale_free_graphs_have_hubs_and_er_graphs_do_not():
    def largest_degree(kind: str) -> float:
        graphs = [random_dag(100, 100, kind, seed).adjacency for seed in range(20)]
        return float(np.mean([(a + a.T).sum(axis=0).max() for a in graphs]))

    assert largest_degree("sf") > 1.5 * largest_degree("er")


def test_attachment_prefers_the_well_connected():
    """Of three nodes, the third joins either of the two joined ones; a fourth prefers the middle one 2 : 1 : 1."""
    joined = np.zeros(4)
    for seed in range(2000):
        grown = grow_scale_free(4, 4, np.random.default_rng(seed))
        if grown[0, 2]:  # node 0 then has degree 2, nodes 1 and 2 degree 1
            joined += grown[:, 3]
    assert joined[0] / joined.sum() == pytest.approx(0.5, abs=0.05)


def test_er_refuses_more_edges_than_fit():
    with pytest.raises(
        InputError, match=r"A DAG over 4 nodes has at most 6 edges. Got 7 for 'n_edges' instead."
    ):
        random_dag(4, 7)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_edges": 13, "graph": "sf"}, "scale-free graph over 4 nodes is complete with 'n_edges' at 12"),
        ({"graph": "ring"}, "'graph' parameter must be 'er' or 'sf'. Got 'ring' instead."),
        ({"n_nodes": 0}, "'n_nodes' parameter must be a whole number of 1 or more. Got 0 instead."),
        ({"n_edges": -1}, "'n_edges' parameter must be a whole number of 0 or more. Got -1 instead."),
        ({"n_edges": 2.5}, "'n_edges' parameter must be a whole number of 0 or more. Got 2.5 instead."),
        ({"seed": -1}, "'seed' parameter must be a whole number of 0 or more. Got -1 instead."),
    ],
)
def test_random_dag_refusals(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        random_dag(**({"n_nodes": 4, "n_edges": 3} | arguments))


# ---- noise --------------------------------------------------------------------------------

# name: (standard deviation / scale, skewness, excess kurtosis)
MOMENTS = {
    "gauss": (1.0, 0.0, 0.0),
    "exp": (1.0, 2.0, 6.0),
    "laplace": (np.sqrt(2.0), 0.0, 3.0),
    "uniform": (1 / np.sqrt(3.0), 0.0, -1.2),
    "gumbel": (np.pi / np.sqrt(6.0), 1.1395, 2.4),
}


@pytest.mark.parametrize("noise", STANDARD_NOISE)
def test_noise_has_the_moments_of_its_table(noise):
    draws = draw_noise(noise, 400_000, 0.7, np.random.default_rng(5))
    deviation, skewness, kurtosis = MOMENTS[noise]
    assert draws.mean() == pytest.approx(0.0, abs=0.006)
    assert draws.std() == pytest.approx(0.7 * deviation, rel=0.01)
    assert stats.skew(draws) == pytest.approx(skewness, abs=0.06)
    assert stats.kurtosis(draws) == pytest.approx(kurtosis, abs=0.4)


def test_each_node_has_a_scale_of_its_own_within_the_range():
    frame = sample_anm(Dag(np.zeros((40, 40))), 4000, noise_scale=(0.4, 0.8), seed=3)
    spread = frame.std()
    assert spread.min() > 0.37
    assert spread.max() < 0.84
    assert spread.max() - spread.min() > 0.3


# ---- mechanisms ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_draws"), [(4, 2000), (gaussian_process.EXACT_ROWS + 1, 400)])
def test_gp_draws_have_the_rbf_kernel_as_covariance(n_rows, n_draws):
    """Exact draws and Fourier features: over many functions, covariance exp(-distance^2 / 2)."""
    inputs = np.zeros((n_rows, 2))
    inputs[:4] = [[0.0, 0.0], [0.5, 0.5], [1.0, -1.0], [3.0, 3.0]]
    streams = (np.random.default_rng(seed) for seed in range(n_draws))
    draws = np.array([gaussian_process.draw_function(inputs, rng, device="cpu")[:4] for rng in streams])
    expected = np.exp(-0.5 * ((inputs[:4, None] - inputs[None, :4]) ** 2).sum(axis=2))
    assert np.abs(draws.T @ draws / n_draws - expected).max() < 5 / np.sqrt(n_draws)


def test_fourier_features_on_torch_draw_the_same_function():
    inputs = np.random.default_rng(0).standard_normal((3000, 3))
    rng = np.random.default_rng(1)
    parts = (rng.standard_normal((3, 512)), rng.uniform(0, 6, 512), rng.standard_normal(512) / 16)
    on_numpy = gaussian_process._fourier_numpy(inputs, *parts)
    on_torch = gaussian_process._fourier_torch(inputs, *parts, device="cpu")
    assert np.abs(on_numpy - on_torch).max() < 1e-4


def test_repeated_rows_do_not_break_the_exact_draw():
    inputs = np.repeat(np.linspace(-1, 1, 5), 100)[:, None]
    values = gaussian_process.draw_function(inputs, np.random.default_rng(0)).reshape(5, 100)
    assert np.isfinite(values).all()
    assert np.ptp(values, axis=1).max() < 0.01


def _interaction(function, seed: int) -> float:
    """The mixed difference f(1,1) - f(1,0) - f(0,1) + f(0,0): zero exactly for a sum of one-parent functions."""
    corners = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    return float(np.array([1, -1, -1, 1]) @ function(corners, np.random.default_rng(seed)))


def test_additive_mechanisms_are_additive_and_joint_ones_are_not():
    for function in (lambda x, rng: additive_gp(x, rng, device="cpu"), linear, sigmoid):
        assert max(abs(_interaction(function, seed)) for seed in range(20)) < 2e-3
    for name in ("gp", "mlp"):
        joint = mechanism_named(name, device="cpu")
        assert np.mean([abs(_interaction(joint, seed)) for seed in range(20)]) > 0.1


def test_linear_weights_stay_away_from_zero():
    weights = np.array([linear(np.eye(4), np.random.default_rng(seed)) for seed in range(200)])
    assert np.abs(weights).min() >= 0.5
    assert np.abs(weights).max() <= 2.0
    assert 0.4 < (weights > 0).mean() < 0.6


def test_sigmoid_is_monotone_and_bounded_by_its_height():
    grid = np.linspace(-50, 50, 1001)[:, None]
    for seed in range(20):
        values = sigmoid(grid, np.random.default_rng(seed))
        steps = np.diff(values)
        assert (steps > 0).all() or (steps < 0).all()
        assert 1.9 < np.ptp(values) < 6.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_children_depend_on_their_parents(mechanism):
    """With little noise, rows that agree in the parents agree in the child, and the child is not constant."""
    dag = Dag([[0, 1], [0, 0]])
    frame = sample_anm(dag, 2000, "uniform", 0.01, mechanism, seed=2)
    ordered = frame.sort_values("x0")["x1"].to_numpy()
    assert np.abs(np.diff(ordered)).max() < 0.1


# ---- samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [30, 2600])
def test_same_seed_same_bytes(mechanism, rows):
    dag = random_dag(5, 8, seed=1)
    first, again, other = (
        sample_anm(dag, rows, "laplace", (0.4, 0.8), mechanism, seed, device="cpu") for seed in (7, 7, 8)
    )
    assert list(first.columns) == list(dag.names)
    assert first.shape == (rows, 5)
    assert first.to_numpy().tobytes() == again.to_numpy().tobytes()
    assert not np.allclose(first, other)
    assert np.isfinite(first.to_numpy()).all()


def test_roots_are_noise_alone():
    frame = sample_anm(Dag([[0, 1], [0, 0]]), 5000, "exp", 2.0, seed=4)
    assert frame["x0"].min() > -2.0
    assert stats.kstest(frame["x0"] + 2.0, "expon", args=(0, 2.0)).pvalue > 1e-3


def test_the_residual_is_the_noise():
    """With its linear weights recovered, a child minus its parents' part has the noise's moments."""
    dag = Dag([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    frame = sample_anm(dag, 20_000, "laplace", 0.5, "linear", seed=5)
    design, child = frame[["x0", "x1"]].to_numpy(), frame["x2"].to_numpy()
    residual = child - design @ np.linalg.lstsq(design, child, rcond=None)[0]
    assert residual.std() == pytest.approx(0.5 * np.sqrt(2), rel=0.02)
    assert stats.kurtosis(residual) == pytest.approx(3.0, abs=0.5)


def test_another_noise_leaves_the_functions_alone():
    """Linear weights, read off the data, do not change with the noise."""
    dag = Dag([[0, 1], [0, 0]])
    slopes = []
    for noise in STANDARD_NOISE:
        frame = sample_anm(dag, 20_000, noise, 1.0, "linear", seed=6)
        slopes.append(frame["x0"].cov(frame["x1"]) / frame["x0"].var())
    assert np.ptp(slopes) < 0.05


def test_names_travel_and_the_graph_is_untouched():
    dag = Dag.from_edges([("rain, heavy", "β")], ["β", "rain, heavy"])
    before = dag.adjacency.tobytes()
    assert list(sample_anm(dag, 10).columns) == ["β", "rain, heavy"]
    assert dag.adjacency.tobytes() == before


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 8), st.integers(0, 1000))
def test_sizes_down_to_one_row(rows, seed):
    dag = random_dag(4, 4, "sf", seed)
    assert sample_anm(dag, rows, seed=seed).shape == (rows, 4)


def test_two_variable_case_of_the_paper():
    frame, dag = two_variable(20_000, 1)
    again, _ = two_variable(20_000, 1)
    assert dag.edges == [("A", "B")]
    assert frame.to_numpy().tobytes() == again.to_numpy().tobytes()
    assert stats.kstest(frame["A"], "norm").pvalue > 1e-3
    nearest = frame.sort_values("A")["B"].to_numpy()
    assert np.var(np.diff(nearest)) / 2 == pytest.approx(1.0, rel=0.05)  # noise of B given A has variance 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_samples": 0}, "'n_samples' parameter must be a whole number of 1 or more. Got 0 instead."),
        ({"noise": "cauchy"}, "'noise' parameter must be one of 'gauss', 'exp', .* Got 'cauchy' instead."),
        ({"mechanism": "cubic"}, "'mechanism' parameter must be one of 'gp', .* Got 'cubic' instead."),
        (
            {"noise_scale": (0.8, 0.4)},
            r"'noise_scale' parameter must be a positive number or a pair .*\(0.8, 0.4\)",
        ),
        ({"noise_scale": -1.0}, "'noise_scale' parameter must be a positive number .* Got -1.0 instead."),
        ({"noise_scale": (1, 2, 3)}, "'noise_scale' parameter must be a positive number"),
        ({"noise_scale": "big"}, "'noise_scale' parameter must be a positive number .* Got 'big' instead."),
        (
            {"device": "gpu"},
            r"'device' parameter must be 'auto', 'cpu' or 'cuda\[:index\]'. Got 'gpu' instead.",
        ),
    ],
)
def test_sample_anm_refusals(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        sample_anm(random_dag(3, 2), **({"n_samples": 10} | arguments))


def test_small_samples_never_load_torch():
    import subprocess

    code = (
        "import sys; from diffan.simulate import paper_case, simulate_gene_network\n"
        "paper_case('er', 1, 'gauss', 0, 0, n_nodes=5, n_samples=50); simulate_gene_network(n_samples=5)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
