"""The evidence that shuffled columns give by chance, and p-values from it.

A shuffled column has no effect by construction, so the fall of the objective when it joins a node's parents is a draw
from the null. Most draws are far below zero, because a useless column blurs the regression; what matters is the upper
tail. Twice a log-likelihood ratio has an exponential tail, so the largest draws are given one: p-values below one
over the number of draws are extrapolated, with a scale one standard error above its estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from diffan.likelihood.fits import Parents, Query
from diffan.likelihood.objective import Objective
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work

FloatArray = npt.NDArray[np.float64]
TAIL_SHARE = 0.1  # of the draws, which the exponential tail is fitted to
FEWEST_IN_TAIL = 10
MOST_SHADOWS = 40
LEAST_SCALE = 0.1  # nats; keeps p-values sane when the largest draws coincide


def shadows_for(n_nodes: int, settings: LikelihoodSettings) -> int:
    """How many shuffled columns give about `null_fits` fits when every node tries each."""
    return min(MOST_SHADOWS, max(1, math.ceil(settings.null_fits / n_nodes)))


def shuffled_falls(objective: Objective, parent_sets: Sequence[Parents]) -> Work[FloatArray]:
    """By how much each shuffled column lowers each node's objective, pooled over nodes: [nodes * shadows]."""
    shadows = range(objective.n_nodes, objective.n_nodes + objective.n_shadows)
    with_shadow = [Query(j, P | {s}) for j, P in enumerate(parent_sets) for s in shadows]
    yield objective, [*with_shadow, *(Query(j, P) for j, P in enumerate(parent_sets))]
    falls = [
        objective.value(j, P) - objective.value(j, P | {s})
        for j, P in enumerate(parent_sets)
        for s in shadows
    ]
    return np.array(falls)


@dataclass(frozen=True, eq=False)
class NullModel:
    """The law of the fall under no effect: the draws themselves, then an exponential tail."""

    draws: FloatArray  # [k], ascending, up to the threshold
    threshold: float  # where the tail starts
    scale: float  # nats per factor e of the tail
    n_draws: int  # those of the tail too

    @classmethod
    def fit(cls, falls: FloatArray) -> NullModel:
        """From at least a few draws; fewer draws give a wider tail."""
        draws = np.sort(np.asarray(falls, dtype=np.float64))
        in_tail = min(len(draws) - 1, max(FEWEST_IN_TAIL, round(TAIL_SHARE * len(draws))))
        threshold = float(draws[-in_tail - 1])
        excess = float(np.mean(draws[-in_tail:] - threshold))
        scale = max(excess, LEAST_SCALE) * (1.0 + 1.0 / math.sqrt(in_tail))
        return cls(draws[: len(draws) - in_tail], threshold, scale, len(draws))

    def p_value(self, falls: npt.ArrayLike) -> FloatArray:
        """The chance that a column without effect lowers the objective by at least this much.

        Falls strictly as the evidence grows, from the least draw on.
        """
        at = np.asarray(falls, dtype=np.float64)
        rank = np.arange(len(self.draws))
        shares = np.log(
            (self.n_draws - rank - 0.5) / self.n_draws
        )  # of draws above each, in the middle of a step
        body = np.interp(at, self.draws, shares, left=0.0)
        tail = shares[-1] - (at - self.threshold) / self.scale
        return np.asarray(np.exp(np.where(at <= self.threshold, body, tail)))

    def level(self, p_value: float) -> float:
        """The evidence that has this p-value, in the tail."""
        at_threshold = float(np.log(self.p_value(self.threshold)))
        return self.threshold + self.scale * (at_threshold - math.log(p_value))
