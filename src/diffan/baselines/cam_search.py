"""CAM's greedy edge search on the Gram matrix of the additive engine: its cost does not grow with the rows.

Every node starts without parents. The edge that raises the likelihood most is added as long as no cycle arises; only
the gains of its target then change. The additive regressions are never refitted: adding a parent is one block of
Gaussian elimination on the target's penalised normal equations, after which the gain of every further parent can be
read off a w x w block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.additive.gram import SplineGram
from diffan.constraints import Constraints
from diffan.progress import Task

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_RIDGE = 1e-8  # keeps a column that repeats another from making the elimination singular


@dataclass(frozen=True, eq=False)
class GreedySearch:
    """The graph found and how the search went."""

    adjacency: BoolArray  # [d, d]
    edges: list[tuple[int, int]]  # in the order they were added
    negative_log_likelihood: list[float]  # per row, before the first edge and after each; up to a constant


@dataclass(frozen=True, eq=False)
class PenalisedGram:
    """All columns' functions with equal width and the penalties of a fixed smoothing on the diagonal."""

    matrix: FloatArray  # [d, w, d, w]
    line: FloatArray  # [d, w, d]: products of every function with every column's straight line, the target

    @classmethod
    def build(cls, gram: SplineGram, edf: float) -> PenalisedGram:
        """Smooth every column alike, to `edf` degrees of freedom when it stands alone."""
        d, w = gram.n_columns, gram.width
        there = (
            np.arange(w) < np.diff(gram.offsets)[:, None]
        )  # [d, w], False where a column has fewer functions
        place = np.flatnonzero(there)
        full = np.zeros((d * w, d * w))
        full[np.ix_(place, place)] = gram.matrix
        line = full.reshape(d, w, d, w)[:, :, :, 0].copy()
        penalties = np.zeros((d, w))
        for column, basis in enumerate(gram.bases):
            penalties[column, : basis.width] = smoothing_for(basis.penalties, edf) * basis.penalties
        full[np.diag_indices_from(full)] += np.where(there, penalties + _RIDGE, 1.0).ravel()
        return cls(full.reshape(d, w, d, w), line)


def smoothing_for(penalties: FloatArray, edf: float) -> float:
    """The lambda at which orthonormal functions with these penalties keep `edf` degrees of freedom."""
    if len(penalties) <= edf:
        return 0.0
    low, high = -50.0, 50.0  # log lambda
    for _ in range(100):
        middle = (low + high) / 2
        kept = (1 / (1 + np.exp(middle) * penalties)).sum()
        low, high = (middle, high) if kept > edf else (low, middle)
    return float(np.exp(low))


class TargetFit:
    """One node's regression on the parents it has so far, and the gain of every parent it might get."""

    def __init__(self, gram: PenalisedGram, target: int, candidates: npt.NDArray[np.intp]) -> None:
        m, w = len(candidates), gram.matrix.shape[1]
        self.candidates = candidates  # [m]
        self._gram = gram.matrix  # [d, w, d, w], shared
        self._block = gram.matrix[candidates, :, candidates]  # [m, w, w]
        self._product = gram.line[candidates, :, target]  # [m, w]
        self._eliminated = np.empty((0, m, w))  # [parents * w, m, w]
        self._open = np.ones(m, dtype=np.bool_)
        self.unexplained = 1.0  # penalised share of the target's variance

    def gains(self) -> FloatArray:
        """By how much the log-likelihood per row would rise with each candidate; 0 for parents: [m]."""
        explained = np.zeros(len(self.candidates))
        solved = np.linalg.solve(self._block[self._open], self._product[self._open][..., None])[..., 0]
        explained[self._open] = (self._product[self._open] * solved).sum(axis=1)
        left = np.maximum(self.unexplained - explained, _RIDGE * self.unexplained)
        return 0.5 * np.log(self.unexplained / left)

    def add(self, candidate: int) -> None:
        """Make the candidate at this place a parent: eliminate its functions from all others."""
        m, w = self._product.shape
        factor = np.linalg.cholesky(self._block[candidate])
        whole = self._gram[self.candidates[candidate]][:, self.candidates]  # [w, m, w]
        before = np.tensordot(self._eliminated[:, candidate], self._eliminated, axes=(0, 0))  # [w, m, w]
        rows = np.linalg.solve(factor, (whole - before).reshape(w, m * w)).reshape(w, m, w)
        target = np.linalg.solve(factor, self._product[candidate])  # [w]
        self._eliminated = np.concatenate([self._eliminated, rows])
        self._block = self._block - np.einsum("amb,amc->mbc", rows, rows)
        self._product = self._product - np.einsum("amb,a->mb", rows, target)
        self.unexplained = max(self.unexplained - float(target @ target), _RIDGE)
        self._open[candidate] = False


def greedy_search(
    gram: PenalisedGram,
    candidates: BoolArray,
    task: Task,
    *,
    min_gain: float,
    rules: Constraints | None = None,
) -> GreedySearch:
    """Add the best edge that closes no cycle until none raises the log-likelihood per row by `min_gain`.

    Required edges come first, whatever they gain; what has to precede counts as a path from the start.
    """
    d = len(candidates)
    rules = rules or Constraints.none(d)
    fits = [TargetFit(gram, j, np.flatnonzero(candidates[:, j])) for j in range(d)]
    gains = np.full((d, d), -np.inf)
    for j, fit in enumerate(fits):
        gains[fit.candidates, j] = fit.gains()
    adjacency = np.zeros((d, d), dtype=np.bool_)
    reaches = np.eye(d, dtype=np.bool_) | rules.must_precede
    gains[reaches.T] = -np.inf
    edges: list[tuple[int, int]] = []
    losses = [sum(0.5 * np.log(fit.unexplained) for fit in fits)]
    waiting = [(int(i), int(j)) for i, j in np.argwhere(rules.required)]
    while True:
        cause, effect = waiting.pop() if waiting else divmod(int(gains.argmax()), d)
        if not (rules.required[cause, effect] or gains[cause, effect] > min_gain):
            return GreedySearch(adjacency, edges, losses)
        fit = fits[effect]
        fit.add(int(np.searchsorted(fit.candidates, cause)))
        edges.append((cause, effect))
        adjacency[cause, effect] = True
        gains[fit.candidates, effect] = fit.gains()
        reaches |= np.outer(reaches[:, cause], reaches[effect])
        gains[reaches.T | adjacency] = -np.inf  # i -> j would close a cycle where j already reaches i
        losses.append(sum(0.5 * np.log(fit.unexplained) for fit in fits))
        task.advance(note=f"{len(edges)} edges")
