"""Rules that choose a cutoff from all p-values."""

from __future__ import annotations

import numpy as np

from diffan.additive.cutoff import adaptive_cutoff, fdr_cutoff


def test_fdr_on_the_example_of_benjamini_and_hochberg() -> None:
    published = np.array(
        [
            0.0001,
            0.0004,
            0.0019,
            0.0095,
            0.0201,
            0.0278,
            0.0298,
            0.0344,
            0.0459,
            0.3240,
            0.4262,
            0.5719,
            0.6528,
            0.7590,
            1.0,
        ]
    )
    assert (published < fdr_cutoff(published, 0.05)).sum() == 4
    assert fdr_cutoff(np.array([0.9, 0.5]), 0.05) == 0.0
    assert fdr_cutoff(np.empty(0), 0.05) == 0.0


def mixture(n_true: int, n_null: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.append(rng.beta(0.1, 1.0, n_true), rng.uniform(size=n_null))


def test_adaptive_is_strict_on_sparse_graphs_and_loose_on_dense_ones() -> None:
    nothing = np.mean([adaptive_cutoff(mixture(0, 190, s), 0.6) for s in range(20)])
    sparse = np.mean([adaptive_cutoff(mixture(20, 170, s), 0.6) for s in range(20)])
    dense = np.mean([adaptive_cutoff(mixture(95, 95, s), 0.6) for s in range(20)])
    assert nothing < 0.002 < sparse < 0.5 * dense
    assert dense <= 0.05


def test_adaptive_cutoff_is_where_the_posterior_says() -> None:
    p_values = mixture(4000, 6000, 0)
    cutoff = adaptive_cutoff(p_values, 0.6)
    near = (p_values > cutoff / 1.5) & (p_values < cutoff * 1.5)
    assert abs(near[:4000].sum() / near.sum() - 0.6) < 0.12


def test_adaptive_keeps_less_when_it_must_be_surer() -> None:
    p_values = mixture(60, 130, 1)
    assert adaptive_cutoff(p_values, 0.9) < adaptive_cutoff(p_values, 0.6) < adaptive_cutoff(p_values, 0.3)
    assert adaptive_cutoff(np.empty(0), 0.6) == 0.0
    assert 0 < adaptive_cutoff(np.array([1e-300]), 0.6) < 0.05
