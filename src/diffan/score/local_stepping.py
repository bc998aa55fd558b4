"""One training step of every local denoiser on a device; on a GPU the whole step is captured once and replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.local_settings import LocalSettings
from diffan.score.descent import (
    EAGER_STEPS,
    adamw,
    aside,
    captured,
    optimiser_state,
    restore_optimiser,
    set_cosine_rate,
)
from diffan.score.local_batches import SCHEDULE, Batches, denoising_target, draw_present
from diffan.score.local_network import Group

FloatArray = npt.NDArray[np.floating]


class LocalStepper:
    """The nets on one device, their optimiser and the buffers that a captured step reads and writes."""

    def __init__(
        self,
        values: FloatArray,
        train_rows: npt.NDArray[np.intp],
        groups: Sequence[Group],
        settings: LocalSettings,
        rate: float,
        seed: int,
    ) -> None:
        n, device = len(values), groups[0].device
        self._device, self._settings, self._rate = device, settings, rate
        self._dropout = settings.dropout_for(n)
        self._rows = Batches(
            values,
            train_rows,
            settings.batch_for(len(train_rows), gpu=device.type == "cuda"),
            device,
            int(seed),
        )
        self._noise = torch.Generator(device).manual_seed(int(seed))
        self._parameters = [value.requires_grad_() for group in groups for value in group.parameters]
        self._groups = groups
        self._averages = [value.detach().clone() for value in self._parameters]
        weights = [weight for group in groups for weight in group.weights]
        biases = [bias for group in groups for bias in group.biases]
        self._optimiser = adamw(weights, biases, weight_decay=settings.decay_for(n), rate=rate)
        self._loss_sum = torch.zeros((), device=device)
        self._taken = self._since = 0
        self._warm_up = EAGER_STEPS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._may_capture = device.type == "cuda"

    def step(self, share: float) -> None:
        """One update of every net; `share` of the training is then done."""
        set_cosine_rate(self._optimiser, self._rate, share)
        self._rows.advance()
        if self._graph is not None:
            self._graph.replay()
        elif self._may_capture and self._warm_up == 0:
            self._capture()
        elif self._may_capture:
            aside(self._update, self._device)
            self._warm_up -= 1
        else:
            self._update()
        self._taken += 1
        self._since += 1
        early = min(self._settings.local_averaging, (1 + self._taken) / (10 + self._taken))
        with torch.no_grad():
            torch._foreach_lerp_(self._averages, self._parameters, 1 - early)

    def mean_loss(self) -> float:
        """The mean since this was last asked of the squared error, summed over the nets."""
        mean = float(self._loss_sum) / max(self._since, 1)
        self._loss_sum.zero_()
        self._since = 0
        return mean

    def averaged_groups(self) -> Iterator[tuple[int, Group]]:
        """Each group with the averaged weights, by its first variable."""
        at = 0
        for group in self._groups:
            size = len(group.parameters)
            yield int(group.nodes[0]), group.with_parameters(self._averages[at : at + size])
            at += size

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that the next steps depend on: plain JSON values, and tensors as copies."""
        found = optimiser_state(self._optimiser, self._parameters)
        found |= {f"average.{k}": value.clone() for k, value in enumerate(self._averages)}
        found |= {"noise": self._noise.get_state(), "loss": self._loss_sum.clone()}
        return {"taken": self._taken, "since": self._since, "rows": self._rows.state()}, found

    def restore(self, record: dict[str, Any], state: dict[str, Tensor]) -> None:
        """Go on from a state that `state` gave; only before the first step."""
        restore_optimiser(self._optimiser, self._parameters, state)
        for k, average in enumerate(self._averages):
            average.copy_(state[f"average.{k}"])
        self._noise.set_state(state["noise"])
        self._loss_sum.copy_(state["loss"])
        self._taken, self._since = int(record["taken"]), int(record["since"])
        self._rows.restore(record["rows"])

    def _update(self) -> None:
        clean = self._rows.batch.T  # [d, B]
        shares = torch.rand(clean.shape[1], generator=self._noise, device=self._device)
        noise = torch.randn(clean.shape, generator=self._noise, device=self._device)
        sigma = SCHEDULE.quantile(shares)  # [B]
        noised, target = clean + sigma * noise, denoising_target(clean, noise, sigma)
        total = torch.zeros((), device=self._device)
        for group in self._groups:
            present = draw_present(group, clean.shape[1], self._settings.local_absent, self._noise)
            inputs = group.inputs(noised, sigma, present, SCHEDULE)
            with torch.autocast(
                self._device.type, torch.bfloat16, enabled=self._settings.local_bf16, cache_enabled=False
            ):
                output = group.forward(inputs, dropout=self._dropout, generator=self._noise).float()
            total = total + (output - target[group.columns]).square().mean(dim=1).sum()
        for parameter, gradient in zip(
            self._parameters, torch.autograd.grad(total, self._parameters), strict=True
        ):
            parameter.grad = gradient
        self._optimiser.step()
        self._loss_sum += total.detach()

    def _capture(self) -> None:
        self._graph = captured(self._update, self._noise)
        if self._graph is None:
            self._may_capture = False
            self._update()
        else:
            self._graph.replay()
