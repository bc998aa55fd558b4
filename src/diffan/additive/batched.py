"""The same engine on a GPU: functions and products of many rows at once, regressions batched by size.

Float64 throughout, and the formulas are those of `criterion.py`, so the decisions are the CPU's. Torch is imported
inside the functions: the CPU path does without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.additive.criterion import (
    EPSILON,
    FIRST_SHARE,
    LOOSEST_SHARE,
    SHARE_GRID,
    System,
    derivatives,
    first_shares,
    solve,
)
from diffan.additive.fit import TOLERANCE, NodeFit, Regression, node_fit
from diffan.additive.gram import SplineGram
from diffan.additive.newton import minimise
from diffan.additive.splines import ColumnBasis
from diffan.additive.system import Layout, layout, summarise

Array = npt.NDArray[np.float64]

BATCH_BYTES = 2**31  # of matrices A; about eight times as much is in use at the peak
CHUNK_VALUES = 2**24  # function values of a chunk of rows that are gathered at once
ROUND_TO = 4  # regressions whose numbers of parents round up to the same multiple share a batch


def accumulate(
    chunks: Iterable[tuple[npt.NDArray[np.floating], Array | None]], bases: Sequence[ColumnBasis], device: str
) -> tuple[Array, Array]:
    """Sums of products [q, q] and of values [q] of all functions over the rows, as on the CPU."""
    import torch

    tables = _SplineTables(bases, device)
    q = len(tables.place)
    products = torch.zeros((q, q), dtype=torch.float64, device=device)
    sums = torch.zeros(q, dtype=torch.float64, device=device)
    rows_at_once = max(64, CHUNK_VALUES // max(1, 4 * tables.n_slots))
    for chunk, weights in chunks:
        for first in range(0, len(chunk), rows_at_once):
            last = first + rows_at_once
            rows = torch.as_tensor(np.array(chunk[first:last], dtype=np.float64), device=device)
            functions = tables.evaluate(rows)  # [rows, q]
            if weights is None:
                sums += functions.sum(0)
                products += functions.T @ functions
            else:
                weight = torch.as_tensor(np.array(weights[first:last]), device=device)
                sums += weight @ functions
                products += functions.T @ (weight[:, None] * functions)
    return products.cpu().numpy(), sums.cpu().numpy()


class _SplineTables:
    """All columns' piecewise cubics in padded tensors."""

    def __init__(self, bases: Sequence[ColumnBasis], device: str) -> None:
        import torch

        d, width = len(bases), max(basis.width for basis in bases)
        pieces = max(len(basis.breaks) for basis in bases) - 1
        breaks = np.full((d, pieces + 1), np.inf)
        coefficients = np.zeros((d, pieces, 4, width))
        ends = np.empty((2, d))
        kept = np.zeros((d, width), dtype=bool)
        for j, basis in enumerate(bases):
            breaks[j, : len(basis.breaks)] = basis.breaks
            coefficients[j, : len(basis.breaks) - 1, :, : basis.width] = basis.coefficients.transpose(1, 0, 2)
            ends[:, j] = basis.breaks[0], basis.breaks[-1]
            kept[j, : basis.width] = True
        self.last_piece = torch.as_tensor([len(basis.breaks) - 2 for basis in bases], device=device)[:, None]
        self.breaks = torch.as_tensor(breaks, device=device)
        self.coefficients = torch.as_tensor(coefficients, device=device)
        self.low, self.high = torch.as_tensor(ends, device=device)
        self.place = torch.as_tensor(np.flatnonzero(kept), device=device)
        self.n_slots = kept.size

    def evaluate(self, rows: Any) -> Any:
        """[rows, d] -> the functions of all columns [rows, q]."""
        import torch

        values = torch.clamp(rows, self.low, self.high).T.contiguous()  # [d, rows]
        piece = torch.searchsorted(self.breaks, values, right=True) - 1
        piece = torch.minimum(piece.clamp(min=0), self.last_piece)
        offset = (values - self.breaks.gather(1, piece))[..., None]
        column = torch.arange(len(values), device=values.device)[:, None]
        cubic = self.coefficients[column, piece]  # [d, rows, 4, width]
        functions = ((cubic[:, :, 0] * offset + cubic[:, :, 1]) * offset + cubic[:, :, 2]) * offset + cubic[
            :, :, 3
        ]
        return functions.transpose(0, 1).flatten(1)[:, self.place]  # [rows, d * width] -> [rows, q]


