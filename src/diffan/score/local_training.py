"""Training of all local denoisers at once: one batch of rows, one step, one stopping point for everyone.

Every step draws rows, noise levels, noise and absent candidates; on a GPU the whole step is captured once and replayed.
Nets are independent of each other given the rows, so several GPUs simply hold different variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.errors import FitError
from diffan.local_settings import LocalSettings
from diffan.progress import Progress, Task
from diffan.score.local_network import Group, make_groups
from diffan.score.schedule import ContinuousSchedule

FloatArray = npt.NDArray[np.floating]
Losses = dict[str, list[float]]
SCHEDULE = ContinuousSchedule(-1.0, 0.7)  # measured for the dense network: log sigma ~ normal(-1, 0.7)
EAGER_STEPS = 3
LOOKS = 40  # at the held-out loss, over the whole training
MOST_HELD_OUT = 2000
HELD_OUT_POINTS = 2048
HELD_OUT_VALUES = 2**26  # hidden values held at once while the held-out loss is taken
SHARE_OF_MEMORY = 0.25  # of the device's free memory that the table may take; else batches come from the host
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
            _HeldOut.of(values[held_rows], group, settings, int(rng.integers(2**62))) for group in groups
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
    held_out: Sequence[_HeldOut],
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
        averaged = [average for trainer in trainers for average in trainer.averaged_groups()]
        in_order = [averaged[_place(averaged, group)] for group in groups]
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


def _place(averaged: Sequence[Group], group: Group) -> int:
    return next(k for k, other in enumerate(averaged) if other.candidates is group.candidates)


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
        self._rows = _Rows(
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
        on_gpu = device.type == "cuda"
        weights = [weight for group in groups for weight in group.weights]
        biases = [bias for group in groups for bias in group.biases]
        self._optimiser = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": settings.decay_for(n)},
                {"params": biases, "weight_decay": 0.0},
            ],
            lr=torch.tensor(rate, device=device) if on_gpu else rate,
            fused=True,
            capturable=on_gpu,
        )
        self._loss_sum = torch.zeros((), device=device)
        self._taken = self._since = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._may_capture = on_gpu

    def step(self, share: float) -> None:
        """One update of every net; `share` of the training is then done."""
        self._set_rate(self._rate * 0.5 * (1 + math.cos(math.pi * share)))
        self._rows.advance()
        if self._graph is not None:
            self._graph.replay()
        elif self._may_capture and self._taken >= EAGER_STEPS:
            self._capture()
        elif self._may_capture:
            side = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(side):
                self._update()
            torch.cuda.current_stream(self._device).wait_stream(side)
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

    def averaged_groups(self) -> list[Group]:
        found, at = [], 0
        for group in self._groups:
            size = len(group.parameters)
            found.append(group.with_parameters(self._averages[at : at + size]))
            at += size
        return found

    def _update(self) -> None:
        clean = self._rows.batch.T  # [d, B]
        shares = torch.rand(clean.shape[1], generator=self._noise, device=self._device)
        noise = torch.randn(clean.shape, generator=self._noise, device=self._device)
        sigma = SCHEDULE.quantile(shares)  # [B]
        noised, target = clean + sigma * noise, _target(clean, noise, sigma)
        total = torch.zeros((), device=self._device)
        for group in self._groups:
            present = _draw_present(group, clean.shape[1], self._settings.local_absent, self._noise)
            inputs = group.inputs(noised, sigma, present, SCHEDULE)
            output = group.forward(inputs, dropout=self._dropout, generator=self._noise)
            total = total + (output - target[group.columns]).square().mean(dim=1).sum()
        for parameter, gradient in zip(
            self._parameters, torch.autograd.grad(total, self._parameters), strict=True
        ):
            parameter.grad = gradient
        self._optimiser.step()
        self._loss_sum += total.detach()

    def _set_rate(self, rate: float) -> None:
        for part in self._optimiser.param_groups:
            if isinstance(part["lr"], Tensor):
                part["lr"].fill_(rate)
            else:
                part["lr"] = rate

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


class _Rows:
    """Shuffled batches of rows in one buffer, from the device when the table fits there, else from the host."""

    def __init__(
        self, values: FloatArray, rows: npt.NDArray[np.intp], batch: int, device: torch.device, seed: int
    ) -> None:
        self._values, self._rows, self._rng = values, rows, np.random.default_rng(seed)
        self._on_device: Tensor | None = None
        if _fits(values, device):
            self._on_device = torch.as_tensor(np.asarray(values, dtype=np.float32), device=device)
        self._order, self._used = rows, len(rows)
        self.batch = torch.zeros((batch, values.shape[1]), device=device)
        self._size = batch

    def advance(self) -> None:
        """Put the next rows of a shuffled pass into the buffer."""
        if self._used + self._size > len(self._order):
            self._order, self._used = self._rng.permutation(self._rows), 0
            if self._on_device is not None:
                self._on_order = torch.as_tensor(self._order, device=self.batch.device)
        part = slice(self._used, self._used + self._size)
        if self._on_device is not None:
            torch.index_select(self._on_device, 0, self._on_order[part], out=self.batch)
        else:
            in_file = np.argsort(self._order[part])
            read = np.empty(self.batch.shape, dtype=np.float32)
            read[in_file] = self._values[self._order[part][in_file]]
            self.batch.copy_(torch.from_numpy(read))
        self._used += self._size


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Fixed noised rows for one group's nets: half of them with every candidate, half with some absent."""

    noised: Tensor  # [d, P]
    sigma: Tensor  # [P]
    target: Tensor  # [g, P]
    present: Tensor  # [g, K, P]

    @classmethod
    def of(cls, rows: FloatArray, group: Group, settings: LocalSettings, seed: int) -> _HeldOut:
        generator = torch.Generator(group.device).manual_seed(seed)
        repeats = max(1, math.ceil(HELD_OUT_POINTS / len(rows)))
        clean = torch.as_tensor(np.asarray(rows, dtype=np.float32), device=group.device).T.repeat(1, repeats)
        points = clean.shape[1]
        jitter = torch.rand(points, generator=generator, device=group.device)
        spread = torch.randperm(points, generator=generator, device=group.device)
        sigma = SCHEDULE.quantile((spread + jitter) / points)  # levels spread evenly over the schedule
        noise = torch.randn(clean.shape, generator=generator, device=group.device)
        present = _draw_present(group, points, settings.local_absent, generator)
        own = group.columns
        return cls(clean + sigma * noise, sigma, _target(clean[own], noise[own], sigma), present)

    def loss(self, group: Group) -> float:
        """The squared error summed over the nets, without dropout."""
        at_once = max(1, HELD_OUT_VALUES // (len(self.sigma) * group.weights[0].shape[1]))
        total = 0.0
        with torch.no_grad():
            for first in range(0, len(group.nodes), at_once):
                places = torch.arange(first, min(first + at_once, len(group.nodes)), device=group.device)
                part = group.subset(places)
                inputs = part.inputs(self.noised, self.sigma, self.present[places], SCHEDULE)
                total += float((part.forward(inputs) - self.target[places]).square().mean(dim=1).sum())
        return total


def _target(clean: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    """What F is trained towards, of unit variance."""
    return (sigma * clean - noise) * (1 + sigma.square()).rsqrt()


def _draw_present(group: Group, rows: int, absent: float, generator: torch.Generator) -> Tensor:
    """Bits [g, K, rows]: every row lacks, with probability `absent`, a random share of its candidates."""
    g, width = group.candidates.shape
    lots = torch.rand(2, rows, generator=generator, device=group.device)
    share = torch.where(lots[0] < absent, lots[1], 0.0)
    kept = torch.rand((g, width, rows), generator=generator, device=group.device) >= share
    return kept * group.there[:, :, None]


def _fits(values: FloatArray, device: torch.device) -> bool:
    if device.type != "cuda":
        return not isinstance(values, np.memmap)
    free, _ = torch.cuda.mem_get_info(device)
    return 4 * values.size < SHARE_OF_MEMORY * free


@contextmanager
def _fast_products() -> Iterator[None]:
    """Let GPUs round the factors of products to TF32, as training can bear."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
