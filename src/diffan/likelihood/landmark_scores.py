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
from diffan.likelihood.kernel import bell, multiplied
from diffan.likelihood.low_rank import JITTER, inverse_factor

Parents = frozenset[int]
Fit = tuple[int, Parents]
INTERACTION = 0.5  # choice: the middle of what single nodes choose from in the full search
RIDGES = (0.1, 0.5, 2.0)  # noise variance over signal variance
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
        bells = (bell(column, column[:, :m], BANDWIDTH) for column in points.unbind(dim=1))
        near = multiplied(points.new_ones((len(nodes), self._n, m)), bells, INTERACTION)  # [b, n, m]
        whiten = inverse_factor(near[:, :m], JITTER)
        features = torch.bmm(near, whiten.mT)  # [b, n, m]
        del near
        gram = torch.bmm(features.mT, features)
        moment = torch.bmm(features.mT, target[:, :, None])  # [b, m, 1]
        best = torch.full_like(target, math.inf)
        lowest = torch.full((len(nodes),), math.inf, dtype=torch.float64, device=target.device)
        for ridge in RIDGES:
            half = inverse_factor(gram, ridge)
            turned = torch.bmm(features, half.mT)
            fitted = torch.bmm(turned, torch.bmm(half, moment))[:, :, 0]
            leverage = turned.square().sum(dim=2)
            residuals = (target - fitted) / (1 - leverage).clamp(min=1e-6)
            spread = residuals.double().square().mean(dim=1)
            better = spread < lowest
            best = torch.where(better[:, None], residuals, best)
            lowest = torch.where(better, spread, lowest)
        return best
