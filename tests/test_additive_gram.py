"""The Gram matrix: right, the same however the rows come, and small."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from diffan.additive.batched import accumulate
from diffan.additive.gram import SplineGram, _orthonormal, _Rows
from diffan.additive.splines import column_basis
from diffan.errors import InputError


@pytest.fixture
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((1500, 4))
    table[:, 1] += np.sin(table[:, 0])
    table[:, 3] = np.round(table[:, 3])
    return table


def test_matrix_holds_the_mean_products_of_the_functions(values: np.ndarray) -> None:
    gram = SplineGram.from_values(values)
    functions = np.hstack([basis.evaluate(values[:, j]) for j, basis in enumerate(gram.bases)])
    np.testing.assert_allclose(gram.matrix, functions.T @ functions / len(values), atol=1e-10)
    assert gram.offsets[-1] == len(gram.matrix)


def test_chunks_lists_and_memory_maps_give_the_same(values: np.ndarray, tmp_path: Path) -> None:
    whole = SplineGram.from_values(values).matrix
    stored = np.memmap(tmp_path / "table.bin", dtype=np.float64, mode="w+", shape=values.shape)
    stored[:] = values
    ways = (
        SplineGram.from_values(values, chunk_rows=97),
        SplineGram.from_values([values[:700], values[700:]], chunk_rows=300),
        SplineGram.from_values(stored, chunk_rows=512),
    )
    for gram in ways:
        np.testing.assert_allclose(gram.matrix, whole, atol=1e-9)


def test_weights_count_rows(values: np.ndarray) -> None:
    counts = np.random.default_rng(1).integers(0, 3, len(values))
    weighted = SplineGram.from_values(values, weights=counts)
    columns = [
        basis.evaluate(np.repeat(values[:, j], counts, axis=0)) for j, basis in enumerate(weighted.bases)
    ]
    functions = np.hstack(columns)
    assert weighted.n_rows == counts.sum()
    np.testing.assert_allclose(weighted.matrix, functions.T @ functions / counts.sum(), atol=1e-10)
    np.testing.assert_allclose(functions.mean(axis=0), 0.0, atol=1e-10)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peaks = []
    for n in (20_000, 80_000):
        stored = np.memmap(tmp_path / f"{n}.bin", dtype=np.float64, mode="w+", shape=(n, 3))
        for first in range(0, n, 20_000):
            stored[first : first + 20_000] = np.random.default_rng(first).standard_normal((20_000, 3))
        tracemalloc.start()
        SplineGram.from_values(stored, chunk_rows=2000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1e6  # the longer table has 1.4 MB more of values in float64


def test_torch_accumulates_the_same_sums(values: np.ndarray) -> None:
    values.setflags(write=False)
    for weights in (None, np.linspace(0, 2, len(values))):
        rows = _Rows(values, 400, weights, 9)
        bases = tuple(column_basis(column, 9) for column in rows.sample().T)
        products, sums = accumulate(rows.chunks(), bases, "cpu")
        there = _orthonormal(products, sums, bases, rows.total_weight)
        here = SplineGram.from_values(values, weights=weights)
        np.testing.assert_allclose(np.abs(there.matrix), np.abs(here.matrix), atol=1e-9)


def test_bad_rows_are_refused_with_a_sentence(values: np.ndarray) -> None:
    with pytest.raises(InputError, match="same d columns"):
        SplineGram.from_values([values, values[:, :2]])
    with pytest.raises(InputError, match="1500 numbers of 0 or more"):
        SplineGram.from_values(values, weights=np.full(1500, -1.0))
    with pytest.raises(InputError, match="'n_basis' parameter must be 2 or more"):
        SplineGram.from_values(values, n_basis=1)
    with pytest.raises(InputError, match="at least 2 rows"):
        SplineGram.from_values(values[:1])
