"""The part of a large source that is wanted, read a chunk at a time: measured first, then standardised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.moments import Moments
from diffan.rows import CHUNK_CELLS, RowSource
from diffan.table import Missing
from diffan.table_checks import Transform, listed

FloatArray = npt.NDArray[np.float64]


@dataclass(eq=False)
class WantedRows:
    """What is wanted of a source: some columns, some rows, without missing cells, transformed."""

    source: RowSource
    where: list[int]
    chosen: npt.NDArray[np.int64] | None
    missing: Missing
    transform: Transform

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.source.names[j] for j in self.where)

    @property
    def n_cells(self) -> int:
        rows = self.source.n_rows if self.chosen is None else len(self.chosen)
        return rows * len(self.where)

    def whole(self) -> FloatArray:
        """All of it in memory, missing cells and all."""
        parts = list(self.raw_chunks())
        return np.concatenate(parts) if parts else np.empty((0, len(self.where)))

    def raw_chunks(self) -> Iterator[FloatArray]:
        first = 0
        for chunk in self.source.chunks(self.where, max(1, CHUNK_CELLS // max(1, len(self.where)))):
            last = first + len(chunk)
            if self.chosen is not None:
                a, b = np.searchsorted(self.chosen, (first, last))
                chunk = chunk[self.chosen[a:b] - first]
            if len(chunk):
                yield chunk
            first = last

    def measured(self) -> tuple[Moments, int]:
        """The moments of the usable rows, and how many rows were not usable."""
        d = len(self.where)
        kinds = {"missing (NaN)": np.zeros(d, dtype=np.int64), "infinite": np.zeros(d, dtype=np.int64)}
        moments, dropped, low = Moments(d), 0, np.full(d, np.inf)
        for chunk in self.raw_chunks():
            usable = np.isfinite(chunk).all(axis=1)
            if not usable.all():
                kinds["missing (NaN)"] += np.isnan(chunk).sum(axis=0)
                kinds["infinite"] += np.isinf(chunk).sum(axis=0)
                dropped += int((~usable).sum())
                chunk = chunk[usable]
            if not len(chunk):
                continue
            low = np.minimum(low, chunk.min(axis=0))
            if self.transform == "log":
                chunk = np.log(np.maximum(chunk, np.finfo(float).tiny))
            moments.add(chunk)
        if dropped and self.missing == "error":
            columns = [self.names[j] for j in np.flatnonzero(sum(kinds.values()))]
            found = " and ".join(f"{int(c.sum())} {kind}" for kind, c in kinds.items() if c.any())
            raise InputError(
                f"Every cell must be a finite number. Found {found} cells in {listed(columns)}; fill them, or drop "
                f"the {dropped} rows concerned with missing='drop'."
            )
        if self.transform == "log" and (low <= 0).any():
            names = [self.names[j] for j in np.flatnonzero(low <= 0)]
            raise InputError(f"transform='log' needs positive columns. Not so: {listed(names)}.")
        return moments, dropped

    def standardised(self, moments: Moments) -> Iterator[npt.NDArray[np.float32]]:
        for chunk in self.raw_chunks():
            chunk = chunk[np.isfinite(chunk).all(axis=1)]
            if self.transform == "log":
                chunk = np.log(chunk)
            yield ((chunk - moments.center) / moments.scale).astype(np.float32)
