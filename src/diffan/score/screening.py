r"""Which variables can matter to which: the generalised precision of smooth functions of the columns.

Every column is expanded in a few smooth functions, orthonormal over the rows. With G their Gram matrix and
$\Omega = G^{-1}$, the block of columns i and j, scaled to $\Omega_{ii}^{-1/2} \Omega_{ij} \Omega_{jj}^{-1/2}$, holds the
partial correlations of their functions given everyone else's. Its squared norm ranks the members of a Markov blanket;
times the rows left it is about chi-square with k^2 degrees of freedom when nothing is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.additive.gram import SplineGram, function_index
from diffan.local_settings import LocalSettings

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
ENOUGH_ROWS = 5  # rows per function below which the Gram matrix is shrunk towards independence
LEAST_RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Screen:
    """The pairs worth looking at, without direction, and how strongly each depends."""

    neighbours: BoolArray  # [d, d], symmetric
    strength: FloatArray  # [d, d], symmetric: squared norm of the scaled precision block
    ridge: float  # what was added to the Gram matrix; 0 when there were rows enough

    @property
    def n_pairs(self) -> int:
        return int(self.neighbours.sum()) // 2

    def summary(self) -> dict[str, float]:
        """Its size in numbers, for the record."""
        counts = self.neighbours.sum(axis=1)
        return {
            "pairs": float(self.n_pairs),
            "mean_candidates": float(counts.mean()),
            "most_candidates": float(counts.max(initial=0)),
            "ridge": self.ridge,
        }


def screen(gram: SplineGram, settings: LocalSettings, device: torch.device) -> Screen:
    """Candidate pairs: the strongest of either end that chance would not give, plus a few by marginal dependence."""
    d = gram.n_columns
    index = function_index(gram, range(d), settings.screen_functions)  # [d, k], -1 where there is none
    matrix, there = _gathered(gram, index, device)
    width = index.shape[1]
    n_functions = int((index >= 0).sum())
    crowded = gram.n_rows < ENOUGH_ROWS * n_functions
    ridge = max(LEAST_RIDGE, n_functions / gram.n_rows if crowded else 0.0)
    partial = _blocks(_precision(matrix, ridge), width)
    marginal = _blocks(matrix, width)
    left = max(gram.n_rows - n_functions, gram.n_rows / (1 + n_functions / gram.n_rows) ** 2 / 2)
    freedom = np.outer(there, there).astype(np.float64)
    kept = _strongest(partial, settings.screen_top) & _unlikely(partial * left, freedom, settings, d)
    net = _strongest(marginal, settings.screen_marginal)
    kept |= net & _unlikely(marginal * gram.n_rows, freedom, settings, d)
    kept = _capped(kept | kept.T, partial, settings.screen_most)
    return Screen(kept, partial, ridge if crowded else 0.0)


def _gathered(
    gram: SplineGram, index: npt.NDArray[np.intp], device: torch.device
) -> tuple[Tensor, npt.NDArray[np.intp]]:
    """The Gram matrix of the chosen functions, [d k, d k], unit on the diagonal where a column has fewer than k."""
    flat = index.ravel()
    known = flat >= 0
    rows = np.where(known, flat, 0)
    matrix = torch.as_tensor(gram.matrix[np.ix_(rows, rows)], device=device)
    absent = torch.as_tensor(~known, device=device)
    matrix[absent] = 0.0
    matrix[:, absent] = 0.0
    matrix.diagonal().masked_fill_(absent, 1.0)
    return matrix, (index >= 0).sum(axis=1)


def _precision(matrix: Tensor, ridge: float) -> Tensor:
    """The inverse of the shrunken Gram matrix; duplicates of columns get a larger ridge until it exists."""
    eye = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    while True:
        factor, failed = torch.linalg.cholesky_ex(matrix + ridge * eye)
        if not bool(failed):
            inverse: Tensor = torch.cholesky_inverse(factor)
            return inverse
        ridge *= 10


def _blocks(matrix: Tensor, width: int) -> FloatArray:
    """Squared norms of the blocks after each column's own block is scaled to the identity: [d, d], 0 on the diagonal."""
    d = len(matrix) // width
    blocks = matrix.view(d, width, d, width)
    own = torch.stack([blocks[j, :, j] for j in range(d)])  # [d, k, k]
    values, vectors = torch.linalg.eigh(own)
    half = vectors * values.clamp(min=1e-12).rsqrt()[:, None, :] @ vectors.mT  # [d, k, k]
    left = torch.bmm(half, blocks.reshape(d, width, d * width)).view(d, width, d, width)
    both = torch.einsum("ikjl,jlm->ikjm", left, half)
    norms: FloatArray = both.square().sum(dim=(1, 3)).cpu().numpy()
    norms = (norms + norms.T) / 2
    np.fill_diagonal(norms, 0.0)
    return norms


def _strongest(strength: FloatArray, count: int) -> BoolArray:
    """For each column the `count` strongest others: [d, d], row i holds i's."""
    d = len(strength)
    kept = np.zeros((d, d), dtype=np.bool_)
    count = min(count, d - 1)
    if count > 0:
        best = np.argpartition(-strength, count - 1, axis=1)[:, :count]
        np.put_along_axis(kept, best, True, axis=1)
    return kept & (strength > 0)


def _unlikely(statistic: FloatArray, freedom: FloatArray, settings: LocalSettings, d: int) -> BoolArray:
    """Pairs above what chance gives in `screen_level` pairs of a column."""
    from scipy.special import chdtri

    level = min(0.5, settings.screen_level / max(d - 1, 1))
    found: BoolArray = statistic > chdtri(np.maximum(freedom, 1.0), level)
    return found


def _capped(kept: BoolArray, strength: FloatArray, most: int) -> BoolArray:
    """No column keeps more than `most`; a pair goes when either end has to let it go."""
    ranked = np.where(kept, strength, -1.0)
    return kept & _strongest(ranked, most) & _strongest(ranked, most).T
