r"""L(j | P) from the spline Gram matrix alone: batches of penalised additive regressions, whatever the number of rows.

The smoothing is one of a few strengths for all terms of a regression, the best by generalised cross-validation; a
search compares many thousand regressions, and the exact smoothing of single terms changes none of its decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from diffan.additive.gram import SplineGram

Parents = frozenset[int]
STRENGTHS = (1e-4, 1e-2, 1.0)  # choice: of the penalty, scaled to a median of 1 within each column
RIDGE = 1e-7
BATCH_CELLS = 2**27  # matrix cells held at once, 1 GiB in double precision
ROUND_TO = 2  # regressions whose numbers of parents round up alike share a batch


class GramScores:
    """Twice the negative Gaussian log-likelihood of nodes given parents, flexibility paid for by GCV."""

    def __init__(self, gram: SplineGram, device: torch.device) -> None:
        self._matrix = torch.as_tensor(gram.matrix, device=device)
        self._n = gram.n_rows
        widths = np.diff(gram.offsets)
        self._width = int(widths.max(initial=1))
        slots = np.arange(self._width)
        there = slots < widths[:, None]
        self._index = torch.as_tensor(np.where(there, gram.offsets[:-1, None] + slots, 0), device=device)
        self._there = torch.as_tensor(there, device=device)
        penalties = np.zeros(there.shape)
        for j, basis in enumerate(gram.bases):
            rough = basis.penalties[basis.penalties > 0]
            penalties[j, : basis.width] = basis.penalties / (np.median(rough) if len(rough) else 1.0)
        self._penalties = torch.as_tensor(penalties, device=device)

    def __call__(self, fits: Sequence[tuple[int, Parents]]) -> list[float]:
        """L of every (node, parents)."""
        found = [0.0] * len(fits)
        by_size: dict[int, list[int]] = {}
        for k, (_, parents) in enumerate(fits):
            if parents:
                by_size.setdefault(-(-len(parents) // ROUND_TO) * ROUND_TO, []).append(k)
        for size, places in by_size.items():
            at_once = max(1, BATCH_CELLS // (3 * (size * self._width) ** 2))
            for first in range(0, len(places), at_once):
                some = places[first : first + at_once]
                for k, value in zip(some, self._batch([fits[k] for k in some], size), strict=True):
                    found[k] = value
        return found

    def _batch(self, fits: Sequence[tuple[int, Parents]], size: int) -> Iterable[float]:
        device = self._matrix.device
        padded = np.full((len(fits), size), -1)
        for row, (_, parents) in zip(padded, fits, strict=True):
            row[: len(parents)] = sorted(parents)
        columns = torch.as_tensor(padded, device=device)
        known = self._there[columns.clamp(min=0)] & (columns >= 0)[:, :, None]  # [b, P, w]
        index = self._index[columns.clamp(min=0)].flatten(1)  # [b, q]
        known, penalty = known.flatten(1), self._penalties[columns.clamp(min=0)].flatten(1)
        nodes = torch.tensor([node for node, _ in fits], device=device)
        target = self._index[nodes, 0]  # the straight function: the column itself
        products = self._matrix[index[:, :, None], index[:, None, :]]
        products = products * (known[:, :, None] & known[:, None, :])
        moment = self._matrix[index, target[:, None]] * known  # [b, q]
        best = torch.full((len(fits),), np.inf, dtype=products.dtype, device=device)
        for strength in STRENGTHS:
            best = torch.minimum(best, self._gcv(products, moment, strength * penalty + RIDGE, known))
        found: list[float] = best.tolist()
        return found

    def _gcv(self, products: Tensor, moment: Tensor, penalty: Tensor, known: Tensor) -> Tensor:
        shifted = products.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(torch.where(known, penalty, 1.0))
        factor, _ = torch.linalg.cholesky_ex(shifted)
        beta = torch.cholesky_solve(moment[:, :, None], factor)[:, :, 0]
        inverse = torch.cholesky_inverse(factor)
        edf = (inverse * products).sum(dim=(1, 2))
        explained = (beta * (2 * moment - torch.bmm(products, beta[:, :, None])[:, :, 0])).sum(dim=1)
        left = (1 - explained).clamp(min=1e-12)
        spare = (1 - (1 + edf) / self._n).clamp(min=1e-3)
        score = self._n * (torch.log(left) - 2 * torch.log(spare) + 2 * np.log1p(-1 / self._n))
        return torch.where(torch.isfinite(score), score, torch.full_like(score, np.inf))
