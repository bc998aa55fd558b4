"""Multilayer perceptrons as plain lists of layers, M of them side by side.

Every weight has a leading axis of M networks, so an ensemble is one batched matrix product. Every layer can
carry tangents as well as values, which is what `ordering.curvature` needs: no generic Jacobian is ever built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diffan.settings import ScoreSettings

LEAKY_SLOPE = 0.01


@dataclass(frozen=True, eq=False)
class Linear:
    weight: Tensor  # [M, inputs, outputs]
    bias: Tensor  # [M, 1, outputs]

    def forward(self, values: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, values, self.weight)  # [M, rows, outputs]

    def push(self, values: Tensor, tangents: Tensor) -> Tensor:
        """Tangents [M, rows, directions, inputs] -> [M, rows, directions, outputs]."""
        members, rows, directions, inputs = tangents.shape
        flat = torch.bmm(tangents.reshape(members, rows * directions, inputs), self.weight)
        return flat.reshape(members, rows, directions, -1)


@dataclass(frozen=True)
class Activation:
    name: str

    def forward(self, values: Tensor) -> Tensor:
        return _ACTIVATIONS[self.name](values)

    def push(self, values: Tensor, tangents: Tensor) -> Tensor:
        return tangents * _SLOPES[self.name](values).unsqueeze(2)


@dataclass(frozen=True, eq=False)
class LayerNorm:
    gain: Tensor  # [M, 1, width]
    shift: Tensor  # [M, 1, width]

    def forward(self, values: Tensor) -> Tensor:
        normal, _ = self._normalise(values)
        return normal * self.gain + self.shift

    def push(self, values: Tensor, tangents: Tensor) -> Tensor:
        normal, spread = self._normalise(values)
        normal, spread = normal.unsqueeze(2), spread.unsqueeze(2)
        centred = tangents - tangents.mean(-1, keepdim=True)
        along = (normal * tangents).mean(-1, keepdim=True)
        return (centred - normal * along) / spread * self.gain.unsqueeze(2)

    @staticmethod
    def _normalise(values: Tensor) -> tuple[Tensor, Tensor]:
        centred = values - values.mean(-1, keepdim=True)
        spread = torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
        return centred / spread, spread


@dataclass(frozen=True)
class Dropout:
    """Acts in training only, where the network is given a generator; a derivative never sees it."""

    rate: float

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Random bytes rather than uniforms: eight decisions from each 64-bit draw, which is what CPUs wait for."""
        count = math.prod(shape)
        words = torch.empty((count + 7) // 8, dtype=torch.int64, device=generator.device)
        return words.random_(-(2**63), None, generator=generator).view(torch.uint8)[:count].view(shape)

    def drop(self, values: Tensor, octets: Tensor) -> Tensor:
        threshold = round(256 * self.rate)
        kept = (octets >= threshold).to(values.dtype).mul_(256 / (256 - threshold))
        return values * kept


Layer = Linear | Activation | LayerNorm | Dropout


@dataclass(frozen=True, eq=False)
class Network:
    """M perceptrons of one shape."""

    layers: tuple[Layer, ...]

    def forward(self, inputs: Tensor, dropout: Sequence[Tensor] | None = None) -> Tensor:
        """[M, rows, inputs] -> [M, rows, outputs]; dropout only when its random bytes are given."""
        values, drawn = inputs, iter(dropout or ())
        for layer in self.layers:
            if not isinstance(layer, Dropout):
                values = layer.forward(values)
            elif dropout is not None and layer.rate > 0:
                values = layer.drop(values, next(drawn))
        return values

    def draw_dropout(self, rows: int, generator: torch.Generator) -> list[Tensor]:
        """The random bytes of every dropout for a batch, each [M, rows, width].

        Drawn for the whole batch before it is computed, so that it may be computed in parts.
        """
        drawn, width = list[Tensor](), 0
        for layer in self.layers:
            if isinstance(layer, Linear):
                width = int(layer.weight.shape[2])
            elif isinstance(layer, Dropout) and layer.rate > 0:
                drawn.append(layer.draw((self.members, rows, width), generator))
        return drawn

    @property
    def members(self) -> int:
        return int(self.linears[0].weight.shape[0])

    @property
    def linears(self) -> list[Linear]:
        return [layer for layer in self.layers if isinstance(layer, Linear)]

    def tensors(self) -> dict[str, Tensor]:
        """Every parameter by a name that says its layer and its part."""
        named: dict[str, Tensor] = {}
        for place, layer in enumerate(self.layers):
            if isinstance(layer, (Linear, LayerNorm)):
                named |= {f"layer{place}.{part}": value for part, value in vars(layer).items()}
        return named

    def mapped(self, change: Callable[[str, Tensor], Tensor]) -> Network:
        """The same network with every parameter replaced by change(name, parameter)."""
        layers: list[Layer] = []
        for place, layer in enumerate(self.layers):
            if isinstance(layer, (Linear, LayerNorm)):
                parts = {part: change(f"layer{place}.{part}", value) for part, value in vars(layer).items()}
                layers.append(type(layer)(**parts))
            else:
                layers.append(layer)
        return Network(tuple(layers))


def make_network(n_variables: int, settings: ScoreSettings, generator: torch.Generator) -> Network:
    """Fresh networks on the generator's device: inputs are the variables, who is absent, the noise condition."""
    inputs = n_variables * (2 if settings.drop_columns > 0 else 1) + 1
    if settings.architecture == "paper":
        return _paper_network(n_variables, inputs, settings, generator)
    layers: list[Layer] = []
    width = inputs
    for _ in range(settings.depth):
        layers.append(_linear(width, settings.width, settings.ensemble, generator, settings.init_gain))
        layers += [Activation(settings.activation), Dropout(settings.dropout)]
        width = settings.width
    layers.append(_linear(width, n_variables, settings.ensemble, generator, 0.0))
    return Network(tuple(layers))


def _paper_network(
    n_variables: int, inputs: int, settings: ScoreSettings, generator: torch.Generator
) -> Network:
    """The paper's table of layers; `depth` and `width` do not apply."""
    big, small = max(1024, 5 * n_variables), max(128, 3 * n_variables)
    members, bend = settings.ensemble, Activation(settings.activation)
    return Network(
        (
            _linear(inputs, small, members, generator),
            bend,
            _layer_norm(small, members, generator),
            Dropout(settings.dropout),
            _linear(small, big, members, generator),
            bend,
            _layer_norm(big, members, generator),
            _linear(big, big, members, generator),
            bend,
            _linear(big, big, members, generator),
            bend,
            _linear(big, n_variables, members, generator),
        )
    )


def _linear(inputs: int, outputs: int, members: int, generator: torch.Generator, gain: float = 1.0) -> Linear:
    """Uniform in +-gain/sqrt(inputs); torch.nn.Linear starts with a gain of 1."""
    bound = gain / math.sqrt(inputs)
    device = generator.device
    weight = torch.empty(members, inputs, outputs, device=device).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(members, 1, outputs, device=device).uniform_(-bound, bound, generator=generator)
    return Linear(weight, bias)


def _layer_norm(width: int, members: int, generator: torch.Generator) -> LayerNorm:
    shape = (members, 1, width)
    return LayerNorm(torch.ones(shape, device=generator.device), torch.zeros(shape, device=generator.device))


def _silu_slope(values: Tensor) -> Tensor:
    gate = torch.sigmoid(values)
    return gate * (1 + values * (1 - gate))


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
    "leaky_relu": lambda values: torch.nn.functional.leaky_relu(values, LEAKY_SLOPE),
}
_SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": lambda values: 1 - torch.tanh(values).square(),
    "silu": _silu_slope,
    "softplus": torch.sigmoid,
    "leaky_relu": lambda values: torch.where(values > 0, 1.0, LEAKY_SLOPE).to(values.dtype),
}
