"""Rows written to disk in random order, with bounded memory, as one memory-mapped array.

Rows are dealt at random into piles small enough to hold; each pile is then shuffled in memory and written out. After
that any stretch of consecutive rows is a fair sample of the table, so mini-batches and subsamples are read from disk
in a few long pieces instead of thousands of scattered ones.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.rows import CHUNK_CELLS

Float32 = npt.NDArray[np.float32]
PILE_BYTES = 2**26  # of one pile, three times which is held while it is shuffled
MOST_PILES = 256  # files open at once; only tables beyond 16 GiB make larger piles
SEED = 20230501  # the row order is a matter of storage: the same for every run on every table of a size


def shuffled_blocks(
    chunks: Iterable[Float32], n_rows: int, n_columns: int, folder: str | None
) -> Iterator[Float32]:
    """The rows of all chunks in random order, a pile at a time; piles wait in unnamed files in `folder`."""
    rng = np.random.default_rng(SEED)
    n_piles = min(MOST_PILES, max(1, -(-n_rows * n_columns * 4 // PILE_BYTES)))
    with ExitStack() as opened:
        piles = [opened.enter_context(scratch_file(folder)) for _ in range(n_piles)]
        for chunk in chunks:
            dealt = rng.integers(n_piles, size=len(chunk))
            order = np.argsort(dealt, kind="stable")
            ends = np.cumsum(np.bincount(dealt, minlength=n_piles))
            sorted_rows = chunk[order]
            for pile, last, count in zip(piles, ends, np.diff(ends, prepend=0), strict=True):
                pile.write(np.ascontiguousarray(sorted_rows[last - count : last]).data)
        for pile in piles:
            size = pile.tell()
            pile.seek(0)
            rows = np.frombuffer(bytearray(pile.read(size)), dtype=np.float32).reshape(-1, n_columns)
            pile.close()
            yield rows[rng.permutation(len(rows))]


def scratch_file(folder: str | None = None) -> IO[bytes]:
    """A file without a name, so that nothing of it remains however this process ends."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        where = folder or tempfile.gettempdir()
        raise InputError(
            f"Cannot write to {where!r}: {error.strerror}; choose another folder with cache=, or set TMPDIR."
        ) from None


@contextmanager
def storing() -> Iterator[None]:
    """Within the block a disk that is full or fails ends in a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot store the table: {error.strerror or error}; make room, or choose another folder with cache= or "
            "TMPDIR."
        ) from None


class MapWriter:
    """Appends rows to a .npy file of single precision, and digests them on the way."""

    def __init__(self, stream: IO[bytes], n_rows: int, n_columns: int) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, n_columns)}
        np.lib.format.write_array_header_1_0(stream, header)

    def write(self, rows: Float32) -> None:
        block = np.ascontiguousarray(rows, dtype="<f4")
        self._stream.write(block.data)
        self._digest.update(block.data)

    def finish(self) -> str:
        """The digest of all that was written."""
        self._stream.flush()
        return self._digest.hexdigest()


def mapped(stream: IO[bytes]) -> np.memmap[Any, Any]:
    """The array in a .npy file that is open for reading, as a read-only memory map."""
    stream.seek(0)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    return np.memmap(stream, dtype=dtype, mode="r", offset=stream.tell(), shape=shape)


def digest_of_map(path: Path, values: npt.NDArray[Any]) -> str:
    """The digest that `MapWriter.finish` gave when the file was written, if it is still the same."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        stream.seek(os.path.getsize(path) - values.nbytes)
        while block := stream.read(4 * CHUNK_CELLS):
            digest.update(block)
    return digest.hexdigest()
