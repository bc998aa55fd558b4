"""Tables on disk: the same table as in memory, the same laws, and nothing left behind."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import diffan
from diffan import rows as rows_module
from diffan import shuffling, streaming
from diffan.additive.gram import SplineGram
from diffan.errors import InputError
from diffan.likelihood.plan import plan_for
from diffan.likelihood.settings import LikelihoodSettings
from diffan.mapped import MappedTable
from diffan.moments import Moments
from diffan.streaming import read_table
from diffan.table import Table

FAST: dict[str, Any] = {"width": 16, "depth": 1, "max_steps": 40, "device": "cpu"}


def frame(n: int = 500, d: int = 4, seed: int = 0) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(d, d, graph="er", seed=seed)
    return diffan.simulate.sample_anm(dag, n, noise="gauss", seed=seed)


def written(data: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same table in every form that is read in chunks."""
    data.to_csv(folder / "t.csv", index=False)
    data.to_parquet(folder / "t.parquet")
    np.save(folder / "t.npy", data.to_numpy())
    np.save(folder / "columns.npy", np.asfortranarray(data.to_numpy()))
    (folder / "parts").mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(data)), 3)):
        data.iloc[part].to_parquet(folder / "parts" / f"{k}.parquet")
    endings = ("t.csv", "t.parquet", "t.npy", "columns.npy", "parts")
    return {name: folder / name for name in endings} | {"array": data.to_numpy()}


