"""Every file reader against damaged, mutated and hostile files: our own errors come out, and nothing else."""

from __future__ import annotations

import io
import json
import os
import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import diffan
from diffan.checkpoint import Checkpoint, checksum, read_record
from diffan.discovery import Discovery
from diffan.errors import DiffanError, InputError
from diffan.runfolder import load, load_dag, save
from diffan.streaming import read_table
from diffan.table import Table

RELAXED = settings(
    max_examples=int(os.environ.get("DIFFAN_FUZZ", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def frame(n: int = 30, d: int = 3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, d)), columns=[f"v{j}" for j in range(d)])


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good file of every kind."""
    folder = tmp_path_factory.mktemp("originals")
    frame().to_csv(folder / "t.csv", index=False)
    frame().to_parquet(folder / "t.parquet")
    frame().to_parquet(folder / "z.parquet", compression="zstd")
    np.save(folder / "t.npy", frame().to_numpy())
    result = diffan.discover(
        frame(60), width=8, depth=1, max_steps=20, device="cpu", refine=False, edges="additive"
    )
    save(result, folder / "run")
    with Checkpoint(folder / "checkpoint", {"table": "t"}) as checkpoint:
        checkpoint.stage("order").save({"order": [0, 1]}, {"a": np.arange(6.0)})
    return folder


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[str, float, bytes]]:
    """A few edits at relative places: bytes replaced, put in, cut out, or the end cut off."""
    kinds = st.sampled_from(["replace", "insert", "delete", "truncate", "repeat"])
    edit = st.tuples(kinds, st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8))
    return draw(st.lists(edit, min_size=1, max_size=4))


def damaged(content: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for kind, place, piece in edits:
        at = int(place * len(content))
        if kind == "replace":
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "insert":
            content = content[:at] + piece + content[at:]
        elif kind == "delete":
            content = content[:at] + content[at + 8 * len(piece) :]
        elif kind == "repeat":
            content = content[:at] + content[at : at + 64] * 20 + content[at:]
        else:
            content = content[:at]
    return content


@contextmanager
def one_sentence() -> Iterator[None]:
    """Our own errors are fine, if they are short; anything else fails the test."""
    said = ""
    try:
        yield
    except DiffanError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 2000


def read_and_forgive(path: Path, **options: Any) -> None:
    """Either a sound table or our own error."""
    with one_sentence(), warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        table = read_table(path, **options)
        assert np.isfinite(table.values).all()


# ---- tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "z.parquet", "t.npy"])
@pytest.mark.parametrize("stream", [True, "auto"])
def test_damaged_tables(name: str, stream: Any, originals: Path, tmp_path: Path) -> None:
    good = (originals / name).read_bytes()

    @RELAXED
    @given(damages())
    def check(edits: list[tuple[str, float, bytes]]) -> None:
        (tmp_path / name).write_bytes(damaged(good, edits))
        read_and_forgive(tmp_path / name, stream=stream)
        read_and_forgive(tmp_path / name, stream=stream, missing="drop")

    check()


@RELAXED
@given(st.sampled_from([".csv", ".tsv", ".txt", ".parquet", ".npy"]), st.binary(max_size=300))
def test_any_bytes_as_a_table(tmp_path: Path, ending: str, content: bytes) -> None:
    (tmp_path / f"t{ending}").write_bytes(content)
    read_and_forgive(tmp_path / f"t{ending}")
    if ending == ".parquet":
        (tmp_path / "p.parquet").write_bytes(b"PAR1" + content + b"PAR1")
        read_and_forgive(tmp_path / "p.parquet")
    if ending == ".npy":
        (tmp_path / "p.npy").write_bytes(b"\x93NUMPY\x01\x00" + content)
        read_and_forgive(tmp_path / "p.npy")


@RELAXED
@given(st.text(alphabet='0123456789.,;|\t\n\r "-eEnaINf\x1f\u2028', max_size=200))
def test_any_text_as_a_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n" * 3 + text, encoding="utf-8", newline="")
    read_and_forgive(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    read_and_forgive(tmp_path / "t.csv", stream=True)


@RELAXED
@given(
    st.tuples(st.integers(-3, 2**62), st.integers(-3, 2**62)),
    st.sampled_from(["<f8", "|O", "<U4", "<c16", "|V9", "<f2", "<M8[s]", "nonsense", "[('a', '<f8')]"]),
)
def test_headers_of_arrays_that_lie(tmp_path: Path, shape: tuple[int, int], kind: str) -> None:
    described = kind if kind.startswith("[") else repr(kind)
    header = f"{{'descr': {described}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(800)
    (tmp_path / "t.npy").write_bytes(content)
    read_and_forgive(tmp_path / "t.npy")
    read_and_forgive(tmp_path / "t.npy", stream=True)


def test_archives_and_pickles_are_refused_unread(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", a=np.zeros((20, 2)))
    os.rename(tmp_path / "t.npz", tmp_path / "t.npy")
    with pytest.raises(InputError, match="archive of arrays"):
        Table.read(tmp_path / "t.npy")
    np.save(tmp_path / "o.npy", np.array([[{"a": 1}, 2]] * 20, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects in dtype"):
        Table.read(tmp_path / "o.npy")


def test_huge_fields_and_endless_headers(tmp_path: Path) -> None:
    for content in (
        "a,b\n" + "1,2\n" * 20 + "9" * 3_000_000 + ",2\n",
        "a,b\n" + "1,2\n" * 20 + '"' + "9," * 500_000,
        '"' + "a" * 3_000_000 + '",b\n' + "1,2\n" * 20,
        ",".join(f"c{j}" for j in range(11_000)) + "\n" + ",".join(["1"] * 11_000) + "\n",
        "," * 20_000 + "\n",
        "a" * (2**24 + 5),
    ):
        (tmp_path / "t.csv").write_text(content)
        read_and_forgive(tmp_path / "t.csv")


def test_a_parquet_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    rows = 20_000_000
    constant = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.zeros(rows, np.int8)), pyarrow.array([1.5])
    )
    parquet.write_table(
        pyarrow.table({"a": constant, "b": constant}), tmp_path / "t.parquet", compression="zstd"
    )
    assert (tmp_path / "t.parquet").stat().st_size < 250_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="would become 320,000,000 in memory, over 1000 times as much"):
        read_table(tmp_path / "t.parquet")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_things_that_are_not_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    os.symlink("/dev/zero", tmp_path / "zero.npy")
    os.symlink(tmp_path / "loop.csv", tmp_path / "loop.csv")
    os.symlink("/nonexistent", tmp_path / "dangling.parquet")
    for name in ("pipe.csv", "zero.npy", "loop.csv", "dangling.parquet"):
        with pytest.raises(InputError):
            read_table(tmp_path / name)
    for path in ("\0.csv", "a" * 5000 + ".csv", "", "/proc/self/mem.csv"):
        with pytest.raises(InputError):
            read_table(path)


# ---- run folders ----------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def load_and_forgive(path: Path, out: Path) -> None:
    with one_sentence():
        result = load(path)
        assert isinstance(result, Discovery)
        assert result.summary()
        save(result, out)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here] + [path for key, inner in items for path in paths(inner, (*here, key))]


def test_runs_with_anything_in_any_place(originals: Path, tmp_path: Path) -> None:
    text = (originals / "run" / "graph.json").read_text()
    places = [path for path in paths(json.loads(text)) if path]

    @settings(RELAXED, max_examples=RELAXED.max_examples)
    @given(st.sampled_from(places), json_values)
    def check(place: tuple[Any, ...], value: Any) -> None:
        content = json.loads(text)
        inner = content
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "graph.json").write_text(json.dumps(content))
        load_and_forgive(tmp_path / "run", tmp_path / "out")
        del inner[place[-1]]
        (tmp_path / "run" / "graph.json").write_text(json.dumps(content))
        load_and_forgive(tmp_path / "run", tmp_path / "out")

    check()


@pytest.mark.parametrize("name", ["graph.json", "model.safetensors", "adjacency.csv"])
def test_damaged_run_folders(name: str, originals: Path, tmp_path: Path) -> None:
    good = (originals / "run" / name).read_bytes()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "graph.json").write_bytes((originals / "run" / "graph.json").read_bytes())

    @RELAXED
    @given(damages())
    def check(edits: list[tuple[str, float, bytes]]) -> None:
        (tmp_path / "run" / name).write_bytes(damaged(good, edits))
        load_and_forgive(tmp_path / "run", tmp_path / "out")
        with one_sentence():
            load_dag(tmp_path / "run" / name if name.endswith("csv") else tmp_path / "run")

    check()


def test_deep_json_wide_json_and_large_promises(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    good = {"format": "diffan-run", "schema": 1, "method": "m", "order": [], "edges": []}
    tests = {"cutoff": 0.1, "source": [], "target": [], "p_value": [], "measures": {}, "warnings": []}
    many = [f"x{j}" for j in range(30_000)]
    for content in (
        "[" * 1_000_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"format": "diffan-run", "schema": ' + "9" * 10_000 + "}",
        json.dumps({**good, "names": many, "order": many, "tests": tests}),
    ):
        (run / "graph.json").write_text(content)
        with pytest.raises(InputError) as caught:
            load(run)
        assert len(str(caught.value)) < 1000


def test_path_tricks_stay_names(tmp_path: Path) -> None:
    """Column names that look like paths or markup end up inside files, never as files."""
    names = ["../../outside", "/etc/passwd", "a\nb", "<script>", "\u202e.csv", "nul\u0000byte"]
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 6)), columns=names)
    diffan.discover(data, "random").save(tmp_path / "deep" / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]
    assert load(tmp_path / "deep" / "run").names == tuple(names)


def test_saving_through_links_leaves_what_they_point_to_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("keep me")
    (tmp_path / "run").mkdir()
    for name in ("graph.json", "adjacency.csv", "report.html"):
        os.symlink(precious, tmp_path / "run" / name)
    diffan.discover(frame(), "random").save(tmp_path / "run")
    assert precious.read_text() == "keep me"
    assert load(tmp_path / "run").method == "random"


# ---- checkpoints ----------------------------------------------------------------------------


def test_damaged_checkpoints(originals: Path, tmp_path: Path) -> None:
    files = {
        name: (originals / "checkpoint" / name).read_bytes()
        for name in ("order.a.json", "order.a.safetensors")
    }

    @RELAXED
    @given(st.sampled_from(sorted(files)), damages())
    def check(name: str, edits: list[tuple[str, float, bytes]]) -> None:
        for other, content in files.items():
            (tmp_path / other).write_bytes(content)
        spoilt = damaged(files[name], edits)
        (tmp_path / name).write_bytes(spoilt)
        with Checkpoint(tmp_path, {"table": "t"}) as checkpoint:
            saved = checkpoint.stage("order").load()
        if spoilt != files[name] and name.endswith("safetensors"):
            assert saved is None
        if saved is not None:
            np.testing.assert_array_equal(saved.arrays["a"], np.arange(6.0))

    check()


@RELAXED
@given(json_values)
def test_checkpoint_records_with_anything_in_them(tmp_path: Path, value: Any) -> None:
    for content in (value, {"format": "diffan-checkpoint", "record": value, "schema": 1, "number": value}):
        text = json.dumps(content)
        if isinstance(content, dict):
            content = json.loads(text)
            text = json.dumps(content | {"checksum": checksum(content)})
        (tmp_path / "order.a.json").write_text(text)
        assert read_record(tmp_path / "order.a.json") is None


def test_streams_are_not_mistaken_for_paths() -> None:
    with pytest.raises(InputError, match="A table must be"):
        Table.read(io.BytesIO(b"a,b"))
