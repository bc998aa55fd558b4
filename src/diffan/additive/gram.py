"""The Gram matrix of all columns' spline functions, from one pass over the rows.

After it no cost depends on the number of rows: every additive regression of one column on others is a block of it.
Memory is the matrix itself, (width * d)^2 numbers, and one chunk of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.additive.splines import Array, ColumnBasis, column_basis
from diffan.errors import InputError
from diffan.rows import release

SAMPLE_ROWS = 5000  # rows that place the knots; the Gram matrix itself uses every row
SAMPLE_AT_ONCE = 100  # scattered rows of a memory map: the system maps up to 2 MiB around each
CHUNK_BYTES = 2**27
FLAT = 1e-9  # share of a function's variance below which it adds nothing to the column's others

Rows = npt.NDArray[np.floating] | Iterable[npt.NDArray[np.floating]]


@dataclass(frozen=True, eq=False)
class SplineGram:
    """Means of products of all columns' functions; within a column they are centred and orthonormal."""

    matrix: Array  # [q, q], q = sum of widths
    bases: tuple[ColumnBasis, ...]  # one per column, evaluating to the functions of `matrix`
    offsets: npt.NDArray[np.intp]  # [d + 1]: the functions of column j are offsets[j] to offsets[j + 1]
    n_rows: float  # the sum of the weights

    @property
    def n_columns(self) -> int:
        return len(self.bases)

    @property
    def width(self) -> int:
        """The most functions any column has."""
        return int(np.diff(self.offsets).max(initial=1))

    def restricted(self, columns: Sequence[int]) -> SplineGram:
        """The Gram matrix of these columns alone."""
        functions = np.concatenate([np.arange(self.offsets[j], self.offsets[j + 1]) for j in columns])
        bases = tuple(self.bases[j] for j in columns)
        return SplineGram(self.matrix[np.ix_(functions, functions)], bases, _offsets(bases), self.n_rows)

    @classmethod
    def from_values(
        cls,
        values: Rows,
        *,
        n_basis: int = 10,
        chunk_rows: int | None = None,
        weights: npt.NDArray[np.floating] | None = None,
        device: str = "cpu",
    ) -> SplineGram:
        """Build from an [n, d] array or memory map, or from a list of such chunks of rows.

        `n_basis` counts the constant, as mgcv's k does, so a column gets n_basis - 1 functions. `weights` are per row,
        such as the counts of a bootstrap sample. On a CUDA `device` the functions and products are computed there.
        """
        if n_basis < 2:
            raise InputError(f"The 'n_basis' parameter must be 2 or more. Got {n_basis!r} instead.")
        rows = _Rows(values, chunk_rows, weights, n_basis - 1)
        bases = tuple(column_basis(column, n_basis - 1) for column in rows.sample().T)
        if device == "cpu":
            products, sums = _accumulate(rows, bases)
        else:
            from diffan.additive.batched import accumulate

            products, sums = accumulate(rows.chunks(), bases, device)
        return _orthonormal(products, sums, bases, rows.total_weight)


def function_index(gram: SplineGram, columns: Sequence[int], width: int) -> npt.NDArray[np.intp]:
    """Where the first `width` functions of each column lie in the matrix: [m, width], -1 where it has fewer."""
    start = gram.offsets[list(columns)]
    have = gram.offsets[np.asarray(columns, dtype=np.intp) + 1] - start
    place = np.arange(width)
    return np.where(place < have[:, None], start[:, None] + place, -1)


