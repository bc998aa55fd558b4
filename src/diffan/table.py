"""A checked numeric table: named columns, standardised values, what was noticed on the way in."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from diffan.errors import FitError, InputError
from diffan.frames import as_frame, checked_names, numeric_values
from diffan.rows import CHUNK_CELLS, release
from diffan.table_checks import (
    OUTLIER,
    TRANSFORMS,
    Transform,
    Transforming,
    check_choice,
    check_collinear,
    check_constant,
    check_shape,
    farthest,
    listed,
    logarithms_taken,
    may_need_logarithms,
    noticed,
    other_transform,
    sampled_rows,
    selected_columns,
)

FloatArray = npt.NDArray[np.float64]
Missing = Literal["error", "drop"]

HEAD_ROWS = 4096  # that decide on the canonical order of the columns


@dataclass(frozen=True, eq=False)
class Table:
    """Rows are samples, columns are variables; `values` is standardised and read-only.

    Standardised values are rounded to single precision, so that a change of units, which moves only the
    last bits of a double, gives the same table to the last bit.
    """

    values: FloatArray  # [n, d], mean 0 and standard deviation 1 per column
    names: tuple[str, ...]
    center: FloatArray  # [d], column means before standardising
    scale: FloatArray  # [d], column standard deviations before standardising
    transform: Transform = "none"
    standardized: bool = True
    warnings: tuple[str, ...] = field(default=())
    untried_logarithms: bool = False  # all columns are positive, and nothing was tried on them

    @property
    def raw_scale(self) -> FloatArray | None:
        """What divides `values` into standard deviations where they keep the user's units; None where they are."""
        return None if self.standardized else self.scale

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        missing: Missing = "error",
        transform: Transforming = "none",
        standardize: bool = True,
        columns: Sequence[str] | None = None,
        rows: int | None = None,
        seed: int = 0,
    ) -> Table:
        """Check a DataFrame, array, polars / pyarrow table or file and standardise a copy of it.

        `missing="drop"` drops rows with missing cells instead of refusing them; `transform` is applied to
        every column first: "log" for positive heavy-tailed columns, "rank" for normal scores of ranks, "auto" for
        logarithms where all columns are positive, some have extreme outliers and logarithms leave none. `columns` are the
        names of those to use, `rows` the size of a random sample of rows, drawn by `seed`.
        """
        if isinstance(data, Table):
            return data
        check_choice("missing", missing, ("error", "drop"))
        check_choice("transform", transform, TRANSFORMS)
        frame, notes = as_frame(data)
        names = checked_names(frame)
        if columns is not None:
            where = selected_columns(names, columns)
            frame, names = frame.iloc[:, where], tuple(names[j] for j in where)
        chosen = sampled_rows(len(frame), rows, seed)
        if chosen is not None:
            frame = frame.iloc[chosen]
        raw = numeric_values(frame, names)
        raw, dropped = _without_missing(raw, names, missing)
        check_shape(*raw.shape)
        check_constant(raw.min(axis=0), raw.max(axis=0), names)
        untried = transform == "none" and bool((raw > 0).all())
        if transform == "auto":
            raw, transform, why = _tamed(raw, names)
            notes += why
        else:
            raw = _transformed(raw, names, transform)
        center, scale = _moments(raw)
        values = (raw - center) / scale
        correlation = values.T @ values / len(values)
        check_collinear(correlation, len(values), names)
        largest = np.abs(values).max(axis=0)
        notes += dropped + noticed(values, len(values), correlation, largest, names, transform, untried)
        if not standardize:
            values = values * scale
        values = values.astype(np.float32).astype(np.float64)
        values.setflags(write=False)
        return cls(values, names, center, scale, transform, standardize, tuple(notes), untried)

    @property
    def other_transform(self) -> str:
        """Advice to try a transform that was not."""
        return other_transform(self.transform, self.untried_logarithms)

    @property
    def n_samples(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_variables(self) -> int:
        return int(self.values.shape[1])

    def select(self, positions: Sequence[int]) -> Table:
        """The table with only these columns, in this order."""
        where = list(positions)
        values = self.values[:, where]
        values.setflags(write=False)
        names = tuple(self.names[i] for i in where)
        return replace(self, values=values, names=names, center=self.center[where], scale=self.scale[where])

    def rows(self, which: npt.NDArray[np.intp]) -> Table:
        """The table with only these rows, which may repeat, standardised again if it was."""
        part = self.values[which]
        center, scale = part.mean(axis=0), part.std(axis=0)
        constant = [self.names[j] for j in np.flatnonzero(scale < 1e-12)]
        if constant:
            raise FitError(f"Constant in a part of the rows: {listed(constant)}; drop these columns.")
        unit = self.scale if self.standardized else np.ones_like(scale)
        values = (part - center) / scale if self.standardized else part
        values = values.astype(np.float32).astype(np.float64)
        values.setflags(write=False)
        return replace(
            self, values=values, center=self.center + center * unit, scale=scale * unit, warnings=()
        )

    def canonical_positions(self) -> list[int]:
        """Column positions in an order that depends on the columns' contents alone.

        Ranks come first because a change of units leaves them alone; values only break ties.
        """
        by_rank = rank_digests(self.values[:HEAD_ROWS])
        counts = Counter(by_rank)

        def key(j: int) -> tuple[bytes, bytes, bytes]:
            if counts[by_rank[j]] == 1:
                return by_rank[j], b"", b""
            rounded = np.round(self.values[:, j], 4) + 0.0
            return by_rank[j], digest_of(rounded), digest_of(self.values[:, j])

        return sorted(range(self.n_variables), key=key)

    def fingerprint(self) -> str:
        """A digest of names and values, to tell one table from another."""
        digest = hashlib.sha256("\x1f".join(self.names).encode())
        step = max(1, CHUNK_CELLS // self.n_variables)
        for first in range(0, self.n_samples, step):
            digest.update(np.ascontiguousarray(self.values[first : first + step]).tobytes())
            release(self.values)
        return digest.hexdigest()

    def in_memory(self, most_rows: int) -> Table:
        """A table for a method that holds its rows in memory: this one."""
        return self


def rank_digests(head: npt.NDArray[np.floating]) -> list[bytes]:
    """For each column a digest of the ranks of its values."""
    ranks = (np.unique(head[:, j], return_inverse=True)[1] for j in range(head.shape[1]))
    return [digest_of(one.astype(np.int64)) for one in ranks]


def digest_of(array: npt.NDArray[Any]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


def _without_missing(
    raw: FloatArray, names: tuple[str, ...], missing: Missing
) -> tuple[FloatArray, list[str]]:
    bad = ~np.isfinite(raw)
    if not bad.any():
        return raw, []
    rows = bad.any(axis=1)
    if missing == "drop":
        return raw[~rows], [
            f"{int(rows.sum())} of {len(raw)} rows had missing or infinite cells and were dropped."
        ]
    columns = [names[j] for j in np.flatnonzero(bad.any(axis=0))]
    kinds = {"missing (NaN)": int(np.isnan(raw).sum()), "infinite": int(np.isinf(raw).sum())}
    found = " and ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    raise InputError(
        f"Every cell must be a finite number. Found {found} cells in {listed(columns)}; fill them, or drop the "
        f"{int(rows.sum())} rows concerned with missing='drop'."
    )


def _tamed(raw: FloatArray, names: tuple[str, ...]) -> tuple[FloatArray, Transform, list[str]]:
    """Logarithms where they are called for and help, with the sentence that says so; else the columns as they are."""
    before = _farthest(raw)
    if may_need_logarithms(raw.min(axis=0), before):
        logarithms = np.log(raw)
        if (_farthest(logarithms) <= OUTLIER).all():
            return logarithms, "log", [logarithms_taken(before, names)]
    return raw, "none", []


def _farthest(raw: FloatArray) -> FloatArray:
    return farthest(raw.min(axis=0), raw.max(axis=0), *_moments(raw))


def _transformed(raw: FloatArray, names: tuple[str, ...], transform: Transform) -> FloatArray:
    if transform == "none":
        return raw
    if transform == "log":
        low = [names[j] for j in np.flatnonzero(raw.min(axis=0) <= 0)]
        if low:
            raise InputError(
                f"transform='log' needs positive columns. Not so: {listed(low)}; use transform='rank'."
            )
        return np.log(raw)
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores: FloatArray = ndtri(rankdata(raw, axis=0) / (len(raw) + 1))
    return scores


def _moments(raw: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations, safe from overflow for columns of any magnitude."""
    largest = np.abs(raw).max(axis=0)
    unit = raw / largest
    center = unit.mean(axis=0)
    return center * largest, (unit - center).std(axis=0) * largest
