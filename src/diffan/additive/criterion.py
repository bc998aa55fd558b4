r"""The generalised cross-validation score of a penalised additive regression, with its derivatives.

With C the correlations of the predictors' functions, b those with the target, S_k the diagonal penalty of term k and

    A = C + \sum_k \lambda_k S_k + ridge,   \beta = A^{-1} b,
    rss = 1 - 2 b'\beta + \beta' C \beta,   edf = tr(A^{-1} C),

the score is n log(rss) - 2 n log(n - 1 - edf): mgcv's default criterion on a log scale. Once A^{-1} is known, the
gradient and the Hessian in log lambda cost O(q^2), because the penalties are diagonal; only the trace part of the
Hessian is approximated (its off-diagonal entries are dropped), which costs Newton a step and the answer nothing.

Everything is written over a batch of regressions, [B, ...], and for numpy and torch alike (`xp`), so that the CPU and
the GPU run the same formulas. Terms have `width` slots each; slots without a function have valid = 0, a unit diagonal
in C, and take no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Tensor = Any  # a numpy array or a torch tensor
SMALLEST_RSS = 1e-13  # of the target's variance: an exact fit ends here instead of at log 0
EPSILON = 1e-6  # the wiggle share of a term stays this far from 0 (a line) and 1 (no penalty)
LOOSEST_SHARE = 1 - EPSILON  # at which the noise variance is estimated
FIRST_SHARE = 0.1  # common starting point, from which every term's own start is found
SHARE_GRID = np.array([EPSILON, *np.geomspace(0.003, 0.5, 10), 0.7, 0.85, 0.97])


@dataclass(frozen=True, eq=False)
class System:
    """A batch of penalised regressions with q = terms * width coefficients each."""

    xp: ModuleType
    correlations: Tensor  # [B, q, q]
    target: Tensor  # [B, q]
    penalties: Tensor  # [B, terms, width], scaled so that lambda = 1 is a middling penalty
    valid: Tensor  # [B, terms, width], 1 where there is a function
    ridge: Tensor  # [B]
    identity: Tensor  # [terms, terms]
    n_rows: float
    inverse: Callable[[Tensor, Tensor], Tensor]
    """From C [B, q, q] and the diagonal to add to it [B, q] to the inverse of the sum."""

    def take(self, which: Tensor) -> System:
        """The regressions of the batch that are wanted."""
        return System(
            self.xp,
            self.correlations[which],
            self.target[which],
            self.penalties[which],
            self.valid[which],
            self.ridge[which],
            self.identity,
            self.n_rows,
            self.inverse,
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The regression at given smoothing parameters."""

    inverse: Tensor  # [B, q, q]: A^-1
    coefficients: Tensor  # [B, q]
    wiggly: Tensor  # [B, q]: the diagonal of the lambda_k S_k
    diagonal: Tensor  # [B, q]: the same with the ridge
    rss: Tensor  # [B], as a share of the target's variance
    edf: Tensor  # [B], without the intercept
    score: Tensor  # [B]


def solve(system: System, share: Tensor) -> Solution:
    """Fit at the given wiggle shares t [B, terms], with lambda = (1 - t) / t.

    A share runs from 0, a straight line, to 1, no penalty. It behaves like the edf: the score is smooth in it up to
    both ends, whereas in log lambda a term that wants to be a line creeps towards infinity.
    """
    wiggly, diagonal = penalty_diagonals(system, share)
    return solution(system, wiggly, diagonal, system.inverse(system.correlations, diagonal))


def penalty_diagonals(system: System, share: Tensor) -> tuple[Tensor, Tensor]:
    """The diagonal of the lambda_k S_k, without and with the ridge: [B, q] each."""
    wiggly = (((1 - share) / share)[..., None] * system.penalties).reshape(len(system.target), -1)
    return wiggly, wiggly + system.ridge[:, None]


def solution(system: System, wiggly: Tensor, diagonal: Tensor, inverse: Tensor) -> Solution:
    """The fit whose A^-1 is known."""
    xp, batch = system.xp, len(system.target)
    coefficients = (inverse @ system.target[..., None])[..., 0]
    explained = (system.target * coefficients).sum(-1) + (diagonal * coefficients**2).sum(-1)
    rss = (1 - explained).clip(SMALLEST_RSS)
    valid = system.valid.reshape(batch, -1)
    edf = (valid * (1 - own_entries(inverse) * diagonal)).sum(-1)
    n = system.n_rows
    score = n * xp.log(rss) - 2 * n * xp.log((n - 1 - edf).clip(0.5))
    return Solution(inverse, coefficients, wiggly, diagonal, rss, edf, score)