class _Rows:
    """The table as chunks of rows with their weights, readable more than once."""

    def __init__(
        self, values: Rows, chunk_rows: int | None, weights: npt.NDArray[np.floating] | None, width: int
    ) -> None:
        self.parts = [values] if isinstance(values, np.ndarray) else list(values)
        if not self.parts or any(
            part.ndim != 2 or part.shape[1] != self.parts[0].shape[1] for part in self.parts
        ):
            raise InputError(
                "A Gram matrix needs an [n, d] array, or chunks of rows that all have the same d columns."
            )
        self.n = sum(len(part) for part in self.parts)
        d = self.parts[0].shape[1]
        if chunk_rows is not None and chunk_rows < 1:
            raise InputError(f"The 'chunk_rows' parameter must be 1 or more. Got {chunk_rows!r} instead.")
        self.chunk_rows = chunk_rows or max(256, CHUNK_BYTES // (8 * max(1, d * width)))
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.weights is not None and (self.weights.shape != (self.n,) or not (self.weights >= 0).all()):
            raise InputError(f"The 'weights' parameter must be {self.n} numbers of 0 or more, one per row.")
        self.total_weight = float(self.n if self.weights is None else self.weights.sum())
        if self.n < 2 or self.total_weight <= 0:
            raise InputError(f"A Gram matrix needs at least 2 rows of positive weight. Got {self.n} instead.")

    def sample(self) -> Array:
        """Evenly spaced rows, enough to place the knots; rows of weight 0 do not count."""
        used = None if self.weights is None else np.flatnonzero(self.weights)
        count = self.n if used is None else len(used)
        picked = np.linspace(0, count - 1, min(count, SAMPLE_ROWS)).astype(np.intp)
        picked = picked if used is None else used[picked]
        starts = np.cumsum([0, *(len(part) for part in self.parts)])
        cuts = np.searchsorted(picked, starts)
        found = []
        for part, start, first, last in zip(self.parts, starts[:-1], cuts[:-1], cuts[1:], strict=True):
            for a in range(first, last, SAMPLE_AT_ONCE):
                found.append(np.array(part[picked[a : min(a + SAMPLE_AT_ONCE, last)] - start], np.float64))
                release(part)
        return np.concatenate(found)

    def chunks(self) -> Iterator[tuple[npt.NDArray[np.floating], Array | None]]:
        row = 0
        for part in self.parts:
            for first in range(0, len(part), self.chunk_rows):
                chunk = part[first : first + self.chunk_rows]
                yield chunk, None if self.weights is None else self.weights[row : row + len(chunk)]
                row += len(chunk)
                release(part)


def _accumulate(rows: _Rows, bases: Sequence[ColumnBasis]) -> tuple[Array, Array]:
    """Sums of products [q, q] and of values [q] of all functions over the rows."""
    from scipy.linalg.blas import dsyrk

    offsets = _offsets(bases)
    q = int(offsets[-1])
    products, sums = np.zeros((q, q), order="F"), np.zeros(q)
    for chunk, weights in rows.chunks() if q else ():
        functions = np.empty((q, len(chunk)))
        for j, basis in enumerate(bases):
            functions[offsets[j] : offsets[j + 1]] = basis.evaluate(chunk[:, j]).T
        if weights is None:
            sums += functions.sum(axis=1)
        else:
            sums += functions @ weights
            functions *= np.sqrt(weights)
        products = dsyrk(1.0, functions.T, beta=1.0, c=products, trans=1, lower=1, overwrite_c=1)
    _mirror(products)
    return products, sums


def _mirror(matrix: Array, block: int = 1024) -> None:
    """Copy the lower triangle onto the upper one, in place."""
    for first in range(0, len(matrix), block):
        last = min(first + block, len(matrix))
        square = matrix[first:last, first:last]
        square[...] = np.tril(square) + np.tril(square, -1).T
        matrix[first:last, last:] = matrix[last:, first:last].T


def _orthonormal(matrix: Array, sums: Array, bases: Sequence[ColumnBasis], n_rows: float) -> SplineGram:
    """Centre every function and turn each column's into an orthonormal set with a diagonal penalty.

    `matrix` holds the sums of products and is worked on in place: it is most of the memory there is.
    """
    means = sums / n_rows
    matrix /= n_rows
    for row, mean in zip(matrix, means, strict=True):
        row -= mean * means
    offsets = _offsets(bases)
    turned: list[ColumnBasis] = []
    kept: list[npt.NDArray[np.intp]] = []
    turns: list[Array] = []
    for basis, first, last in zip(bases, offsets[:-1], offsets[1:], strict=True):
        turn, penalties = _diagonalise(matrix[first:last, first:last], basis.penalties)
        turned.append(basis.transformed(turn, penalties, means[first:last]))
        kept.append(np.arange(first, first + turn.shape[1]))
        turns.append(turn)
        matrix[first : first + turn.shape[1]] = turn.T @ matrix[first:last]
    for turn, where, first, last in zip(turns, kept, offsets[:-1], offsets[1:], strict=True):
        matrix[:, where] = matrix[:, first:last] @ turn
    left = np.concatenate(kept)
    if len(left) < len(matrix):
        matrix = matrix[np.ix_(left, left)]
    return SplineGram(matrix, tuple(turned), _offsets(turned), n_rows)


def _diagonalise(covariance: Array, penalties: Array) -> tuple[Array, Array]:
    """T with T' covariance T = I and T' diag(penalties) T diagonal, the line first; flat directions are dropped."""
    width = len(penalties)
    if width == 0 or covariance[0, 0] <= 0:
        return np.empty((width, 0)), np.empty(0)
    line = np.zeros(width)
    line[0] = 1 / np.sqrt(covariance[0, 0])
    slopes = covariance[0, 1:] / covariance[0, 0]
    rest = covariance[1:, 1:] - np.outer(slopes, covariance[0, 1:])
    variance, directions = np.linalg.eigh(rest)
    seen = variance > FLAT * max(1.0, variance.max(initial=0.0))
    white = directions[:, seen] / np.sqrt(variance[seen])
    rough, turn = np.linalg.eigh(white.T @ (penalties[1:, None] * white))
    curves = white @ turn
    full = np.vstack([-slopes @ curves, curves])  # a curve less its straight part
    return np.column_stack([line, full]), np.append(0.0, np.maximum(rough, 1e-12))


def _offsets(bases: Sequence[ColumnBasis]) -> npt.NDArray[np.intp]:
    return np.cumsum([0, *(basis.width for basis in bases)], dtype=np.intp)
