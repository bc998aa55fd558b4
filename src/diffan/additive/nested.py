"""Solutions at a fixed smoothing for regressions on nested sets of parents, each grown from the one before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diffan.additive.criterion import Solution, System, penalty_diagonals, solution
from diffan.additive.system import Layout

Array = npt.NDArray[np.float64]

ROUNDING = 1e-9  # of the largest entry; 1e-14 is left on the paper's grid, 1e-7 and then anything on SynTReN


class NestedSolver:
    """Solves regressions with all terms at one share; when parents extend the previous ones, by bordering.

    Along an order every node's predecessors are the previous node's and one more. At equal smoothing their matrix
    grows by one block, and its inverse follows in O(q^2) instead of O(q^3). Rounding grows with every block, and fast
    where columns nearly repeat one another; an inverse that no longer solves the equations is computed afresh.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._index = np.empty((0, 0), dtype=np.intp)
        self._ridge = 0.0
        self._inverse = np.empty((0, 0))

    def solution(self, system: System, place: Layout) -> Solution:
        """One regression at the solver's share."""
        share = np.full((1, len(place.index)), self._share)
        wiggly, diagonal = penalty_diagonals(system, share)
        old = len(self._inverse)
        grown = None
        if old and self._is_extended_by(place):
            matrix = system.correlations[0]
            corner = matrix[old:, old:] + np.diag(diagonal[0, old:])
            grown = _bordered(self._inverse, matrix[:old, old:], corner)
            if not _solves(grown, matrix, diagonal[0], system.target[0]):
                grown = None
        self._inverse = system.inverse(system.correlations, diagonal)[0] if grown is None else grown
        self._index, self._ridge = place.index, place.ridge
        return solution(system, wiggly, diagonal, self._inverse[None])

    def _is_extended_by(self, place: Layout) -> bool:
        before = len(self._index)
        same_width = place.index.shape[1] == self._index.shape[1]
        return same_width and self._ridge == place.ridge and np.array_equal(place.index[:before], self._index)


def _solves(inverse: Array, matrix: Array, diagonal: Array, target: Array) -> bool:
    """Whether `inverse` still solves (matrix + diagonal) x = y, for the target and for a vector that meets every term."""
    probes = np.stack([target, np.ones(len(target))], axis=1)  # [q, 2]
    found = inverse @ probes
    left = matrix @ found + diagonal[:, None] * found - probes
    return bool(np.all(np.abs(left).max(axis=0) <= ROUNDING * np.abs(probes).max(axis=0)))


def _bordered(inverse: Array, side: Array, corner: Array) -> Array:
    """The inverse of [[A, side], [side', corner]] from that of A."""
    reach = inverse @ side  # [old, new]
    schur = np.linalg.inv(corner - side.T @ reach)
    away = reach @ schur
    return np.block([[inverse + away @ reach.T, -away], [-away.T, schur]])
