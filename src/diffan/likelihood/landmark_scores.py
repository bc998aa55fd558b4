r"""L(j | P) by kernel regression on landmarks, many regressions at once: sees interactions and any smooth noise.

The same product kernel and leave-one-out residuals as `low_rank.py`, batched over regressions with as many parents; the
ridge is the best of a few by the residuals' Gaussian likelihood. Parents that are not there have a kernel of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.likelihood.entropy import gaussian_entropy, looks_gaussian, spacing_entropy

Parents = frozenset[int]
Fit = tuple[int, Parents]
INTERACTION = 0.5  # measured: the middle of what single nodes choose from on the paper's grid
RIDGES = (0.1, 0.5, 2.0)  # noise variance over signal variance
JITTER = 1e-4
CELLS_CPU, CELLS_GPU = 2**24, 2**31  # kernel cells held at once
BANDWIDTH = 1.0


class LandmarkScores:
    """Twice the negative log-likelihood of nodes given parents, on rows [n, d] that were drawn at random."""

    def __init__(self, values: npt.NDArray[np.floating], *, landmarks: int, device: torch.device) -> None:
        self._points = torch.as_tensor(
            np.asarray(values, dtype=np.float32), device=device
        ).T.contiguous()  # [d, n]
        self._n = len(values)
        self._landmarks = min(landmarks, max(8, self._n // 3))
        self._cells = CELLS_GPU if device.type == "cuda" else CELLS_CPU
        self.gaussian = True

    def settle_entropy(self, parent_sets: Sequence[Parents]) -> None:
        """Gaussian entropy unless the residuals at these sets, one per node, object."""
        found = torch.empty_like(self._points)
        for places, residuals in self._batches(list(enumerate(parent_sets))):
            found[places] = residuals
        self.gaussian = looks_gaussian(found)

    def __call__(self, fits: Sequence[Fit]) -> list[float]:
        """L of every (node, parents)."""
        entropy = gaussian_entropy if self.gaussian else spacing_entropy
        found = [0.0] * len(fits)
        for places, residuals in self._batches(fits):
            for k, value in zip(places, entropy(residuals).tolist(), strict=True):
                found[k] = 2.0 * self._n * value
        return found

    def _batches(self, fits: Sequence[Fit]) -> Iterator[tuple[list[int], Tensor]]:
        """Places in `fits` and their residuals [b, n], those with as many parents together."""
        by_size: dict[int, list[int]] = {}
        for k, (_, parents) in enumerate(fits):
            by_size.setdefault(len(parents), []).append(k)
        at_once = max(1, self._cells // (4 * self._n * self._landmarks))
        for size, places in sorted(by_size.items()):
            for first in range(0, len(places), at_once):
                some = places[first : first + at_once]
                nodes = [fits[k][0] for k in some]
                if size:
                    yield some, self._fit(nodes, [sorted(fits[k][1]) for k in some])
                else:
                    yield some, self._points[nodes]

    def _fit(self, nodes: Sequence[int], sets: Sequence[Sequence[int]]) -> Tensor:
        """Leave-one-out residuals [b, n]."""
        m = self._landmarks
        points = self._points[torch.tensor(sets, device=self._points.device)]  # [b, P, n]
        target = self._points[nodes]  # [b, n]
        near = _kernel(points, points[:, :, :m])  # [b, n, m]
        whiten = _inverse_factor(near[:, :m], JITTER)
        features = torch.bmm(near, whiten.mT)  # [b, n, m]
        del near
        gram = torch.bmm(features.mT, features)
        moment = torch.bmm(features.mT, target[:, :, None])  # [b, m, 1]
        best = torch.full_like(target, math.inf)
        lowest = torch.full((len(nodes),), math.inf, dtype=torch.float64, device=target.device)
        for ridge in RIDGES:
            half = _inverse_factor(gram, ridge)
            turned = torch.bmm(features, half.mT)
            fitted = torch.bmm(turned, torch.bmm(half, moment))[:, :, 0]
            leverage = turned.square().sum(dim=2)
            residuals = (target - fitted) / (1 - leverage).clamp(min=1e-6)
            spread = residuals.double().square().mean(dim=1)
            better = spread < lowest
            best = torch.where(better[:, None], residuals, best)
            lowest = torch.where(better, spread, lowest)
        return best


def _kernel(left: Tensor, right: Tensor) -> Tensor:
    """Products over parents of 1 - c + c exp(-(x - z)^2 / 2 h^2): [b, P, n], [b, P, m] -> [b, n, m]."""
    product: Tensor | None = None
    for k in range(left.shape[1]):
        gap = left[:, k, :, None] - right[:, k, None, :]
        factor = gap.square_().mul_(-0.5 / BANDWIDTH**2).exp_().mul_(INTERACTION).add_(1 - INTERACTION)
        product = factor if product is None else product.mul_(factor)
    assert product is not None
    return product


def _inverse_factor(matrix: Tensor, ridge: float) -> Tensor:
    """R with (matrix + ridge I)^-1 = R' R, in double precision inside."""
    shifted = matrix.double()
    shifted = shifted + ridge * torch.eye(shifted.shape[-1], dtype=torch.float64, device=matrix.device)
    factor, _ = torch.linalg.cholesky_ex(shifted)
    identity = torch.eye(shifted.shape[-1], dtype=torch.float64, device=matrix.device).expand_as(factor)
    inverse: Tensor = torch.linalg.solve_triangular(factor, identity, upper=False).to(matrix.dtype)
    return inverse
