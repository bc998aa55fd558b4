"""Where rows come from when a table need not fit into memory: arrays, memory maps and Parquet files.

A source is read in chunks, as often as needed. `release` gives the pages of a memory map back after a pass over it:
they stay in the system's cache, but no longer count as this process's memory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.parquet import ENDINGS as PARQUET_ENDINGS
from diffan.parquet import ParquetRows, parquet_files

FloatArray = npt.NDArray[np.float64]
CHUNK_CELLS = 2**21  # of the source held at once: 16 MiB of doubles
MOST_COLUMNS = 10_000  # a correlation matrix of as many takes 0.8 GB


class RowSource(Protocol):
    """Named numeric columns, readable from the first row to the last more than once."""

    names: tuple[str, ...]
    n_rows: int

    def chunks(self, columns: Sequence[int], chunk_rows: int) -> Iterator[FloatArray]:
        """These columns as blocks [<= chunk_rows, columns] of float64; missing cells are NaN."""
        ...


class ArrayRows:
    """An [n, d] array of numbers, in memory or mapped from a file."""

    def __init__(self, array: npt.NDArray[Any], names: Sequence[str] | None = None) -> None:
        if array.ndim != 2:
            raise InputError(
                f"A table must have two dimensions. Got {array.ndim} with shape {array.shape}; "
                "reshape your data to rows of samples and columns of variables."
            )
        if array.dtype.kind not in "buif":
            what = (
                "Complex data not supported" if array.dtype.kind == "c" else "Every column must hold numbers"
            )
            raise InputError(f"{what}. Got an array of {array.dtype} instead; convert it to numbers first.")
        if array.size == 0:  # also one that claims countless rows of nothing
            raise InputError(f"A table must hold numbers. Got an empty array of shape {array.shape} instead.")
        if array.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"A table may have at most {MOST_COLUMNS:,} columns. Got {array.shape[1]:,}; select some."
            )
        self._array = array
        self.names = tuple(names) if names is not None else tuple(f"x{j}" for j in range(array.shape[1]))
        self.n_rows = len(array)

    def chunks(self, columns: Sequence[int], chunk_rows: int) -> Iterator[FloatArray]:
        everything = list(columns) == list(range(self._array.shape[1]))
        for first in range(0, self.n_rows, chunk_rows):
            block = self._array[first : first + chunk_rows]
            yield np.array(block if everything else block[:, list(columns)], dtype=np.float64)
            release(self._array)


def open_rows(path: str | os.PathLike[str]) -> RowSource | None:
    """The rows of a .npy file, a Parquet file or a folder of those; None for other files."""
    file = Path(path)
    try:
        if file.is_dir():
            return ParquetRows(parquet_files(file))
        if not file.exists():
            raise InputError(f"No file at {_shortened(file)}; check the path.")
        if not file.is_file():
            raise InputError(f"{_shortened(file)} is neither a file nor a folder; name a table file.")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"Cannot read {_shortened(file)}; check the path.") from None
    ending = file.suffix.lower()
    if ending in PARQUET_ENDINGS:
        return ParquetRows([file])
    return ArrayRows(_mapped_npy(file)) if ending == ".npy" else None


def _shortened(file: Path) -> str:
    name = str(file)
    return repr(name if len(name) <= 300 else f"{name[:150]}...{name[-100:]}")


def _mapped_npy(file: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # whatever numpy's reader makes of damaged bytes
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(
            f"{file.name!r} is not an array of numbers that numpy.save wrote, or is damaged ({reason}); write it again."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{file.name!r} is an archive of arrays, not one array; save one with numpy.save.")
    return array


def release(values: npt.NDArray[Any]) -> None:
    """Give back the pages of a read-only memory map; does nothing to any other array.

    A map that its owner may have written to is left alone: dropping its pages could undo the writing.
    """
    mapped = getattr(values, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and getattr(values, "mode", "") == "r" and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def collected(source: RowSource, columns: Sequence[int], chunk_rows: int) -> FloatArray:
    """All rows of these columns in memory, [n, columns]."""
    parts = list(source.chunks(columns, chunk_rows))
    return np.concatenate(parts) if parts else np.empty((0, len(columns)))
