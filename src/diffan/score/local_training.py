"""Training of all local denoisers at once: one batch of rows, one step, one stopping point for everyone.

Every step draws rows, noise levels, noise and absent candidates; on a GPU the whole step is captured once and replayed.
Nets are independent of each other given the rows, so several GPUs simply hold different variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.errors import FitError
from diffan.local_settings import LocalSettings
from diffan.progress import Progress, Task
from diffan.score.descent import EAGER_STEPS, adamw, aside, captured, set_cosine_rate
from diffan.score.local_batches import SCHEDULE, Batches, HeldOut, denoising_target, draw_present
from diffan.score.local_network import Group, make_groups

FloatArray = npt.NDArray[np.floating]
Losses = dict[str, list[float]]
LOOKS = 40  # at the held-out loss, over the whole training
MOST_HELD_OUT = 2000
SLOWER = 0.3
RESTARTS = 3


def train_local(
    values: FloatArray,
    neighbours: npt.NDArray[np.bool_],
    settings: LocalSettings,
    rng: np.random.Generator,
    devices: Sequence[torch.device],
    progress: Progress,
) -> tuple[list[Group], Losses]:
    """Denoisers of standardised rows [n, d], one per column over its neighbours; losses are named curves."""
    n = len(values)
    shuffled = rng.permutation(n)
    count = min(MOST_HELD_OUT, max(1, round(settings.local_holdout * n)), n - 1)
    held_rows, train_rows = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    rate = settings.local_rate
    steps = settings.steps_for(n, gpu=devices[0].type == "cuda")
    for _ in range(RESTARTS + 1):
        groups = make_groups(
            neighbours, width=settings.local_width, depth=settings.local_depth, rng=rng, devices=devices
        )
        held_out = [
            HeldOut.of(values[held_rows], group, settings, int(rng.integers(2**62))) for group in groups
        ]
        trainers = [
            _Trainer(
                values,
                train_rows,
                [g for g in groups if g.device == device],
                settings,
                rate,
                int(rng.integers(2**62)),
            )
            for device in dict.fromkeys(group.device for group in groups)
        ]
        with progress.task("score", steps) as task, _fast_products():
            found = _descend(trainers, held_out, groups, steps, settings, task)
        if found is not None:
            return found
        rate *= SLOWER
    raise FitError(
        f"The training loss was not a number {RESTARTS + 1} times; look for extreme values in the table or set a "
        "lower local_rate."
    )


def _descend(
    trainers: Sequence[_Trainer],
    held_out: Sequence[HeldOut],
    groups: Sequence[Group],
    steps: int,
    settings: LocalSettings,
    task: Task,
) -> tuple[list[Group], Losses] | None:
    """Train until the held-out loss of the averaged weights stops falling; None when it left the numbers."""
    losses: Losses = {"step": [], "train": [], "validation": []}
    best: list[list[Tensor]] = []
    lowest, worse, every = math.inf, 0, max(1, steps // LOOKS)
    for step in range(1, steps + 1):
        for trainer in trainers:
            trainer.step(step / steps)
        if step % every and step != steps:
            continue
        averaged = {node: group for trainer in trainers for node, group in trainer.averaged_groups()}
        in_order = [averaged[int(group.nodes[0])] for group in groups]
        train = sum(trainer.mean_loss() for trainer in trainers) / _n_nodes(groups)
        loss = sum(held.loss(group) for held, group in zip(held_out, in_order, strict=True)) / _n_nodes(
            groups
        )
        if not math.isfinite(train) or not math.isfinite(loss):
            return None
        for name, value in (("step", float(step)), ("train", train), ("validation", loss)):
            losses[name].append(value)
        task.advance(every, f"held-out loss {loss:.4f}")
        if loss < lowest:
            lowest, worse = loss, 0
            best = [[value.detach().clone() for value in group.parameters] for group in in_order]
        else:
            worse += 1
            if worse >= settings.local_patience:
                break
    return [group.with_parameters(values) for group, values in zip(groups, best, strict=True)], losses


def _n_nodes(groups: Sequence[Group]) -> int:
    return sum(len(group.nodes) for group in groups)


class _Trainer:
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
        self._graph: torch.cuda.CUDAGraph | None = None
        self._may_capture = device.type == "cuda"

    def step(self, share: float) -> None:
        """One update of every net; `share` of the training is then done."""
        set_cosine_rate(self._optimiser, self._rate, share)
        self._rows.advance()
        if self._graph is not None:
            self._graph.replay()
        elif self._may_capture and self._taken >= EAGER_STEPS:
            self._capture()
        elif self._may_capture:
            aside(self._update, self._device)
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


@contextmanager
def _fast_products() -> Iterator[None]:
    """Let GPUs round the factors of products to TF32, as training can bear."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
