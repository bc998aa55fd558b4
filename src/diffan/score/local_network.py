r"""Small denoisers, one per variable, run side by side as batched products.

The net of variable j sees its own noised value, those of its candidates, which of the candidates are there, and the
noise level; it answers for E[x_j | what it sees] in the preconditioned reading of `score.model`. Trained with random
candidates absent it knows the score of every marginal: taking a variable out is clearing its bits.

Nets are grouped by their number of candidates, so that a hub's many do not make everyone's net wide. Arrays run
[variable, feature, row].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.score.schedule import ContinuousSchedule

BoolArray = npt.NDArray[np.bool_]
INIT_GAIN = 1.7  # as in the dense network: tanh bends from the start
GROUP_SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
SMALLEST_GROUP = 16  # a group of fewer variables joins the next larger one


@dataclass(eq=False)
class Group:
    """The nets of variables with about as many candidates, on one device."""

    nodes: npt.NDArray[np.intp]  # [g], columns of the table
    columns: Tensor  # [g], the same on the device
    candidates: Tensor  # [g, K] columns, 0 where there is none
    there: Tensor  # [g, K], 1 where there is a candidate
    weights: list[Tensor]  # [g, out, in] per layer; inputs are self, K values, K bits, condition
    biases: list[Tensor]  # [g, out, 1]

    @property
    def device(self) -> torch.device:
        return self.candidates.device

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def with_parameters(self, parameters: Sequence[Tensor]) -> Group:
        """The same nets with other numbers."""
        depth = len(self.weights)
        return replace(self, weights=list(parameters[:depth]), biases=list(parameters[depth:]))

    def subset(self, places: Tensor) -> Group:
        """The nets at some places of the group."""
        return Group(
            self.nodes[places.cpu().numpy()],
            self.columns[places],
            self.candidates[places],
            self.there[places],
            [weight[places] for weight in self.weights],
            [bias[places] for bias in self.biases],
        )

    def inputs(self, noised: Tensor, sigma: Tensor, present: Tensor, schedule: ContinuousSchedule) -> Tensor:
        """What the nets see: noised columns [d, B], levels [B], bits [g, K, B] or [g, K, 1] -> [g, 2 K + 2, B]."""
        scale = (1 + sigma.square()).rsqrt()  # [B]
        scaled = noised * scale
        g, width = self.candidates.shape
        rows = noised.shape[1]
        own = scaled[self.columns][:, None]  # [g, 1, B]
        others = scaled[self.candidates] * present
        condition = schedule.condition(sigma).expand(g, 1, rows)
        return torch.cat([own, others, present.expand(g, width, rows), condition], dim=1)

    def forward(
        self, inputs: Tensor, *, dropout: float = 0.0, generator: torch.Generator | None = None
    ) -> Tensor:
        """The nets' output F, [g, B]."""
        hidden = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = torch.tanh(torch.baddbmm(bias, weight, hidden))
            if dropout:
                kept = torch.rand(hidden.shape, generator=generator, device=hidden.device) >= dropout
                hidden = hidden * kept / (1 - dropout)
        return torch.baddbmm(self.biases[-1], self.weights[-1], hidden)[:, 0]

    def own_derivative(self, inputs: Tensor) -> Tensor:
        """dF / d(own input), [g, B]: one tangent pushed through beside the values."""
        weight, bias = self.weights[0], self.biases[0]
        hidden = torch.tanh(torch.baddbmm(bias, weight, inputs))
        tangent = (1 - hidden.square()) * weight[:, :, :1]
        for weight, bias in zip(self.weights[1:-1], self.biases[1:-1], strict=True):
            hidden = torch.tanh(torch.baddbmm(bias, weight, hidden))
            tangent = (1 - hidden.square()) * torch.bmm(weight, tangent)
        return torch.bmm(self.weights[-1], tangent)[:, 0]


def make_groups(
    neighbours: BoolArray,
    *,
    width: int,
    depth: int,
    rng: np.random.Generator,
    devices: Sequence[torch.device],
) -> list[Group]:
    """Fresh nets for every variable, in groups by number of candidates, spread over the devices."""
    counts = neighbours.sum(axis=1)
    groups = []
    for nodes, slots in _by_size(counts):
        for part, device in zip(np.array_split(nodes, len(devices)), devices, strict=True):
            if len(part):
                groups.append(_fresh(part, neighbours, slots, width, depth, rng, device))
    return groups


def _by_size(counts: npt.NDArray[np.intp]) -> list[tuple[npt.NDArray[np.intp], int]]:
    """(variables, slots) with slots enough for each; the few of a small class go up a class."""
    found: list[tuple[npt.NDArray[np.intp], int]] = []
    waiting = np.empty(0, dtype=np.intp)
    bounds = [0, *(size for size in GROUP_SIZES if size < len(counts)), max(len(counts), 1)]
    for low, high in pairwise(bounds):
        inside = np.flatnonzero((counts > low) & (counts <= high)) if low else np.flatnonzero(counts <= high)
        waiting = np.sort(np.concatenate([waiting, inside]))
        if len(waiting) >= SMALLEST_GROUP or (len(waiting) and high >= counts.max(initial=0)):
            found.append((waiting, max(1, int(counts[waiting].max(initial=1)))))
            waiting = np.empty(0, dtype=np.intp)
    return found


def _fresh(
    nodes: npt.NDArray[np.intp],
    neighbours: BoolArray,
    slots: int,
    width: int,
    depth: int,
    rng: np.random.Generator,
    device: torch.device,
) -> Group:
    candidates = np.zeros((len(nodes), slots), dtype=np.int64)
    there = np.zeros((len(nodes), slots), dtype=np.float32)
    for place, node in enumerate(nodes):
        own = np.flatnonzero(neighbours[node])
        candidates[place, : len(own)] = own
        there[place, : len(own)] = 1.0
    sizes = [2 * slots + 2, *([width] * depth), 1]
    weights, biases = [], []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        # The padding's inputs are always zero, so a net starts alike however wide its group is.
        effective = (2 * there.sum(axis=1) + 2)[:, None, None] if layer == 0 else n_in
        reach = INIT_GAIN / np.sqrt(effective)
        drawn = rng.uniform(-1, 1, size=(len(nodes), n_out, n_in)) * reach
        if layer == len(sizes) - 2:
            drawn *= 0.1  # near F = 0, the answer for independent normals
        weights.append(torch.tensor(drawn, dtype=torch.float32, device=device))
        biases.append(torch.zeros((len(nodes), n_out, 1), device=device))
    columns, slots_of, bits = (torch.as_tensor(array, device=device) for array in (nodes, candidates, there))
    return Group(nodes, columns, slots_of, bits, weights, biases)


def score_derivative(own: Tensor, sigma: Tensor) -> Tensor:
    """d s_j / d x_j from dF_j / d(own input): s = -y / (1 + sigma^2) + F / (sigma sqrt(1 + sigma^2))."""
    square = sigma.square()
    return -1 / (1 + square) + own / (sigma * (1 + square))
