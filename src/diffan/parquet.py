"""Parquet files as chunks of rows: one file or a folder of them, never more than a chunk in memory.

A few kilobytes of Parquet can stand for terabytes of repeated cells, so what a file promises is compared with its size
before anything is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError

ENDINGS = (".parquet", ".pq")
MOST_EXPANSION = 1000  # decoded bytes for one byte of the file; random doubles have about 1
ALWAYS_FINE = 2**28  # decoded bytes that no limit applies to
_MAGIC = b"PAR1"
_READ_BUFFER = 2**20  # bytes; without it a whole column of a row group is held at once


class ParquetRows:
    """The rows of one file or of several with the same columns, in the order of their names."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = list(files)
        schemas = []
        self.n_rows = 0
        for file in self._files:
            schema, rows = _checked(file)
            schemas.append(schema)
            self.n_rows += rows
        self.names = _column_names(schemas[0])
        self._kinds = {name: schemas[0].field(name).type for name in self.names}
        for file, schema in zip(self._files[1:], schemas[1:], strict=True):
            if _column_names(schema) != self.names:
                raise InputError(
                    f"All files of a folder must have the same columns. {file.name!r} differs from "
                    f"{self._files[0].name!r}; write them again or name one file."
                )

    def chunks(self, columns: Sequence[int], chunk_rows: int) -> Iterator[npt.NDArray[np.float64]]:
        """Blocks of at most `chunk_rows` rows as float64, missing cells as NaN."""
        import pyarrow

        wanted = [self.names[j] for j in columns]
        self._require_numbers(wanted)
        for file in self._files:
            with _damage_named(file), _opened(file) as opened:
                batches = opened.iter_batches(batch_size=chunk_rows, columns=wanted, use_threads=False)
                for batch in batches:
                    block = np.empty((batch.num_rows, len(wanted)))
                    for k, name in enumerate(wanted):
                        column = batch.column(name).cast(pyarrow.float64())
                        block[:, k] = column.to_numpy(zero_copy_only=False)
                    yield block

    def _require_numbers(self, wanted: Sequence[str]) -> None:
        from pyarrow import types

        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        refused = [name for name in wanted if not any(test(self._kinds[name]) for test in tests)]
        if refused:
            listed = ", ".join(f"{name!r} ({self._kinds[name]})" for name in refused[:8])
            raise InputError(f"Every column must hold numbers. Not so: {listed}; drop or encode them.")


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files directly inside a folder, by name."""
    try:
        found = sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in ENDINGS and not file.name.startswith(".")
        )
    except OSError as error:
        raise InputError(f"Cannot read {str(folder)!r}: {error.strerror}.") from None
    if not found:
        raise InputError(
            f"{str(folder)!r} is a folder without Parquet files; name the table file inside it, or a folder of them."
        )
    return found


class _damage_named:
    """Whatever the decoder says of a damaged file becomes one sentence with its name."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, InputError):
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise InputError(
                f"{self._file.name!r} is a damaged Parquet file ({reason}); write it again."
            ) from None


def _opened(file: Path) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(file, buffer_size=_READ_BUFFER, pre_buffer=False)


def _checked(file: Path) -> tuple[Any, int]:
    """The schema and the number of rows, once the file is what it says and promises no more than it may."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError(
            "Reading Parquet needs the pyarrow package: pip install 'diffan[parquet]', or save the table as CSV."
        ) from None
    try:
        with file.open("rb") as stream:
            magic = stream.read(4)
        size = file.stat().st_size
    except OSError as error:
        raise InputError(f"Cannot read {str(file)!r}: {error.strerror}.") from None
    if magic != _MAGIC:
        raise InputError(
            f"{file.name!r} is not a Parquet file, whatever its name says; save it again or rename it."
        )
    with _damage_named(file), _opened(file) as opened:
        schema, rows, width = opened.schema_arrow, opened.metadata.num_rows, opened.metadata.num_columns
        decoded = max(
            8 * rows * width,
            sum(opened.metadata.row_group(g).total_byte_size for g in range(opened.metadata.num_row_groups)),
        )
        if rows < 0 or decoded > max(ALWAYS_FINE, MOST_EXPANSION * size):
            raise InputError(
                f"{file.name!r} has {size:,} bytes and would become {decoded:,} in memory, over {MOST_EXPANSION} "
                "times as much; drop its constant columns and write it again."
            )
        return schema, rows


def _column_names(schema: Any) -> tuple[str, ...]:
    """All columns but those in which pandas keeps its row index."""
    hidden: set[str] = set()
    try:
        stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        hidden = {name for name in stored.get("index_columns", []) if isinstance(name, str)}
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass  # the columns are there whatever a writer noted beside them
    names = tuple(name for name in schema.names if name not in hidden)
    repeated = sorted({name for name in names if schema.names.count(name) > 1})
    if repeated:
        listed = ", ".join(map(repr, repeated[:8]))
        raise InputError(f"Column names must be unique. Repeated: {listed}; rename them.")
    return names
