"""The paper's grid and the gene network."""

from __future__ import annotations

import numpy as np
import pytest

from diffan.errors import InputError
from diffan.simulate import GeneNetworkSettings, PaperCase, paper_case, paper_grid, simulate_gene_network
from diffan.simulate.gene_network import _expression_rate

# ---- the paper's grid ---------------------------------------------------------------------


def test_the_grid_has_27_sets_with_names_of_their_own():
    cases = [case for graph in ("er", "sf") for density in (1, 5) for case in paper_grid(graph, density)]
    assert len(cases) == 4 * 27
    assert len({case.name for case in cases}) == len(cases)
    assert {(case.n_nodes, case.n_samples) for case in cases} == {(20, 1000)}


def test_no_two_cells_share_a_graph():
    graphs = [
        case.draw()[1]
        for graph in ("er", "sf")
        for density in (1, 5)
        for case in paper_grid(graph, density, n_samples=2)
    ]
    assert len(set(graphs)) == len(graphs)


@pytest.mark.parametrize(
    ("graph", "density", "edges"), [("er", 1, 20), ("er", 5, 100), ("sf", 1, 19), ("sf", 5, 85)]
)
def test_a_case_has_the_shape_of_the_paper(graph, density, edges):
    frame, dag = paper_case(graph, density, "gauss", 0, 1, n_samples=300)
    again, _ = PaperCase(graph, density, "gauss", 0, 1, n_samples=300).draw()
    assert frame.shape == (300, 20)
    assert dag.n_edges == edges
    assert list(frame.columns) == list(dag.names)
    assert frame.to_numpy().tobytes() == again.to_numpy().tobytes()


def test_more_rows_keep_the_graph():
    assert (
        paper_case("sf", 1, "exp", 2, 5, n_samples=5)[1] == paper_case("sf", 1, "exp", 2, 5, n_samples=9)[1]
    )


@pytest.mark.parametrize(("scale_index", "low", "high"), [(0, 0.4, 0.8), (1, 0.8, 1.2), (2, 1.0, 1.0)])
def test_scale_index_chooses_the_range(scale_index, low, high):
    spreads = []
    for seed in range(4):
        frame, dag = paper_case("er", 1, "gauss", scale_index, seed, n_samples=600)
        spreads += [frame[name].std() for name in dag.names if not dag.parents(name)]
    assert len(spreads) > 15
    assert min(spreads) > low * 0.88
    assert max(spreads) < high * 1.12


def test_grid_refusals():
    with pytest.raises(InputError, match=r"'scale_index' parameter must be 0, 1 or 2. Got 3 instead."):
        paper_case("er", 1, "gauss", 3, 0)
    with pytest.raises(InputError, match=r"A DAG over 10 nodes has at most 45 edges. Got 50"):
        paper_case("er", 5, "gauss", 0, 0, n_nodes=10)
    with pytest.raises(InputError, match="'seed' parameter"):
        paper_case("er", 1, "gauss", 0, -1)


# ---- gene network -------------------------------------------------------------------------


def test_expression_is_positive_and_reproducible():
    frame, dag = simulate_gene_network(seed=3)
    again, _ = simulate_gene_network(seed=3)
    other, other_dag = simulate_gene_network(seed=4)
    assert frame.shape == (500, 20)
    assert (frame.to_numpy() > 0).all()
    assert dag.n_edges == 23  # 20 asked for as a tree give 19, and the remaining 4 come out whole
    assert frame.to_numpy().tobytes() == again.to_numpy().tobytes()
    assert dag != other_dag
    assert not np.allclose(frame, other)


def test_few_genes_regulate_many():
    out_degrees, in_degrees = [], []
    for seed in range(10):
        _, dag = simulate_gene_network(100, 120, 1, seed)
        out_degrees.append(dag.adjacency.sum(axis=1).max())
        in_degrees.append(dag.adjacency.sum(axis=0).max())
    assert max(in_degrees) == 2
    assert np.mean(out_degrees) > 8