def fit_batches(gram: SplineGram, regressions: Sequence[Regression], device: str) -> Iterator[NodeFit]:
    """All regressions, in the order given; memory is bounded by BATCH_BYTES, whatever their number."""
    import torch

    matrix = torch.as_tensor(gram.matrix, device=device)
    places = [layout(gram, *regression) for regression in regressions]
    fits: list[NodeFit | None] = [None] * len(regressions)
    for chosen in _batches(places):
        batch = [places[k] for k in chosen]
        share, parts = _fit_batch(matrix, gram.n_rows, batch)
        for row, k in enumerate(chosen):
            own = {name: part[row] for name, part in parts.items()}
            fits[k] = node_fit(gram, regressions[k], places[k], share[row], own)
    return (fit for fit in fits if fit is not None)


def _batches(places: Sequence[Layout]) -> Iterator[list[int]]:
    """Positions of regressions of similar size, few enough for the memory."""
    groups: dict[tuple[int, int], list[int]] = {}
    for k, place in enumerate(places):
        terms, width = place.index.shape
        groups.setdefault((-(-max(terms, 1) // ROUND_TO) * ROUND_TO, width), []).append(k)
    for (terms, width), members in groups.items():
        at_once = max(1, BATCH_BYTES // (8 * (terms * width) ** 2))
        for first in range(0, len(members), at_once):
            yield members[first : first + at_once]


def _fit_batch(matrix: Any, n_rows: float, places: Sequence[Layout]) -> tuple[Array, dict[str, Array]]:
    import torch

    system = _torch_system(matrix, n_rows, places)
    batch, terms, _ = system.penalties.shape
    device = system.target.device
    common = torch.full((batch, terms), FIRST_SHARE, dtype=torch.float64, device=device)
    start = first_shares(system, solve(system, common), torch.as_tensor(SHARE_GRID, device=device))
    used = system.valid.any(-1)
    start = torch.where(used, start, 0.5).cpu().numpy()

    def evaluate(rows: npt.NDArray[np.intp], trial: Array) -> tuple[Array, Array, Array]:
        part = system if len(rows) == batch else system.take(torch.as_tensor(rows, device=device))
        share = torch.as_tensor(trial, device=device)
        at = solve(part, share)
        gradient, hessian = derivatives(part, share, at)
        return at.score.cpu().numpy(), gradient.cpu().numpy(), hessian.cpu().numpy()

    share = minimise(start, evaluate, edge=EPSILON, tolerance=TOLERANCE)
    loose = solve(system, torch.full_like(common, LOOSEST_SHARE))
    parts = summarise(system, solve(system, torch.as_tensor(share, device=device)), loose)
    return share, {name: part.cpu().numpy() for name, part in parts.items()}


def _torch_system(matrix: Any, n_rows: float, places: Sequence[Layout]) -> System:
    import torch

    terms = max(1, *(len(place.index) for place in places)) if places else 1
    width = max(1, places[0].index.shape[1])
    index = np.full((len(places), terms, width), -1)
    penalties = np.zeros(index.shape)
    for row, place in enumerate(places):
        shape = place.index.shape
        index[row, : shape[0], : shape[1]] = place.index
        penalties[row, : shape[0], : shape[1]] = place.penalties
    device = matrix.device
    where = torch.as_tensor(index.reshape(len(places), -1), device=device)
    valid = (where >= 0).to(torch.float64)
    target = torch.as_tensor([place.target for place in places], device=device)[:, None]
    correlations = matrix[where[:, :, None], where[:, None, :]] * (valid[:, :, None] * valid[:, None, :])
    correlations.diagonal(dim1=1, dim2=2).add_(1 - valid)
    return System(
        xp=torch,
        correlations=correlations,
        target=matrix[target, where] * valid * (target >= 0),
        penalties=torch.as_tensor(penalties, device=device),
        valid=valid.reshape(index.shape),
        ridge=torch.as_tensor([place.ridge for place in places], dtype=torch.float64, device=device),
        identity=torch.eye(terms, dtype=torch.float64, device=device),
        n_rows=n_rows,
        inverse=_torch_inverse,
    )


def _torch_inverse(correlations: Any, diagonal: Any) -> Any:
    import torch

    matrix = correlations.clone()
    matrix.diagonal(dim1=1, dim2=2).add_(diagonal)
    factor, failed = torch.linalg.cholesky_ex(matrix)
    inverse = torch.cholesky_inverse(factor)
    if bool((failed > 0).any()):  # not positive definite to working precision: drop the directions below it
        values, vectors = torch.linalg.eigh(matrix[failed > 0])
        size = torch.where(values > 1e-9 * values[:, -1:], values, torch.inf)
        inverse[failed > 0] = (vectors / size[:, None, :]) @ vectors.transpose(1, 2)
    return inverse
