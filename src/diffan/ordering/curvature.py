"""Jacobians of a learned score by pushing the input tangents forward through the layers.

A generic Jacobian does d backward passes. Here the first layer's tangents are rows of its weights, the hidden
layers cost one batched product each, and when only the diagonal is wanted the last layer costs a dot product per
variable. Points are taken in chunks, so that what is held at once stays within a stated budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from diffan.score.model import ScoreModel, absence, level_column
from diffan.score.network import Activation, Dropout, LayerNorm, Linear

TENSORS_HELD = 3  # tangents before a layer, after it, and the slope between them
FLOAT_BYTES = 4
Hidden = Linear | Activation | LayerNorm


class Field(Protocol):
    """A score and its derivatives; what leaf finders work with, learned or exact."""

    @property
    def memory_bytes(self) -> int:
        """The most that may be held at once."""
        ...

    def score(self, rows: Tensor, sigma: float) -> Tensor:
        """[n, d] -> [n, d]."""
        ...

    def diagonal(
        self, rows: Tensor, sigma: float, columns: Sequence[int], absent: Sequence[int] = ()
    ) -> Tensor:
        """d s_j / d x_j at rows [n, d] for each j of columns, [n, len(columns)], absent columns at zero."""
        ...

    def jacobian(self, rows: Tensor, sigma: float) -> Tensor:
        """d s_i / d x_j at rows [n, d] as [n, i, j]."""
        ...


@dataclass(frozen=True, eq=False)
class NetworkField:
    """The field of a trained model."""

    model: ScoreModel
    memory_bytes: int = 2**26

    def score(self, rows: Tensor, sigma: float) -> Tensor:
        with torch.no_grad():
            return self.model.score(rows, sigma)

    def diagonal(
        self, rows: Tensor, sigma: float, columns: Sequence[int], absent: Sequence[int] = ()
    ) -> Tensor:
        last = self.model.network.linears[-1]
        own_outputs = last.weight[:, :, list(columns)].transpose(1, 2)  # [M, columns, width]

        def own(tangents: Tensor) -> Tensor:
            return torch.einsum("mbjw,mjw->bj", tangents, own_outputs) / len(own_outputs)

        skip, gain = self._reading(sigma)
        return skip + gain * self._over_chunks(rows, sigma, columns, absent, own)

    def diagonal_of_each(
        self,
        rows: Tensor,
        sigma: float,
        columns: Sequence[Sequence[int]],
        absent: Sequence[Sequence[int]],
    ) -> Tensor:
        """`diagonal` for several tables at once, each with its own columns, as many of each: [tables, k, columns].

        rows are [tables, k, d], as many columns are absent of each; the chunks are of whole tables.
        """
        skip, gain = self._reading(sigma)
        last = self.model.network.linears[-1].weight.transpose(1, 2)  # [M, d, width]

        def some_tables(first: int, count: int) -> Tensor:
            part = slice(first, first + count)
            chunk, own = rows[part], torch.tensor(columns[part], device=rows.device)  # [tables, columns]
            gone = torch.tensor(absent[part], dtype=torch.int64, device=rows.device)  # [tables, absent]
            tangents = _last_hidden_tangents_of_each(self.model, chunk, sigma, own, gone)
            return torch.einsum("mtbjw,mtjw->tbj", tangents, last[:, own]) / len(last)

        budget = self.memory_bytes
        while True:
            count = self._rows_at_once(len(columns[0]), budget) // rows.shape[1] or 1
            try:
                with torch.no_grad():
                    parts = [some_tables(first, count) for first in range(0, len(rows), count)]
                return skip + gain * torch.cat(parts)
            except torch.cuda.OutOfMemoryError:
                if count == 1:
                    raise
                budget //= 4

    def jacobian(self, rows: Tensor, sigma: float) -> Tensor:
        last = self.model.network.linears[-1]

        def every(tangents: Tensor) -> Tensor:
            return last.push(tangents, tangents).mean(0).transpose(1, 2)  # [rows, outputs, inputs]

        skip, gain = self._reading(sigma)
        of_network = self._over_chunks(rows, sigma, range(rows.shape[1]), (), every)
        return gain * of_network + skip * torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)

    def _reading(self, sigma: float) -> tuple[Tensor, Tensor]:
        """s = skip * y + gain * F(y / sqrt(1 + sigma^2)), so ds/dy = skip + scaled gain * dF."""
        level = torch.tensor(sigma, device=self.model.device)
        skip, gain = self.model.reading(level)
        return skip, gain * torch.rsqrt(1 + level.square())

    def _over_chunks(
        self,
        rows: Tensor,
        sigma: float,
        columns: Sequence[int],
        absent: Sequence[int],
        finish: Callable[[Tensor], Tensor],
    ) -> Tensor:
        budget = self.memory_bytes
        while True:
            try:
                with torch.no_grad():
                    parts = [
                        finish(_last_hidden_tangents(self.model, chunk, sigma, columns, absent))
                        for chunk in self._chunks(rows, len(columns), budget)
                    ]
                return torch.cat(parts)
            except torch.cuda.OutOfMemoryError:
                if budget < FLOAT_BYTES:  # a row at a time is too much
                    raise
                budget //= 4

    def _chunks(self, rows: Tensor, directions: int, budget: int | None = None) -> Iterator[Tensor]:
        held = self.memory_bytes if budget is None else budget
        yield from torch.split(rows, self._rows_at_once(directions, held))

    def _rows_at_once(self, directions: int, budget: int) -> int:
        network = self.model.network
        width = max(int(linear.weight.shape[2]) for linear in network.linears)
        per_row = TENSORS_HELD * FLOAT_BYTES * network.members * directions * width
        return max(1, budget // per_row)


def _last_hidden_tangents(
    model: ScoreModel, rows: Tensor, sigma: float, columns: Sequence[int], absent: Sequence[int]
) -> Tensor:
    """d hidden / d input column, before the last layer: [M, rows, columns, width]."""
    first, hidden = _layers(model)
    inputs = model.inputs(rows, level_column(rows, sigma), absence(rows, absent))
    tangents = first.weight[:, None, list(columns), :]  # [M, 1, columns, width], the same at every row
    return _pushed(model, first, hidden, inputs, tangents)


def _last_hidden_tangents_of_each(
    model: ScoreModel, rows: Tensor, sigma: float, columns: Tensor, absent: Tensor
) -> Tensor:
    """The same for tables [tables, k, d] with columns [tables, c] of their own: [M, tables, k, c, width]."""
    first, hidden = _layers(model)
    tables, k, _ = rows.shape
    flat = rows.flatten(0, 1)
    flags = torch.zeros_like(rows[:, 0]).scatter_(1, absent, 1.0).repeat_interleave(k, dim=0)
    inputs = model.inputs(flat, level_column(flat, sigma), flags)
    tangents = first.weight[:, columns, :].repeat_interleave(k, dim=1)  # [M, tables * k, c, width]
    pushed = _pushed(model, first, hidden, inputs, tangents)  # [M, tables * k, c, width]
    return pushed.view(len(pushed), tables, k, *pushed.shape[2:])


def _layers(model: ScoreModel) -> tuple[Linear, list[Hidden]]:
    """The first layer and those between it and the last."""
    first, *hidden, _ = [layer for layer in model.network.layers if not isinstance(layer, Dropout)]
    if not isinstance(first, Linear):
        raise TypeError("A score network begins with a Linear layer.")
    return first, hidden


def _pushed(
    model: ScoreModel, first: Linear, hidden: Sequence[Hidden], inputs: Tensor, tangents: Tensor
) -> Tensor:
    values = first.forward(inputs.expand(model.network.members, -1, -1))  # [M, rows, width]
    for layer in hidden:
        tangents = layer.push(values, tangents)
        values = layer.forward(values)
    return tangents


@dataclass(frozen=True, eq=False)
class AutogradField:
    """The field of any differentiable score of one point, [d] -> [d]: slow, for checks and exact scores."""

    point_score: Callable[[Tensor], Tensor]
    memory_bytes: int = 2**26

    def score(self, rows: Tensor, sigma: float) -> Tensor:
        scores: Tensor = torch.func.vmap(self.point_score)(rows)
        return scores

    def diagonal(
        self, rows: Tensor, sigma: float, columns: Sequence[int], absent: Sequence[int] = ()
    ) -> Tensor:
        flags = absence(rows, absent)
        rows = rows if flags is None else rows * (1 - flags)
        return self.jacobian(rows, sigma).diagonal(dim1=1, dim2=2)[:, list(columns)]

    def jacobian(self, rows: Tensor, sigma: float) -> Tensor:
        derivatives: Tensor = torch.func.vmap(torch.func.jacrev(self.point_score))(rows)
        return derivatives
