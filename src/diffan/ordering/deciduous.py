r"""Deciduous: after a leaf is found, the score of the rest is had from the score of the whole.

Write s for the score, H for its Jacobian, pi for the removed leaves and R for the rest.

Fill and Schur (the default). Move the removed coordinates to their mode given the rest, where s_pi = 0. There every
residual of pi sits where (log p_eps)' = 0, so the second derivatives of the mechanisms drop out and the Jacobian of the
marginal score is exactly H_RR - H_Rpi H_pipi^-1 H_piR. First derivatives of the network are enough.

Recursion (the slow check). One leaf at a time, s_{-l} = s - H_l s_l / H_ll: the paper's theorem with a minus, where
its algorithm prints a plus. Each leaf asks for one more derivative of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.algorithm import LeafFinder
from diffan.keeping import Arrays
from diffan.ordering.choice import choose_leaf
from diffan.ordering.curvature import AutogradField, Field, NetworkField
from diffan.ordering.points import OrderingPoints
from diffan.settings import OrderSettings

Array = npt.NDArray[np.float64]
RIDGES = tuple(0.1 * 2**k for k in range(10))  # tried in turn where the curvature is not a mode's
UNFILLED_WARNING = 0.25
JACOBIANS_HELD = 6  # the Jacobian, its blocks, their symmetric parts and roots


@dataclass
class FillReport:
    """How many of the filled points did not reach the mode."""

    filled: int = 0
    missed: int = 0

    def add(self, missed: int, filled: int) -> None:
        self.filled += filled
        self.missed += missed

    def state(self) -> Arrays:
        return {"filled": np.array([self.filled]), "missed": np.array([self.missed])}

    def restore(self, arrays: Arrays) -> None:
        self.filled, self.missed = int(arrays["filled"][0]), int(arrays["missed"][0])

    def warnings(self) -> tuple[str, ...]:
        if not self.filled or self.missed / self.filled < UNFILLED_WARNING:
            return ()
        return (
            f"{self.missed / self.filled:.0%} of the filled points did not reach the mode of the removed variables, so "
            "the deciduous score is rough here; compare with variant='masking' or variant='greedy'.",
        )


def deciduous_finder(field: Field, points: OrderingPoints, *, report: FillReport | None = None) -> LeafFinder:
    """A leaf is the variable whose derivative of the *marginal* score varies least."""
    if points.settings.residue == "recursion":
        return _recursion_finder(field, points)
    return _fill_finder(field, points, report or FillReport())


# ---- fill and Schur -----------------------------------------------------------------------------


def _fill_finder(field: Field, points: OrderingPoints, report: FillReport) -> LeafFinder:
    settings = points.settings
    filling: dict[float, _Filling] = {}  # per noise level, to go on from

    def filled_at(sigma: float, removed: Sequence[int]) -> Tensor:
        gone = tuple(removed)
        if sigma not in filling or gone[: len(filling[sigma].removed)] != filling[sigma].removed:
            filling[sigma] = _Filling.begin(points, sigma, settings.resample)
        while len(filling[sigma].removed) < len(gone):
            filling[sigma] = filling[sigma].without(gone[len(filling[sigma].removed)], field, sigma, settings)
        return filling[sigma].batches[0]

    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        def diagonals_at(sigma: float) -> Tensor:
            rows = filled_at(sigma, removed)
            if removed:
                astray = field.score(rows, sigma)[:, list(removed)].abs().amax(1) > settings.fill_tolerance
                report.add(int(astray.sum()), len(rows))
            parts = [
                schur_diagonal(field.jacobian(chunk, sigma), remaining, removed, floor=settings.fill_floor)
                for chunk in torch.split(rows, chunk_rows(field, rows))
            ]
            return torch.cat(parts)

        return choose_leaf(points, remaining, diagonals_at)

    return find_leaf


@dataclass(frozen=True, eq=False)
class _Filling:
    """The points of this step and of those to come, with the leaves removed so far at their modes.

    Each leaf is filled in all of them at once: one step's batch after the other would ask the network d times as often.
    """

    removed: tuple[int, ...]
    batches: tuple[Tensor, ...]  # one for each step from this one on; a single one where all steps share it

    @classmethod
    def begin(cls, points: OrderingPoints, sigma: float, resample: bool) -> _Filling:
        steps = max(points.values.shape[1] - 1, 1) if resample else 1
        return cls((), tuple(points.at(sigma, step=step) for step in range(steps)))

    def without(self, leaf: int, field: Field, sigma: float, settings: OrderSettings) -> _Filling:
        removed = (*self.removed, leaf)
        left = self.batches[1:] if settings.resample else self.batches
        rows = torch.cat(left)
        chunks = torch.split(rows, chunk_rows(field, rows))
        filled = torch.cat([fill(field, chunk, sigma, removed, settings) for chunk in chunks])
        return _Filling(removed, torch.split(filled, [len(batch) for batch in left]))


def chunk_rows(field: Field, rows: Tensor) -> int:
    """How many points' Jacobians, and the few copies of them that are worked on, fit the field's memory bound."""
    per_row = JACOBIANS_HELD * rows.element_size() * rows.shape[1] ** 2
    return max(1, field.memory_bytes // per_row)


def fill(field: Field, rows: Tensor, sigma: float, removed: Sequence[int], settings: OrderSettings) -> Tensor:
    """Move the removed coordinates of rows [k, d] to their mode given the rest, by Newton steps on s_pi = 0.

    Called after each removal with the earlier leaves already filled, the first step moves the new leaf along its
    marginal, exactly to the mode for Gaussian noise, and carries the earlier leaves with it; the next steps correct
    them. Where the curvature is not that of a mode the step is damped until it goes uphill, and none is longer than
    fill_step.
    """
    where = list(removed)
    columns = torch.tensor(where, device=rows.device)
    filled = rows.clone()
    astray = torch.arange(len(rows), device=rows.device)  # the points not yet at the mode
    for _ in range(settings.fill_iterations):
        slope = field.score(filled[astray], sigma)[:, where]  # [astray, pi]
        far = slope.abs().amax(1) > settings.fill_tolerance
        astray, slope = astray[far], slope[far]
        if not len(astray):
            break
        curvature = field.jacobian(filled[astray], sigma)[:, where][:, :, where]  # [astray, pi, pi]
        root = steepness_root(curvature, settings.fill_floor)
        step = torch.cholesky_solve(slope.unsqueeze(2), root).squeeze(2)
        # The whole step is shortened, not entry by entry: the earlier leaves must move along with the new one.
        longest = step.abs().amax(1, keepdim=True).clamp(min=settings.fill_step)
        filled[astray[:, None], columns] += step * (settings.fill_step / longest)
    return filled


def schur_diagonal(
    jacobian: Tensor, remaining: Sequence[int], removed: Sequence[int], *, floor: float = 0.0
) -> Tensor:
    """The diagonal of H_RR - H_Rpi H_pipi^-1 H_piR at each point, [k, d, d] -> [k, r]."""
    symmetric = (jacobian + jacobian.transpose(1, 2)) / 2
    keep, gone = list(remaining), list(removed)
    diagonal: Tensor = symmetric.diagonal(dim1=1, dim2=2)[:, keep]
    if not gone:
        return diagonal
    root = steepness_root(symmetric[:, gone][:, :, gone], floor)  # -H_pipi = L L'
    half = torch.linalg.solve_triangular(root, symmetric[:, gone][:, :, keep], upper=False)  # [k, pi, r]
    marginal: Tensor = diagonal + half.square().sum(1)
    return marginal


def steepness_root(curvature: Tensor, floor: float) -> Tensor:
    """The Cholesky root of -H [k, m, m], raised by the least of some ridges that brings its eigenvalues to the floor.

    Given the rest, a standardised variable varies at most about as much as it does alone, so at a mode -H is never
    much flatter than 1. A learned score that says otherwise is wrong there, and one such point outweighs all others.
    """
    steepness = -(curvature + curvature.transpose(1, 2)) / 2
    identity = torch.eye(steepness.shape[1], dtype=steepness.dtype, device=steepness.device)
    ridge = steepness.new_zeros(len(steepness))
    low = torch.linalg.cholesky_ex(steepness - floor * identity).info > 0
    for raised in RIDGES:
        if not bool(low.any()):
            break
        ridge[low] = raised
        trial = steepness[low] + (raised / 2 - floor) * identity  # clear of the floor by half the ridge
        low[low.clone()] = torch.linalg.cholesky_ex(trial).info > 0
    ridge[low] = steepness[low].abs().sum(2).amax(1) + 1.0  # beyond every eigenvalue
    root: Tensor = torch.linalg.cholesky_ex(steepness + ridge[:, None, None] * identity).L
    return root


# ---- recursion ----------------------------------------------------------------------------------


def without_leaf(point_score: Callable[[Tensor], Tensor], leaf: int) -> Callable[[Tensor], Tensor]:
    """s - H_l s_l / H_ll: the score of the rest when `leaf` is one; its own entry becomes 0."""

    def reduced(point: Tensor) -> Tensor:
        score = point_score(point)
        of_leaf = torch.func.grad(lambda at: point_score(at)[leaf])(point)  # H_l, [d]
        kept: Tensor = score - of_leaf * score[leaf] / of_leaf[leaf]
        return kept

    return reduced


def _recursion_finder(field: Field, points: OrderingPoints) -> LeafFinder:
    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        def diagonals_at(sigma: float) -> Tensor:
            reduced = _point_score(field, sigma)
            for leaf in removed:
                reduced = without_leaf(reduced, leaf)
            return AutogradField(reduced).diagonal(points.at(sigma, step=len(removed)), sigma, remaining)

        return choose_leaf(points, remaining, diagonals_at)

    return find_leaf


def _point_score(field: Field, sigma: float) -> Callable[[Tensor], Tensor]:
    if isinstance(field, AutogradField):
        return field.point_score
    if not isinstance(field, NetworkField):
        raise TypeError(
            "The recursion differentiates the score itself: give a NetworkField or an AutogradField."
        )
    model = field.model
    return lambda point: model.score(point.unsqueeze(0), sigma).squeeze(0)