def derivatives(system: System, share: Tensor, at: Solution) -> tuple[Tensor, Tensor]:
    """Gradient [B, terms] and approximate Hessian [B, terms, terms] of the score in the shares."""
    batch, terms, width = system.penalties.shape
    n, inverse, wiggly = system.n_rows, at.inverse, at.wiggly

    def by_term(x: Tensor) -> Tensor:  # [B, q] -> [B, terms]
        return x.reshape(batch, terms, width).sum(-1)

    pull = wiggly * at.coefficients  # lambda_k S_k beta
    moved = (
        (inverse * pull[:, None, :]).reshape(batch, terms * width, terms, width).sum(-1)
    )  # -d beta / d log lambda
    back = (inverse @ (at.diagonal * at.coefficients)[..., None])[..., 0]
    own = own_entries(inverse)
    spread = own - ((inverse * inverse) @ at.diagonal[..., None])[..., 0]  # diagonal of A^-1 C A^-1

    rss1 = 2 * by_term(pull * back)
    pulled = (pull[..., None] * moved).reshape(batch, terms, width, terms).sum(2)
    turned = ((wiggly * back)[..., None] * moved).reshape(batch, terms, width, terms).sum(2)
    held = moved.swapaxes(-1, -2) @ (at.diagonal[..., None] * moved)
    rss2 = 2 * (pulled - held - turned - turned.swapaxes(-1, -2)) + rss1[..., None] * system.identity
    edf1 = -by_term(wiggly * spread)
    edf2 = (edf1 + 2 * by_term(wiggly**2 * own * spread))[..., None] * system.identity

    rss = at.rss[:, None]
    left = (n - 1 - at.edf).clip(0.5)[:, None]
    gradient = n * (rss1 / rss + 2 * edf1 / left)
    hessian = n * (
        rss2 / rss[..., None] - _outer(rss1 / rss) + 2 * edf2 / left[..., None] + 2 * _outer(edf1 / left)
    )
    # from log lambda = log(1 - t) - log(t) to the share t
    first = -1 / (share * (1 - share))
    second = (1 - 2 * share) * first**2
    return gradient * first, hessian * _outer(first) + (gradient * second)[..., None] * system.identity


def first_shares(system: System, at: Solution, grid: Tensor) -> Tensor:
    """Every term's best share on the grid when the others stay as they are in `at`: [B, terms].

    Within a term C is the identity, so from one solution the score of each term alone is known in closed form.
    """
    batch, terms, width = system.penalties.shape
    spread = (batch, terms, width)
    alone = (at.coefficients * (1 + at.diagonal)).reshape(spread)  # the term's least-squares coefficients
    now = (1 / (1 + at.diagonal)).reshape(spread)
    edf_now = (system.valid * (1 - (own_entries(at.inverse) * at.diagonal).reshape(spread))).sum(-1)
    kept = 1 / (1 + ((1 - grid) / grid)[:, None] * system.penalties[:, :, None, :])  # [B, terms, grid, width]
    gained = ((1 - kept) ** 2 - (1 - now[:, :, None, :]) ** 2) * alone[:, :, None, :] ** 2
    rss = (at.rss[:, None, None] + gained.sum(-1)).clip(1e-6)
    edf = at.edf[:, None, None] + (system.valid[:, :, None, :] * kept).sum(-1) - edf_now[..., None]
    n = system.n_rows
    scores = system.xp.log(rss) - 2 * system.xp.log((n - 1 - edf).clip(0.5))
    return grid[scores.argmin(-1)]


def own_entries(matrix: Tensor) -> Tensor:
    """The diagonals of a batch of matrices: [B, q]."""
    q = matrix.shape[-1]
    return matrix.reshape(len(matrix), -1)[:, :: q + 1]


def _outer(vector: Tensor) -> Tensor:
    return vector[..., :, None] * vector[..., None, :]
