"""A table on disk that stages use like any other: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.table import HEAD_ROWS, Table, digest_of, rank_digests
from diffan.table_checks import Transform

FloatArray = npt.NDArray[np.float64]


class MappedTable(Table):
    """A table whose standardised rows lie on disk, columns in canonical order and rows in random order.

    `values` is the memory map itself once the columns are selected in their canonical order, as every run does
    first; in any other order it is a copy in memory.
    """

    stored: npt.NDArray[np.float32]
    where: tuple[int, ...]  # the stored column of each of the table's columns

    def __init__(
        self,
        stored: npt.NDArray[np.float32],
        where: Sequence[int],
        names: Sequence[str],
        center: FloatArray,
        scale: FloatArray,
        transform: Transform,
        warnings: Sequence[str],
        untried_logarithms: bool = False,
    ) -> None:
        for name, value in {
            "stored": stored,
            "where": tuple(where),
            "names": tuple(names),
            "center": center,
            "scale": scale,
            "transform": transform,
            "standardized": True,
            "warnings": tuple(warnings),
            "untried_logarithms": untried_logarithms,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def values(self) -> Any:
        if self.where == tuple(range(self.stored.shape[1])):
            return self.stored
        return np.ascontiguousarray(self.stored[:, list(self.where)])

    @property
    def n_samples(self) -> int:
        return int(self.stored.shape[0])

    @property
    def n_variables(self) -> int:
        return len(self.where)

    def canonical_positions(self) -> list[int]:
        """Columns as they are stored: by a digest of the ranks, then of the values, of a random sample of rows."""
        return sorted(range(self.n_variables), key=self.where.__getitem__)

    def select(self, positions: Sequence[int]) -> MappedTable:
        """The table with only these columns, in this order; nothing is copied yet."""
        at = list(positions)
        where, names = [self.where[j] for j in at], [self.names[j] for j in at]
        return MappedTable(
            self.stored,
            where,
            names,
            self.center[at],
            self.scale[at],
            self.transform,
            self.warnings,
            self.untried_logarithms,
        )

    def rows(self, which: npt.NDArray[np.intp]) -> Table:
        """These rows, which may repeat, as an ordinary table, standardised again."""
        values = self.stored[which][:, list(self.where)].astype(np.float64)
        part = Table(values, self.names, self.center, self.scale, self.transform, True)
        return part.rows(np.arange(len(which)))

    def in_memory(self, most_rows: int) -> Table:
        """The first rows, which are a random sample, as an ordinary table."""
        values = self.stored[:most_rows][:, list(self.where)].astype(np.float64)
        values.setflags(write=False)
        return Table(
            values,
            self.names,
            self.center,
            self.scale,
            self.transform,
            True,
            self.warnings,
            self.untried_logarithms,
        )


def canonical_order(sample: npt.NDArray[np.float32]) -> list[int]:
    """The columns in an order that depends on their contents in a random sample of rows alone."""
    head = sample[:HEAD_ROWS]
    ranks = rank_digests(head)
    rounded = [digest_of(np.round(head[:, j].astype(np.float64), 4) + 0.0) for j in range(head.shape[1])]
    return sorted(range(head.shape[1]), key=lambda j: (ranks[j], rounded[j], digest_of(head[:, j])))
