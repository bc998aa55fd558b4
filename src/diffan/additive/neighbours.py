"""CAM's preliminary neighbour selection on the Gram matrix: which columns can matter for a target.

CAM boosts an additive model of every node and keeps the columns it picked. Here the same componentwise L2 boosting runs
on the Gram matrix, so that a step costs O(q) whatever the number of rows: the term that explains most of the residual
moves a fraction of the way to its penalised fit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diffan.additive.gram import SplineGram

Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[np.float64]

STEPS = 100  # CAM's number of boosting steps
RATE = 0.3  # choice: rates of 0.1 to 1 keep the same edges
LEARNER_SHARE = (
    0.05  # choice: wiggle share of a base learner, about 4 degrees of freedom as in CAM's boosting
)


def neighbour_mask(gram: SplineGram, allowed: Mask, most: int) -> Mask:
    """For every node at most `most` of the allowed causes: [d, d], entry [i, j] for i as a cause of j.

    Kept are the columns that lowered the residual variance most. Nodes with no more than `most` keep them all.
    """
    shrink = 1 / (1 + _learner_penalties(gram))
    kept = allowed.copy()
    for target in np.flatnonzero(allowed.sum(axis=0) > most):
        gained = _boost(gram, int(target), allowed[:, target], shrink)
        best = np.argsort(-gained, kind="stable")[:most]
        kept[:, target] = False
        kept[best, target] = gained[best] > 0
    return kept


def selection_df(offered: int, kept: int) -> float:
    """Degrees of freedom spent on choosing: what the best `kept` of `offered` idle columns explain beyond `kept`.

    The largest k of m values of chi-square with 1 degree of freedom sum to m P(chi-square_3 > q) where q cuts off the
    share k/m. Without this the residual variance of a screened regression is too small when rows are few.
    """
    from scipy.special import chdtrc, chdtri

    if kept >= offered or kept == 0:
        return 0.0
    return float(offered * chdtrc(3, chdtri(1, kept / offered)) - kept)


def _boost(gram: SplineGram, target: int, allowed: Mask, shrink: Array) -> Array:
    """How much residual variance each column took away: [d]."""
    gained = np.zeros(gram.n_columns)
    columns = np.flatnonzero(allowed & (np.diff(gram.offsets) > 0))
    starts, ends = gram.offsets[columns], gram.offsets[columns + 1]
    if gram.bases[target].width == 0 or not len(columns):
        return gained
    inside = np.repeat(allowed, np.diff(gram.offsets))
    worth = np.where(
        inside, shrink * (2 - shrink), 0.0
    )  # share of a squared product that a full step explains
    residual = gram.matrix[gram.offsets[target]].copy()  # products of the residual with every function
    for _ in range(STEPS):
        gains = np.add.reduceat(worth * residual**2, starts)  # columns that are not allowed add nothing
        best = int(gains.argmax())
        own = slice(starts[best], ends[best])
        step = RATE * shrink[own] * residual[own]
        gained[columns[best]] += (step * (2 * residual[own] - step)).sum()
        residual -= step @ gram.matrix[own]
    return gained


def _learner_penalties(gram: SplineGram) -> Array:
    """The base learners' penalties of all functions: [q]."""
    odds = (1 - LEARNER_SHARE) / LEARNER_SHARE
    scaled = [b.penalties / np.median(b.penalties[1:]) if b.width > 1 else b.penalties for b in gram.bases]
    return odds * np.concatenate(scaled)
