"""Loaders: a local folder, the cache, a local file server, and the real files where they exist."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from diffan import datasets
from diffan.errors import DiffanError, InputError

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_real_files = pytest.mark.skipif(
    not REAL.is_dir(), reason="the real data files are not beside the checkout"
)

SMALL = {"sachs/data.csv": "b,a\n1,2\n3,4.5\n", "sachs/truth.csv": ",a,b\na,0,1\nb,0,0\n"}


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of its own for each test, no data folder and no proxy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DIFFAN_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache" / "diffan"


@pytest.fixture
def small_files(tmp_path, monkeypatch) -> Path:
    """A tiny data release with checksums to match."""
    folder = tmp_path / "release"
    for name, text in SMALL.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
        monkeypatch.setitem(datasets.SHA256, name, hashlib.sha256(text.encode()).hexdigest())
    return folder


class _Recorder:
    """A Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.bytes = 0

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[_Recorder]:
        self.stages.append((label, total))
        yield self

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.bytes += steps


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_download_is_checked_cached_and_shown(small_files, cache):
    shown = _Recorder()
    with serving(small_files) as address:
        frame, dag = datasets.load_sachs(base_url=address, progress=shown)
    assert list(frame.columns) == ["b", "a"]
    assert frame.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert dag.names == ("b", "a")  # in the order of the data's columns
    assert dag.edges == [("a", "b")]
    assert files_in(cache) == set(SMALL)
    assert shown.stages == [(f"download {name}", len(text)) for name, text in SMALL.items()]
    assert shown.bytes == sum(len(text) for text in SMALL.values())

    again, same = datasets.load_sachs(base_url=address)  # the server is gone: this comes from the cache
    assert again.equals(frame)
    assert same == dag


def test_data_folder_comes_first(small_files, cache, monkeypatch):
    monkeypatch.setenv("DIFFAN_DATA", str(small_files))
    frame, _ = datasets.load_sachs(base_url="http://127.0.0.1:1")
    assert frame.shape == (2, 2)
    assert not cache.exists()


def test_home_cache_without_xdg(small_files, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with serving(small_files) as address:
        datasets.load_sachs(base_url=address)
    assert files_in(tmp_path / "home" / ".cache" / "diffan") == set(SMALL)


def test_wrong_checksum_is_refused_and_leaves_nothing(small_files, cache):
    (small_files / "sachs/data.csv").write_text("b,a\n9,9\n")
    with (
        serving(small_files) as address,
        pytest.raises(datasets.DownloadError, match=r"not the published sachs/data.csv: its SHA-256 is"),
    ):
        datasets.load_sachs(base_url=address)
    assert files_in(cache) == set()


def test_offline_says_which_file_to_put_where(cache):
    with pytest.raises(datasets.DownloadError) as caught:
        datasets.load_syntren(3, base_url="http://127.0.0.1:1/base/")
    message = str(caught.value)
    assert message.startswith("Could not download http://127.0.0.1:1/base/syntren/data3.csv (")
    assert f"Put the file at {cache / 'syntren/data3.csv'}, or set DIFFAN_DATA to a folder" in message
    assert isinstance(caught.value, DiffanError)
    assert files_in(cache) == set()


def test_missing_on_the_server_and_bad_addresses_get_the_same_advice(tmp_path, cache):
    (tmp_path / "empty").mkdir()
    with (
        serving(tmp_path / "empty") as address,
        pytest.raises(datasets.DownloadError, match=r"404.*Put the file at"),
    ):
        datasets.load_sachs(base_url=address)
    with pytest.raises(datasets.DownloadError, match="Put the file at"):
        datasets.load_sachs(base_url="not an address")
    assert files_in(cache) == set()


def test_an_interrupted_download_leaves_nothing(small_files, cache):
    class Interrupted(_Recorder):
        def advance(self, steps: int = 1, note: str = "") -> None:
            raise KeyboardInterrupt

    with serving(small_files) as address, pytest.raises(KeyboardInterrupt):
        datasets.load_sachs(base_url=address, progress=Interrupted())
    assert files_in(cache) == set()


def test_files_that_do_not_belong_together(small_files, monkeypatch):
    (small_files / "sachs/truth.csv").write_text(",a,c\na,0,1\nc,0,0\n")
    monkeypatch.setenv("DIFFAN_DATA", str(small_files))
    with pytest.raises(InputError, match=r"columns of sachs/data.csv must be the nodes of sachs/truth.csv"):
        datasets.load_sachs()


@pytest.mark.parametrize("index", [0, 11, "1", True, 1.5])
def test_syntren_index_is_1_to_10(index):
    with pytest.raises(InputError, match="'index' parameter must be a whole number from 1 to 10"):
        datasets.load_syntren(index)


# ---- the real files -----------------------------------------------------------------------


@needs_real_files
def test_checksums_are_those_of_the_real_files():
    found = {name: hashlib.sha256((REAL / name).read_bytes()).hexdigest() for name in datasets.SHA256}
    assert found == datasets.SHA256


@needs_real_files
def test_sachs(monkeypatch):
    monkeypatch.setenv("DIFFAN_DATA", str(REAL))
    frame, dag = datasets.load_sachs()
    assert frame.shape == (853, 11)
    assert dag.n_edges == 17
    assert list(frame.columns) == list(dag.names)
    assert "Mek" in dag.children("Raf")
    assert frame["Raf"].iloc[0] == 26.4


@needs_real_files
def test_syntren_over_the_wire(cache):
    with serving(REAL) as address:
        sets = [datasets.load_syntren(index, base_url=address) for index in range(1, 11)]
    assert {frame.shape for frame, _ in sets} == {(500, 20)}
    assert [dag.n_edges for _, dag in sets] == [24, 22, 26, 34, 23, 22, 20, 19, 23, 22]
    assert len(files_in(cache)) == 20
