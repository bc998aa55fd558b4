"""One training step, eager on the CPU and replayed as a CUDA graph on a GPU.

Where a batch does not fit into memory it is computed in parts, whose gradients add up to those of the whole; where
several processes train together each computes its part.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from diffan.errors import FitError
from diffan.score.batches import Batches
from diffan.score.descent import (
    EAGER_STEPS,
    adamw,
    aside,
    captured,
    optimiser_state,
    restore_optimiser,
    set_cosine_rate,
)
from diffan.score.holdout import squared_error
from diffan.score.model import ScoreModel
from diffan.score.team import ALONE, Team


class Stepper:
    """Holds the optimiser and the static buffers that a captured step reads and writes."""

    def __init__(
        self,
        model: ScoreModel,
        batches: Batches,
        *,
        learning_rate: float,
        noise_seed: int,
        team: Team = ALONE,
    ) -> None:
        self._model, self._batches, self._team = model, batches, team
        self._parameters = [value.requires_grad_() for value in model.network.tensors().values()]
        weights = [linear.weight for linear in model.network.linears]
        others = [value for value in self._parameters if all(value is not weight for weight in weights)]
        self._rate = learning_rate
        self._optimiser = adamw(weights, others, weight_decay=model.settings.weight_decay, rate=learning_rate)
        self._noise = torch.Generator(model.device).manual_seed(noise_seed)
        self._loss_sum = torch.zeros((), device=model.device)
        self._taken, self._since = 0, 0  # steps in all, and since the mean loss was asked
        self._parts = 1  # of a batch, computed one after the other
        self._warm_up = EAGER_STEPS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._may_capture = model.device.type == "cuda" and team is ALONE

    @property
    def parameters(self) -> list[Tensor]:
        return self._parameters

    def step(self) -> None:
        """One update of every network."""
        self._batches.advance()
        if self._model.settings.cosine:
            set_cosine_rate(self._optimiser, self._rate, self._taken / self._model.settings.max_steps)
        if self._graph is not None:
            self._graph.replay()
        elif self._may_capture and self._warm_up == 0:
            self._capture()
        else:
            self._fitting_update()
            self._warm_up = max(0, self._warm_up - 1)
        self._taken += 1
        self._since += 1

    def mean_loss(self) -> float:
        """The mean training loss since this was last asked."""
        mean = float(self._loss_sum) / max(self._since, 1)
        self._loss_sum.zero_()
        self._since = 0
        return mean

    def state(self) -> dict[str, Tensor]:
        """All that the next steps depend on, as copies."""
        found = optimiser_state(self._optimiser, self._parameters)
        found |= {f"batches.{name}": value for name, value in self._batches.state().items()}
        counts = torch.tensor([self._taken, self._since, self._parts])
        return found | {"noise": self._noise.get_state(), "loss": self._loss_sum.clone(), "counts": counts}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a state that `state` gave; only before the first step."""
        restore_optimiser(self._optimiser, self._parameters, state)
        places = {name[8:]: value for name, value in state.items() if name.startswith("batches.")}
        self._batches.restore(places)
        self._noise.set_state(state["noise"])
        self._loss_sum.copy_(state["loss"])
        self._taken, self._since, self._parts = (int(count) for count in state["counts"])

    def _fitting_update(self) -> None:
        """An update in as many parts as memory asks for: each time it runs out, twice as many."""
        while True:
            before = self._noise.get_state()
            try:
                if self._may_capture:
                    aside(self._update, self._model.device)
                else:
                    self._update()
                return
            except torch.cuda.OutOfMemoryError:
                rows = self._batches.clean().shape[1]
                if 2 * self._parts > rows:
                    raise FitError(_does_not_fit(self._model)) from None
                self._parts *= 2
                self._noise.set_state(before)
                if self._model.device.type == "cuda":
                    torch.cuda.empty_cache()

    def _update(self) -> None:
        model, members = self._model, self._model.network.members
        clean = self._batches.clean()  # [M, batch, d]
        share = torch.rand(*clean.shape[:2], 1, generator=self._noise, device=clean.device)
        noise = torch.randn(clean.shape, generator=self._noise, device=clean.device)
        sigma = model.schedule.quantile(share)
        absent = self._draw_absence(clean)
        inputs = model.inputs(clean + sigma * noise, sigma, absent)
        target = model.target(clean, noise, sigma)
        dropout = model.network.draw_dropout(clean.shape[1], self._noise)
        total: Tensor | None = None
        gradients: list[Tensor] = []
        for part, weight in self._parts_of(clean.shape[1], absent):
            output = model.network.forward(inputs[:, part], [octets[:, part] for octets in dropout])
            error = squared_error(output, target[:, part], None if absent is None else absent[:, part])
            if weight is not None:
                error = error * weight
            loss = error * members  # the sum over networks: each is trained as if it were alone
            found = torch.autograd.grad(loss, self._parameters)
            gradients = [a + b for a, b in zip(gradients, found, strict=True)] if gradients else list(found)
            total = loss.detach() if total is None else total + loss.detach()
        if total is None:  # more processes than rows
            total, gradients = torch.zeros_like(self._loss_sum), list(map(torch.zeros_like, self._parameters))
        self._team.add_up([*gradients, total])
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        self._loss_sum += total / members

    def _parts_of(self, rows: int, absent: Tensor | None) -> Iterator[tuple[slice, Tensor | float | None]]:
        """The parts of a batch to compute here, and the share of the whole loss that each has; None for all of it."""
        first, last = self._team.share(rows)
        if self._parts == 1 and (first, last) == (0, rows):
            yield slice(None), None
            return
        step = max(1, -(-(last - first) // self._parts))
        for start in range(first, last, step):
            part = slice(start, min(start + step, last))
            if absent is None:
                yield part, (part.stop - part.start) / rows
            else:
                yield part, (1 - absent[:, part]).sum() / (1 - absent).sum().clamp(min=1)

    def _draw_absence(self, clean: Tensor) -> Tensor | None:
        """Some rows lack columns, each such row a random share of them: 0/1 of the shape of clean."""
        if not self._model.knows_absence:
            return None
        uniform = torch.rand(clean.shape, generator=self._noise, device=clean.device)
        lots = torch.rand(2, *clean.shape[:2], 1, generator=self._noise, device=clean.device)
        lacking = lots[0] < self._model.settings.drop_columns
        return ((uniform < lots[1]) & lacking).to(clean.dtype)

    def _capture(self) -> None:
        self._graph = captured(self._update, self._noise)
        if self._graph is None:
            self._may_capture = False
            self._fitting_update()
        else:
            self._graph.replay()


def _does_not_fit(model: ScoreModel) -> str:
    weights = sum(value.numel() for value in model.network.tensors().values())
    return (
        f"Training does not fit into the GPU's memory even one row at a time: the networks alone take "
        f"{16 * weights / 2**20:,.0f} MiB; take device='cpu', a smaller width or fewer networks (ensemble)."
    )
