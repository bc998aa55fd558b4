"""Tables larger than memory: converted once into a memory map of standardised rows, then used like any other.

Two passes over the source, three when logarithms are tried: the first takes means, standard deviations and
ranges, the last writes standardised single precision, rows in random order and columns in their canonical one. Files
without a name hold it all unless a cache folder is given, so nothing is left behind.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.files import text_frames, write_text, writing
from diffan.frames import checked_names, numeric_values
from diffan.mapped import MappedTable, canonical_order
from diffan.moments import Moments
from diffan.rows import CHUNK_CELLS, ArrayRows, RowSource, open_rows
from diffan.shuffling import MapWriter, digest_of_map, mapped, scratch_file, shuffled_blocks, storing
from diffan.table import Missing, Table
from diffan.table_checks import (
    OUTLIER,
    TRANSFORMS,
    Transform,
    Transforming,
    check_choice,
    check_collinear,
    check_constant,
    check_shape,
    logarithms_taken,
    may_need_logarithms,
    noticed,
    sampled_rows,
    selected_columns,
)
from diffan.wanted_rows import WantedRows

FloatArray = npt.NDArray[np.float64]
Stream = Literal["auto", True, False]
STREAM_ABOVE = 20_000_000  # cells; in memory a table takes about 40 bytes a cell while it is checked
TEXT_BYTES = 10  # of a number in a CSV file, roughly
NOTICE_ROWS = 20_000  # that are looked at for discrete columns
_FORMAT = 2


def read_table(
    data: Any,
    *,
    missing: Missing = "error",
    transform: Transforming = "none",
    standardize: bool = True,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    seed: int = 0,
    stream: Stream = "auto",
    cache: str | os.PathLike[str] | None = None,
) -> Table:
    """A checked table, in memory if it is small and on disk if it is not.

    `stream` decides for itself by the number of cells, or is told. `cache` is a folder that keeps the converted
    table for the next run on the same file; without it, and for arrays, a temporary file is used.
    """
    if stream not in ("auto", True, False):
        raise InputError(f"The 'stream' parameter must be 'auto', True or False. Got {stream!r} instead.")
    source = None if stream is False or isinstance(data, Table) else _source(data, stream is True)
    if source is None:
        return Table.read(
            data,
            missing=missing,
            transform=transform,
            standardize=standardize,
            columns=columns,
            rows=rows,
            seed=seed,
        )
    check_choice("missing", missing, ("error", "drop"))
    check_choice("transform", transform, TRANSFORMS)
    where = list(range(len(source.names))) if columns is None else selected_columns(source.names, columns)
    chosen = sampled_rows(source.n_rows, rows, seed)
    view = WantedRows(source, where, chosen, missing, "none" if transform == "auto" else transform)
    if stream == "auto" and view.n_cells <= STREAM_ABOVE:
        import pandas as pd

        frame = pd.DataFrame(view.whole(), columns=list(view.names), copy=False)
        return Table.read(frame, missing=missing, transform=transform, standardize=standardize)
    if transform == "rank" or not standardize:
        option = "transform='rank'" if transform == "rank" else "standardize=False"
        raise InputError(
            f"{option} needs the table in memory, and one of {view.n_cells:,} cells was to be read from disk; "
            "sample rows with rows=."
        )
    wanted = {"columns": view.names, "rows": rows, "seed": seed, "missing": missing, "transform": transform}
    folder = None if cache is None else _folder(cache)
    entry = None if folder is None else _cache_entry(folder, data, wanted)
    return _converted(view, folder, entry, tame=transform == "auto")


def _source(data: Any, forced: bool) -> RowSource | None:
    """The rows of a file or array that is, or may be, too large for memory; None when it is small or another kind."""
    if isinstance(data, np.ndarray):
        large = forced or data.size > STREAM_ABOVE
        return ArrayRows(data) if large and data.ndim == 2 and data.dtype.kind in "buif" else None
    if not isinstance(data, (str, os.PathLike)):
        return None
    source = open_rows(data)
    if source is None and (
        forced or (os.path.isfile(data) and os.path.getsize(data) > TEXT_BYTES * STREAM_ABOVE)
    ):
        return _text_rows(data)
    return source


def _text_rows(path: str | os.PathLike[str]) -> RowSource:
    """A table of text parsed once into a nameless file of doubles, since parsing is what takes the time."""
    names: tuple[str, ...] = ()
    n_rows = 0
    with scratch_file() as stream:
        for frame, _ in text_frames(path, CHUNK_CELLS):
            names = checked_names(frame)
            with storing():
                stream.write(numeric_values(frame, names).data)
            n_rows += len(frame)
        with storing():
            stream.flush()
        check_shape(n_rows, len(names))
        return ArrayRows(np.memmap(stream, dtype=np.float64, mode="r", shape=(n_rows, len(names))), names)


@dataclass(frozen=True)
class _CacheEntry:
    array: Path
    record: Path


def _cache_entry(folder: Path, data: Any, wanted: dict[str, Any]) -> _CacheEntry | None:
    """Where the conversion of this file with these wishes is kept; None for data that is not a file."""
    if not isinstance(data, (str, os.PathLike)):
        return None
    path = Path(data)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    facts = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = hashlib.sha256(json.dumps([_FORMAT, facts, wanted], sort_keys=True).encode()).hexdigest()[:24]
    return _CacheEntry(folder / f"table-{key}.npy", folder / f"table-{key}.json")


def _folder(path: str | os.PathLike[str]) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"Cannot write to {str(path)!r}: {error.strerror}; choose a folder you can write to."
        ) from None
    return Path(path)


def _converted(
    view: WantedRows, folder: Path | None, entry: _CacheEntry | None, *, tame: bool
) -> MappedTable:
    """The table as it was kept, or converted; `folder` is where files without a name are made.

    With `tame`, logarithms are taken where they are called for and help.
    """
    if entry is not None:
        found = _from_cache(entry, view)
        if found is not None:
            return found
    moments, dropped = view.measured()
    check_shape(moments.count, len(view.names))
    check_constant(moments.low, moments.high, view.names)
    notes = []
    before = moments.farthest
    untried = not tame and view.transform == "none" and bool((moments.low > 0).all())
    if tame and may_need_logarithms(moments.low, before):
        in_logarithms = replace(view, transform="log")
        measured, _ = in_logarithms.measured()
        if (measured.farthest <= OUTLIER).all():
            view, moments = in_logarithms, measured
            notes.append(logarithms_taken(before, view.names))
    if dropped:
        total = moments.count + dropped
        notes.append(f"{dropped} of {total} rows had missing or infinite cells and were dropped.")
    scratch = None if folder is None else str(folder)
    with storing():
        if entry is None:
            with scratch_file(scratch) as stream:
                return _write(view, moments, stream, scratch, notes, untried)[0]
        with writing(entry.array) as temporary, temporary.open("w+b") as stream:
            table, digest = _write(view, moments, stream, scratch, notes, untried)
    record = {
        "where": list(table.where),
        "center": moments.center.tolist(),
        "scale": moments.scale.tolist(),
        "transform": table.transform,
        "warnings": list(table.warnings),
        "untried_logarithms": table.untried_logarithms,
        "sha256": digest,
    }
    write_text(entry.record, json.dumps(record))
    return table


def _write(
    view: WantedRows, moments: Moments, stream: Any, folder: str | None, notes: list[str], untried: bool
) -> tuple[MappedTable, str]:
    d = len(view.names)
    writer = MapWriter(stream, moments.count, d)
    largest, products = np.zeros(d), np.zeros((d, d))
    order: list[int] | None = None
    for block in shuffled_blocks(view.standardised(moments), moments.count, d, folder):
        if order is None:
            order = canonical_order(block)
        block = block[:, order]
        largest = np.maximum(largest, np.abs(block).max(axis=0, initial=0.0))
        step = max(1, CHUNK_CELLS // d)
        for first in range(0, len(block), step):
            part = block[first : first + step].astype(np.float64)
            products += part.T @ part
        writer.write(block)
    digest = writer.finish()
    stored = mapped(stream)
    places = order or list(range(d))
    names = tuple(view.names[j] for j in places)
    size = np.sqrt(np.maximum(np.diag(products), np.finfo(float).tiny))
    correlation = products / size / size[:, None]
    check_collinear(correlation, moments.count, names)
    head = np.asarray(stored[:NOTICE_ROWS])
    notes = notes + noticed(head, moments.count, correlation, largest, names, view.transform, untried)
    where = [int(j) for j in np.argsort(places)]
    table = MappedTable(
        stored, where, view.names, moments.center, moments.scale, view.transform, notes, untried
    )
    return table, digest


def _from_cache(entry: _CacheEntry, view: WantedRows) -> MappedTable | None:
    """The table as it was converted before; None when it is not there or no longer what was written."""
    try:
        record = json.loads(entry.record.read_text(encoding="utf-8"))
        with entry.array.open("rb") as stream:
            stored = mapped(stream)
        d = len(view.names)
        center, scale = np.array(record["center"], dtype=float), np.array(record["scale"], dtype=float)
        whole = stored.ndim == 2 and stored.shape[1] == d == len(center) == len(scale)
        if (
            not whole
            or sorted(record["where"]) != list(range(d))
            or digest_of_map(entry.array, stored) != record["sha256"]
        ):
            return None
        warnings = [str(sentence) for sentence in record["warnings"]]
        if record["transform"] not in get_args(Transform):
            return None
        untried = bool(record["untried_logarithms"])
        return MappedTable(
            stored, record["where"], view.names, center, scale, record["transform"], warnings, untried
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, EOFError):
        return None
