"""From the Gram matrix to the equations of single regressions, and from their solution to numbers per term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.additive.criterion import Solution, System, own_entries
from diffan.additive.gram import SplineGram, function_index

Array = npt.NDArray[np.float64]

RIDGE = 1e-7  # of a column's variance, so that equal columns do not stop the Cholesky factorisation
MOST_COEFFICIENTS = 1 / 3  # of the rows; a regression with more gets a real ridge and its tests are weak


def basis_size(n_rows: float, n_parents: int, n_basis: int) -> int:
    """CAM's rule: with fewer than 3 rows a coefficient the basis shrinks to ceil(n / 3p), here down to the line."""
    if n_parents and n_rows / n_parents < 3 * n_basis:
        return max(2, int(np.ceil(n_rows / (3 * n_parents))))
    return n_basis


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the functions of one regression lie in the Gram matrix and how they are penalised."""

    target: int  # index of the target's straight function, -1 for a constant column
    index: npt.NDArray[np.intp]  # [terms, width], -1 for slots without a function
    penalties: Array  # [terms, width], scaled to a median of 1 within each term
    scale: Array  # [terms]: the smoothing parameter in the column's own units is the scaled one over this
    ridge: float

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        return self.index >= 0


def layout(gram: SplineGram, target: int, parents: Sequence[int]) -> Layout:
    """The functions that the parents get, given how many rows there are for them."""
    width = min(basis_size(gram.n_rows, len(parents), gram.width + 1) - 1, gram.width)
    index = function_index(gram, parents, width)
    raw = np.zeros(index.shape)
    for term, parent in enumerate(parents):
        own = gram.bases[parent].penalties[:width]
        raw[term, : len(own)] = own
    scale = np.array([np.median(row[row > 0]) if (row > 0).any() else 1.0 for row in raw])
    n_coefficients = int((index >= 0).sum())
    crowded = n_coefficients > MOST_COEFFICIENTS * gram.n_rows
    ridge = n_coefficients / gram.n_rows if crowded else RIDGE
    return Layout(int(function_index(gram, [target], 1)[0, 0]), index, raw / scale[:, None], scale, ridge)


def numpy_system(gram: SplineGram, place: Layout) -> System:
    """One regression as a batch of one, with LAPACK's Cholesky inverse."""
    flat = place.index.ravel()
    known = flat >= 0
    correlations = gram.matrix[np.ix_(flat, flat)]
    target = gram.matrix[place.target, flat] if place.target >= 0 else np.zeros(len(flat))
    if not known.all():
        correlations[~known] = 0.0
        correlations[:, ~known] = 0.0
        correlations[~known, ~known] = 1.0
        target = np.where(known, target, 0.0)
    return System(
        xp=np,
        correlations=correlations[None],
        target=target[None],
        penalties=place.penalties[None],
        valid=place.valid.astype(np.float64)[None],
        ridge=np.array([place.ridge]),
        identity=np.eye(len(place.index)),
        n_rows=gram.n_rows,
        inverse=_lapack_inverse,
    )


def _lapack_inverse(correlations: Array, diagonal: Array) -> Array:
    from scipy.linalg.lapack import dpotrf, dpotri

    out = np.empty_like(correlations)
    if not out.size:
        return out
    for inverse, matrix, extra in zip(out, correlations, diagonal, strict=True):
        np.copyto(inverse, matrix)
        inverse.ravel()[:: len(matrix) + 1] += extra
        # Symmetric, so LAPACK may read the C-ordered rows as Fortran columns and work in place.
        factor, failed = dpotrf(inverse.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            half, failed = dpotri(factor, lower=0, overwrite_c=1)
            full = np.triu(half)
            np.add(full, np.triu(full, 1).T, out=inverse)
        if failed:  # not positive definite to working precision: drop the directions below it
            values, vectors = np.linalg.eigh(matrix + np.diag(extra))
            seen = values > 1e-9 * values[-1]
            inverse[...] = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return out


def summarise(system: System, at: Solution, loose: Solution) -> dict[str, Any]:
    """What a fit keeps of a solved batch, as [B, terms, ...] arrays of the system's own kind.

    `loose` is the solution with hardly any penalty. Its residual variance is what the tests compare with: after
    smoothing parameters have been chosen on the same rows, the fit's own is too small (by 2.4 % with 19 idle terms and
    1000 rows), because the choice spends degrees of freedom that the edf does not count.
    """
    batch, terms, width = system.penalties.shape
    each = list(range(terms))
    # [terms, B, width, width] -> [B, terms, width, width]
    blocks = at.inverse.reshape(batch, terms, width, terms, width)[:, each, :, each, :].swapaxes(0, 1)
    shrunk = own_entries(at.inverse) * at.diagonal  # the diagonal of I - F, where F = A^-1 C
    twice = at.diagonal * ((at.inverse * at.inverse) @ at.diagonal[..., None])[..., 0]

    def by_term(x: Any) -> Any:
        return (system.valid * x.reshape(batch, terms, width)).sum(-1)

    edf = by_term(1 - shrunk)
    return {
        "coefficients": at.coefficients.reshape(batch, terms, width),
        "blocks": blocks * system.valid[..., :, None] * system.valid[..., None, :],
        "edf": edf,
        "rank": 2 * edf - by_term(1 - 2 * shrunk + twice),  # 2 tr F - tr FF
        "rss": at.rss,
        "score": at.score,
        "noise": loose.rss,
        "noise_edf": loose.edf,
    }