def in_any_order(values: np.ndarray) -> np.ndarray:
    return values[np.lexsort(values.T)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks and piles so small that every test meets many of them."""
    for module in (rows_module, streaming, shuffling):
        monkeypatch.setattr(module, "CHUNK_CELLS", 700)
    monkeypatch.setattr(shuffling, "PILE_BYTES", 4000)


def test_every_form_gives_the_table_that_memory_gives(tmp_path: Path) -> None:
    data = frame()
    expected = Table.read(data)
    for form, path in written(data, tmp_path).items():
        table = read_table(path, stream=True)
        assert isinstance(table, MappedTable), form
        assert len(table.names) == 4
        np.testing.assert_allclose(table.center, expected.center, rtol=1e-12)
        np.testing.assert_allclose(table.scale, expected.scale, rtol=1e-12)
        np.testing.assert_allclose(
            in_any_order(table.values), in_any_order(expected.values), atol=2e-7, err_msg=form
        )
        small = Table.read(path)
        np.testing.assert_array_equal(small.values, expected.values, err_msg=form)
        assert isinstance(read_table(path), Table)
        assert not isinstance(read_table(path), MappedTable)  # few cells: no need for a disk


def test_rows_are_shuffled_and_stretches_are_fair_samples() -> None:
    n = 20_000
    array = np.column_stack([np.arange(n, dtype=float), np.random.default_rng(0).normal(size=n)])
    table = read_table(array, stream=True)
    place = table.names.index("x0")
    head = table.values[:500, place]
    assert abs(head.mean()) < 0.2
    assert 0.8 < head.std() < 1.2
    assert sorted(np.round(table.values[:, place] * table.scale[place] + table.center[place])) == list(
        range(n)
    )


def test_the_values_are_mapped_in_canonical_order_and_read_only() -> None:
    table = read_table(frame().to_numpy(), stream=True)
    canonical = table.select(table.canonical_positions())
    assert isinstance(canonical.values, np.memmap)
    assert not canonical.values.flags.writeable
    assert canonical.select(canonical.canonical_positions()).names == canonical.names
    np.testing.assert_array_equal(
        table.values[:, [table.names.index(name) for name in canonical.names]], canonical.values
    )


def test_permuted_columns_and_other_units_give_the_same_stored_rows() -> None:
    array = frame(600, 5, seed=3).to_numpy()
    move, units = [3, 0, 4, 2, 1], np.array([2.0**-20, 4.0, 2.0**30, 0.5, 1.0])
    one = read_table(array, stream=True)
    moved = read_table(array[:, move], stream=True)
    other = read_table(array * units, stream=True)
    assert isinstance(one, MappedTable)
    assert isinstance(moved, MappedTable)
    assert isinstance(other, MappedTable)
    np.testing.assert_array_equal(one.stored, moved.stored)
    np.testing.assert_array_equal(one.stored, other.stored)  # powers of two leave no rounding
    decimal = read_table(array * [1e-6, 3.7, 1e9, 0.1, 42.0], stream=True)
    assert isinstance(decimal, MappedTable)
    assert decimal.where == one.where
    np.testing.assert_allclose(decimal.stored, one.stored, atol=3e-7)


@pytest.mark.parametrize("method", ["diffan", "score", "cam", "gran-dag", "r2-sort", "random"])
def test_discover_from_disk_obeys_the_laws(method: str) -> None:
    data = frame(400, 4, seed=2).to_numpy()
    options = {"diffan": FAST, "gran-dag": {"max_steps": 50}}.get(method, {})
    options = {"refine": False, "edges": "additive", **options}
    one = diffan.discover(data, method, stream=True, **options)
    again = diffan.discover(data, method, stream=True, **options)
    moved = diffan.discover(data[:, [2, 0, 3, 1]], method, stream=True, **options)
    renamed = {f"x{k}": f"x{j}" for k, j in enumerate([2, 0, 3, 1])}
    assert one.order == again.order
    np.testing.assert_array_equal(one.evidence.p_values, again.evidence.p_values)
    assert [renamed[name] for name in moved.order] == one.order
    assert {(renamed[a], renamed[b]) for a, b in moved.dag.edges} == set(one.dag.edges)
    assert one.n_samples == 400


def test_the_likelihood_finish_and_every_variant_work_from_disk() -> None:
    data = frame(300, 4, seed=5).to_numpy()
    for variant in ("masking", "deciduous", "greedy"):
        edges = "likelihood" if variant == "masking" else "additive"
        result = diffan.discover(
            data, stream=True, variant=variant, refine=False, edges=edges, greedy_steps=20, **FAST
        )
        assert result.dag.respects(result.order)
        assert np.isfinite(result.evidence.p_values).all()
    folds = diffan.discover(
        data,
        stream=True,
        ensemble=2,
        holdout_split="folds",
        refit=True,
        refine=False,
        edges="additive",
        **FAST,
    )
    assert folds.dag.respects(folds.order)


def test_the_gram_matrix_of_a_map_is_that_of_its_rows() -> None:
    table = read_table(frame().to_numpy(), stream=True)
    table = table.select(table.canonical_positions())
    from_map = SplineGram.from_values(table.values, chunk_rows=37)
    from_memory = SplineGram.from_values(np.array(table.values, dtype=np.float64))
    np.testing.assert_allclose(from_map.matrix, from_memory.matrix, atol=1e-9)


def test_the_likelihood_takes_fewer_rows_of_wider_tables() -> None:
    plans = [plan_for(10**7, width, torch.device("cpu"), LikelihoodSettings()) for width in (10, 30, 54, 102)]
    assert [plan.rows for plan in plans] == [20_000, 3888, 1200, 1000]
    assert plan_for(1000, 30, torch.device("cpu"), LikelihoodSettings()).rows == 1000


def test_p_values_of_a_table_on_disk_follow_its_own_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame(300, 5, seed=3)
    order = ["x3", "x0", "x4", "x1", "x2"]
    expected = diffan.pruning.p_values(order, data.to_numpy())
    monkeypatch.setattr(streaming, "STREAM_ABOVE", 100)
    found = diffan.pruning.p_values(order, data.to_numpy())
    np.testing.assert_allclose(found, expected, rtol=0.2, atol=1e-6)
    assert ((found < 1) == (expected < 1)).all()


# ---- columns and rows ----------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_columns_and_rows_are_selected(stream: bool, tmp_path: Path) -> None:
    data = frame()
    data.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", stream=stream, columns=["x3", "x1"], rows=100, seed=4)
    assert table.names == ("x3", "x1")
    assert table.n_samples == 100
    raw = np.round(table.values * table.scale + table.center, 4)
    everything = {tuple(row) for row in np.round(data[["x3", "x1"]].to_numpy(), 4)}
    assert sum(tuple(row) in everything for row in raw) > 90  # the others only for rounding
    other = read_table(tmp_path / "t.parquet", stream=stream, columns=["x3", "x1"], rows=100, seed=5)
    assert not np.array_equal(other.center, table.center)
    assert read_table(data, rows=10_000).n_samples == 500


def test_the_sample_of_rows_does_not_depend_on_the_columns() -> None:
    data = frame()
    one = read_table(data, rows=50, columns=["x0", "x1"])
    other = read_table(data, rows=50, columns=["x1", "x2"])
    np.testing.assert_array_equal(one.values[:, 1], other.values[:, 0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ["x11"]}, "no column 'x11'; did you mean"),
        ({"columns": "x1"}, "must be a list of column names"),
        ({"columns": ["x1", "x1"]}, "names a column twice"),
        ({"rows": 0}, "whole number of 1 or more"),
        ({"rows": 2.5}, "whole number of 1 or more"),
        ({"stream": "always"}, "'auto', True or False"),
        ({"stream": True, "transform": "rank"}, "needs the table in memory"),
        ({"stream": True, "standardize": False}, "needs the table in memory"),
        ({"stream": True, "transform": "log"}, "needs positive columns"),
    ],
)
def test_refusals(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_table(frame().to_numpy(), **options)


def test_logarithms_are_taken_on_disk_as_in_memory(tmp_path: Path) -> None:
    draws = np.random.default_rng(5).normal(size=(400, 3)) * [3.0, 0.5, 0.1]
    pd.DataFrame(np.exp(draws), columns=["far", "near", "straight"]).to_parquet(tmp_path / "t.parquet")
    plain = Table.read(tmp_path / "t.parquet", transform="auto")
    for _ in range(2):  # converted, then from the cache
        stored = read_table(tmp_path / "t.parquet", transform="auto", stream=True, cache=tmp_path / "kept")
        assert stored.transform == plain.transform == "log"
        assert stored.warnings == plain.warnings
        np.testing.assert_allclose(
            in_any_order(np.asarray(stored.values)), in_any_order(plain.values), atol=1e-5
        )
        as_they_are = read_table(
            tmp_path / "t.parquet", transform="none", stream=True, cache=tmp_path / "kept"
        )
        assert as_they_are.untried_logarithms
        assert as_they_are.select([1, 0]).in_memory(50).untried_logarithms
        assert not stored.untried_logarithms
    untouched = read_table(np.random.default_rng(0).normal(size=(400, 3)), transform="auto", stream=True)
    assert untouched.transform == "none"


def test_checks_of_a_table_on_disk_are_those_of_one_in_memory() -> None:
    data = frame().to_numpy()
    for spoil, sentence in (
        (lambda a: np.column_stack([a, np.ones(len(a))]), "Every column must vary. Constant: 'x4'"),
        (lambda a: np.column_stack([a, 2 * a[:, 1]]), "No column may repeat another"),
        (lambda a: np.column_stack([a, a[:, 1] + a[:, 2]]), "exact linear combination"),
        (lambda a: np.where(np.arange(a.size).reshape(a.shape) == 9, np.nan, a), "Found 1 missing"),
        (lambda a: a[:5], "a minimum of 10 is required"),
        (lambda a: a[:, :1], "a minimum of 2 is required"),
        (lambda a: a.astype(complex), "Complex data not supported"),
    ):
        for stream in (True, False):
            with pytest.raises(InputError, match=sentence):
                read_table(spoil(data), stream=stream)
    gap = data.copy()
    gap[[3, 7], 1] = np.nan
    table = read_table(gap, stream=True, missing="drop")
    assert table.n_samples == 498
    assert "2 of 500 rows had missing or infinite cells and were dropped." in table.warnings
    wild = data.copy()
    wild[3, 1] = 1e4
    assert any(
        "Extreme outliers" in note and "'x1'" in note for note in read_table(wild, stream=True).warnings
    )


# ---- conversion ---------------------------------------------------------------------------


@given(
    st.integers(1, 400), st.integers(1, 60), st.floats(-1e12, 1e12), st.floats(1e-9, 1e9), st.integers(0, 99)
)
@settings(max_examples=60, deadline=None)
def test_streaming_moments_are_those_of_the_whole(
    n: int, step: int, shift: float, size: float, seed: int
) -> None:
    data = np.random.default_rng(seed).standard_cauchy(size=(n, 3)) * size + shift
    moments = Moments(3)
    for first in range(0, n, step):
        moments.add(data[first : first + step])
    assert moments.count == n
    reach = np.abs(data).max(axis=0)
    np.testing.assert_allclose(moments.center, data.mean(axis=0), rtol=0, atol=1e-13 * reach.max())
    np.testing.assert_allclose(moments.scale, data.std(axis=0), rtol=1e-9, atol=1e-12 * reach.max())
    np.testing.assert_array_equal(moments.low, data.min(axis=0))
    np.testing.assert_array_equal(moments.high, data.max(axis=0))


def test_moments_neither_overflow_nor_cancel() -> None:
    rng = np.random.default_rng(0)
    data = np.column_stack([1e300 * rng.normal(size=999), 1e9 + 1e-3 * rng.normal(size=999)])
    moments = Moments(2)
    for part in np.array_split(data, 7):
        moments.add(part)
    assert np.isfinite(moments.scale).all()
    np.testing.assert_allclose(
        moments.scale, [(data[:, 0] / 1e300).std() * 1e300, data[:, 1].std()], rtol=1e-6
    )


def test_the_cache_is_used_again_and_damage_is_noticed(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "t.parquet")
    cache = tmp_path / "cache"
    first = read_table(tmp_path / "t.parquet", stream=True, cache=cache).fingerprint()
    (array,), (record,) = cache.glob("*.npy"), cache.glob("*.json")
    before = os.stat(array).st_mtime_ns
    second = read_table(tmp_path / "t.parquet", stream=True, cache=cache)
    assert os.stat(array).st_mtime_ns == before
    assert second.fingerprint() == first
    content = bytearray(array.read_bytes())
    content[-3] ^= 0xFF
    array.write_bytes(content)
    third = read_table(tmp_path / "t.parquet", stream=True, cache=cache)
    assert third.fingerprint() == first
    record.write_text(json.dumps({"where": "no"}))
    assert read_table(tmp_path / "t.parquet", stream=True, cache=cache).fingerprint() == first
    assert len(list(cache.iterdir())) == 2
    read_table(tmp_path / "t.parquet", stream=True, cache=cache, columns=["x0", "x1"])
    assert len(list(cache.iterdir())) == 4


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    frame().to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", stream=True)
    assert table.n_samples == 500
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_sources_of_a_folder_must_agree(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "0.parquet")
    frame().rename(columns={"x1": "other"}).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(InputError, match="must have the same columns"):
        read_table(tmp_path)


def test_parquet_kinds_and_the_index(tmp_path: Path) -> None:
    data = frame(50)
    data["whole"] = np.random.default_rng(0).integers(0, 1000, 50)
    data["half"] = data["x1"].astype(np.float32) ** 2
    data.index = pd.Index(range(100, 150), name="id")
    data.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").names == tuple(data.columns)
    data.assign(city="Oslo").to_parquet(tmp_path / "words.parquet")
    with pytest.raises(InputError, match=r"Every column must hold numbers. Not so: 'city'"):
        read_table(tmp_path / "words.parquet")
    assert read_table(tmp_path / "words.parquet", columns=list(data.columns)).n_variables == 6
