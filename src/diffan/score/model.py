r"""The one place where a network's output becomes a score.

Rows are in the frame of the data, y = x + sigma * eps, and the score is that of their density:
s_sigma(y) = grad log p_sigma(y) = (E[x | y] - y) / sigma^2. The network is given y / sqrt(1 + sigma^2) and a
condition that tells sigma. Two readings of its output F:

- "preconditioned": E[x | y] = y / (1 + sigma^2) + sigma / sqrt(1 + sigma^2) F. With F = 0 this is the exact
  answer for independent unit normals, so the network learns only what is not that.
- "noise": F estimates eps (the paper), and s = -F / sigma.

Either way s = skip(sigma) * y + gain(sigma) * F; nothing downstream sees F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.errors import InputError
from diffan.score.network import Linear, Network, make_network
from diffan.score.schedule import NoiseSchedule, make_schedule
from diffan.settings import ScoreSettings


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """A learned score over d standardised variables, averaged over an ensemble of M networks."""

    network: Network
    settings: ScoreSettings
    schedule: NoiseSchedule

    @classmethod
    def of(cls, network: Network, settings: ScoreSettings) -> ScoreModel:
        """The network read as the settings say."""
        return cls(network, settings, make_schedule(settings, network.linears[0].weight.device))

    @property
    def n_variables(self) -> int:
        return int(self.network.linears[-1].weight.shape[2])

    @property
    def device(self) -> torch.device:
        return self.network.linears[0].weight.device

    @property
    def knows_absence(self) -> bool:
        """Whether the network was trained on rows that lack columns, and so has the score of any marginal."""
        return self.settings.drop_columns > 0

    def inputs(self, rows: Tensor, sigma: Tensor, absent: Tensor | None = None) -> Tensor:
        """What the network is given: noised rows [..., n, d] scaled, who is absent (if it knows), the condition.

        `sigma` is [..., n, 1]; `absent` is 0/1 like rows, and the entries it marks are put to zero.
        """
        scaled, condition = rows * input_scale(sigma), self.schedule.condition(sigma)
        if absent is not None:
            scaled = scaled * (1 - absent)
        if not self.knows_absence:
            return torch.cat([scaled, condition], dim=-1)  # [..., n, d + 1]
        flags = torch.zeros_like(rows) if absent is None else absent
        return torch.cat([scaled, flags, condition], dim=-1)  # [..., n, 2 d + 1]

    def score(self, rows: Tensor, sigma: float | Tensor, absent: Sequence[int] = ()) -> Tensor:
        """grad log p_sigma at rows [n, d]; sigma is one level or one per row, [n, 1].

        With absent columns it is the score of the marginal over the others if the model knows absence, and else
        that of the whole with those columns at zero; entries of absent columns mean nothing.
        """
        levels = level_column(rows, sigma)
        members = self.network.members
        inputs = self.inputs(rows, levels, absence(rows, absent))
        output = self.network.forward(inputs.expand(members, -1, -1)).mean(0)  # [n, d]
        skip, gain = self.reading(levels)
        return skip * rows + gain * output

    def reading(self, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """skip and gain of s = skip * y + gain * F."""
        if self.settings.prediction == "noise":
            return torch.zeros_like(sigma), -1 / sigma
        return -1 / (1 + sigma.square()), input_scale(sigma) / sigma

    def target(self, clean: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
        """What F is trained towards, of unit variance on unit-variance columns."""
        if self.settings.prediction == "noise":
            return noise
        return (sigma * clean - noise) * input_scale(sigma)

    def restricted(self, columns: list[int]) -> ScoreModel:
        """The model of these columns alone, the others held at zero: a start for training on fewer columns."""
        d = self.n_variables
        flags = [d + column for column in columns] if self.knows_absence else []
        inputs = [*columns, *flags, -1]  # the condition is the last input
        *hidden, last = self.network.layers
        first = hidden.pop(0)
        if not isinstance(first, Linear) or not isinstance(last, Linear):
            raise TypeError("A score network begins and ends with a Linear layer.")
        narrowed = (
            Linear(first.weight[:, inputs], first.bias),
            *hidden,
            Linear(last.weight[:, :, columns], last.bias[:, :, columns]),
        )
        return ScoreModel.of(Network(narrowed).mapped(lambda _, value: value.clone()), self.settings)

    def to_arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Named float32 arrays, as stored beside a result."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.network.tensors().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[np.float32]], settings: ScoreSettings) -> ScoreModel:
        """The model that `to_arrays` wrote, on the CPU; `settings` are those it was trained with."""
        biases = [name for name in arrays if name.endswith(".bias")]
        if not biases:
            raise InputError("A stored score model needs arrays named 'layer<k>.weight' and 'layer<k>.bias'.")
        last = max(biases, key=lambda name: int(name[5:].split(".")[0]))
        blank = make_network(arrays[last].shape[-1], settings, torch.Generator())
        if {name: tuple(value.shape) for name, value in arrays.items()} != {
            name: tuple(value.shape) for name, value in blank.tensors().items()
        }:
            raise InputError(
                "The stored arrays do not fit these settings; give the settings they were trained with."
            )
        return cls.of(blank.mapped(lambda name, _: torch.from_numpy(np.array(arrays[name]))), settings)


def absence(rows: Tensor, absent: Sequence[int]) -> Tensor | None:
    """1 where a row [n, d] lacks a column; None when none does."""
    if not absent:
        return None
    flags = torch.zeros_like(rows)
    flags[:, list(absent)] = 1.0
    return flags


def input_scale(sigma: Tensor) -> Tensor:
    """1 / sqrt(1 + sigma^2): keeps noised unit-variance columns at unit variance."""
    return torch.rsqrt(1 + sigma.square())


def level_column(rows: Tensor, sigma: float | Tensor) -> Tensor:
    """One noise level per row, [n, 1]."""
    if isinstance(sigma, Tensor) and sigma.ndim == 2:
        return sigma
    return torch.full((rows.shape[0], 1), float(sigma), dtype=rows.dtype, device=rows.device)
