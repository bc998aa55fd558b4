"""One training step, eager on the CPU and replayed as a CUDA graph on a GPU.

Networks this small spend their time on kernel launches, not arithmetic; a graph launches a whole step at once.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.score.holdout import squared_error
from diffan.score.model import ScoreModel

EAGER_STEPS = 3  # before a capture, so that the optimiser's state and the libraries' work space exist


class Stepper:
    """Holds the optimiser and the static buffers that a captured step reads and writes."""

    def __init__(
        self,
        model: ScoreModel,
        data: Tensor,
        train_rows: npt.NDArray[np.int64],
        *,
        learning_rate: float,
        batch_size: int,
        seeds: tuple[int, int],
    ) -> None:
        self._model, self._data = model, data
        self._parameters = [value.requires_grad_() for value in model.network.tensors().values()]
        on_gpu = data.device.type == "cuda"
        weights = [linear.weight for linear in model.network.linears]
        others = [value for value in self._parameters if all(value is not weight for weight in weights)]
        self._rate = learning_rate
        self._optimiser = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": model.settings.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            # A captured step reads the rate from memory, so that it can change between replays.
            lr=torch.tensor(learning_rate, device=data.device) if on_gpu else learning_rate,
            fused=True,
            capturable=on_gpu,
        )
        self._noise = torch.Generator(data.device).manual_seed(seeds[0])
        self._shuffler = torch.Generator(data.device).manual_seed(seeds[1])
        self._train_rows = torch.as_tensor(train_rows, device=data.device)  # [M, rows]
        self._full = batch_size >= train_rows.shape[1]
        first = _repeated(self._train_rows, batch_size) if self._full else self._train_rows[:, :batch_size]
        self._rows = first.clone()  # [M, batch]: the rows of the next step
        self._shuffled, self._used = self._train_rows, train_rows.shape[1]
        self._loss_sum = torch.zeros((), device=data.device)
        self._taken, self._since = 0, 0  # steps in all, and since the mean loss was asked
        self._graph: torch.cuda.CUDAGraph | None = None
        self._may_capture = on_gpu

    @property
    def parameters(self) -> list[Tensor]:
        return self._parameters

    def step(self) -> None:
        """One update of every network."""
        if not self._full:
            self._next_rows()
        if self._model.settings.cosine:
            self._set_rate()
        if self._graph is not None:
            self._graph.replay()
        elif self._may_capture and self._taken >= EAGER_STEPS:
            self._capture()
        elif self._may_capture:
            self._aside()
        else:
            self._update()
        self._taken += 1
        self._since += 1

    def mean_loss(self) -> float:
        """The mean training loss since this was last asked."""
        mean = float(self._loss_sum) / max(self._since, 1)
        self._loss_sum.zero_()
        self._since = 0
        return mean

    def _set_rate(self) -> None:
        """The rate falls along half a cosine, to zero at max_steps."""
        share = min(1.0, self._taken / self._model.settings.max_steps)
        rate = self._rate * 0.5 * (1 + math.cos(math.pi * share))
        for group in self._optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _update(self) -> None:
        model, members = self._model, self._model.network.members
        clean = self._data[self._rows]  # [M, batch, d]
        share = torch.rand(*clean.shape[:2], 1, generator=self._noise, device=clean.device)
        noise = torch.randn(clean.shape, generator=self._noise, device=clean.device)
        sigma = model.schedule.quantile(share)
        absent = self._draw_absence(clean)
        inputs = model.inputs(clean + sigma * noise, sigma, absent)
        output = model.network.forward(inputs, dropout=self._noise)
        error = squared_error(output, model.target(clean, noise, sigma), absent)
        loss = error * members  # the sum over networks: each is trained as if it were alone
        gradients = torch.autograd.grad(loss, self._parameters)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        self._loss_sum += loss.detach() / members

    def _draw_absence(self, clean: Tensor) -> Tensor | None:
        """Some rows lack columns, each such row a random share of them: 0/1 of the shape of clean."""
        if not self._model.knows_absence:
            return None
        uniform = torch.rand(clean.shape, generator=self._noise, device=clean.device)
        lots = torch.rand(2, *clean.shape[:2], 1, generator=self._noise, device=clean.device)
        lacking = lots[0] < self._model.settings.drop_columns
        return ((uniform < lots[1]) & lacking).to(clean.dtype)

    def _aside(self) -> None:
        side: torch.cuda.Stream = torch.cuda.Stream(self._data.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(self._data.device))
        with torch.cuda.stream(side):
            self._update()
        torch.cuda.current_stream(self._data.device).wait_stream(side)

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self._noise)
            with torch.cuda.graph(graph):
                self._update()
        except (RuntimeError, AttributeError):
            self._may_capture = False
            self._update()
            return
        self._graph = graph
        graph.replay()

    def _next_rows(self) -> None:
        """The next rows of a shuffled pass over the data; the rest of a pass shorter than a batch is left out."""
        members, count = self._train_rows.shape
        batch = self._rows.shape[1]
        if self._used + batch > count:
            orders = [
                torch.randperm(count, generator=self._shuffler, device=self._rows.device)
                for _ in range(members)
            ]
            self._shuffled, self._used = self._train_rows.gather(1, torch.stack(orders)), 0
        self._rows.copy_(self._shuffled[:, self._used : self._used + batch])
        self._used += batch


def _repeated(rows: Tensor, batch_size: int) -> Tensor:
    """Whole passes over the rows, so that a small table still fills a batch: each row equally often."""
    return rows.repeat(1, max(1, batch_size // rows.shape[1]))