def _rates(**shares: float) -> np.ndarray:
    """Rates of genes with one regulator, over its level, for many draws of the kinetics."""
    level = np.linspace(0.0, 5.0, 200)[:, None]
    settings = GeneNetworkSettings(basal_rate=0.1, **shares)
    return np.array([_expression_rate(level, settings, np.random.default_rng(seed)) for seed in range(30)])


def test_activators_raise_and_repressors_lower():
    activated, repressed = _rates(repressor_share=0.0), _rates(repressor_share=1.0)
    assert (np.diff(activated, axis=1) > 0).all()
    assert (np.diff(repressed, axis=1) < 0).all()
    assert activated[:, 0] == pytest.approx(0.1)  # nothing bound: the basal rate
    assert repressed[:, 0] == pytest.approx(1.0)  # nothing bound: the full rate
    for rates in (activated, repressed):
        assert rates.min() >= 0.1
        assert rates.max() <= 1.0


def test_michaelis_menten_is_concave_and_hill_is_sigmoidal():
    def bends(rates: np.ndarray) -> np.ndarray:
        return np.diff(rates, n=2, axis=1)

    assert (bends(_rates(repressor_share=0.0, hill_share=0.0)) < 0).all()
    hill = bends(_rates(repressor_share=0.0, hill_share=1.0))
    assert (hill.max(axis=1) > 0).all()
    assert (hill.min(axis=1) < 0).all()


def test_cooperative_regulators_must_act_together():
    levels = np.array([[100.0, 0.0], [100.0, 100.0]])
    base = {"repressor_share": 0.0, "basal_rate": 0.0, "hill_share": 1.0}
    rng = np.random.default_rng
    together = _expression_rate(levels, GeneNetworkSettings(cooperative_share=1.0, **base), rng(0))
    apart = _expression_rate(levels, GeneNetworkSettings(cooperative_share=0.0, **base), rng(0))
    assert together == pytest.approx([0.0, 1.0], abs=1e-3)
    assert apart == pytest.approx([0.5, 1.0], abs=1e-3)


def _log_disturbance(**noise: float) -> np.ndarray:
    """What one noise does to a regulator and its target: log of noisy over noiseless levels, [n, 2]."""

    def levels(**amounts: float) -> np.ndarray:
        quiet = {"biological_noise": 0.0, "measurement_noise": 0.0, "repressor_share": 0.0}
        settings = GeneNetworkSettings(**(quiet | amounts))
        frame, dag = simulate_gene_network(2, 1, 4000, 5, settings=settings)
        return frame[dag.topological_order()].to_numpy()

    return np.log(levels(**noise) / levels())


def test_biological_noise_is_passed_on_and_measurement_noise_is_not():
    measured, lived = _log_disturbance(measurement_noise=0.1), _log_disturbance(biological_noise=0.1)
    assert measured.std(axis=0) == pytest.approx([0.1, 0.1], rel=0.05)
    assert abs(np.corrcoef(measured.T)[0, 1]) < 0.06
    assert lived[:, 0].std() == pytest.approx(0.1, rel=0.05)
    assert lived[:, 1].std() > 0.105  # the target's own noise and the regulator's
    assert np.corrcoef(lived.T)[0, 1] > 0.3


def test_gene_network_refusals():
    with pytest.raises(InputError, match="A gene network needs 1 or more genes"):
        simulate_gene_network(0, 0)
    with pytest.raises(InputError, match="'n_samples' parameter"):
        simulate_gene_network(n_samples=0)
    with pytest.raises(InputError, match=r"'repressor_share' setting must lie in \[0, 1\]. Got 2 instead."):
        GeneNetworkSettings(repressor_share=2)
    with pytest.raises(InputError, match=r"'measurement_noise' setting must be 0 or more. Got -0.1 instead."):
        GeneNetworkSettings(measurement_noise=-0.1)
