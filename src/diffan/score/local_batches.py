"""What local denoisers are trained and judged on: batches of rows, absent candidates, fixed held-out noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.local_settings import LocalSettings
from diffan.score.local_network import Group
from diffan.score.schedule import ContinuousSchedule

FloatArray = npt.NDArray[np.floating]
SCHEDULE = ContinuousSchedule(-1.0, 0.7)  # measured for the dense network: log sigma ~ normal(-1, 0.7)
HELD_OUT_POINTS = 2048
HELD_OUT_VALUES = 2**26  # hidden values held at once while the held-out loss is taken
SHARE_OF_MEMORY = 0.25  # of the device's free memory that the table may take; else batches come from the host


class Batches:
    """Shuffled batches of rows in one buffer, from the device when the table fits there, else from the host."""

    def __init__(
        self, values: FloatArray, rows: npt.NDArray[np.intp], batch: int, device: torch.device, seed: int
    ) -> None:
        self._values, self._rows, self._rng = values, rows, np.random.default_rng(seed)
        self._on_device: Tensor | None = None
        if _fits(values, device):
            self._on_device = torch.as_tensor(np.asarray(values, dtype=np.float32), device=device)
        self._before: dict[str, Any] | None = None  # the stream as it was before the present pass, if any
        self._order, self._used = rows, len(rows)
        self.batch = torch.zeros((batch, values.shape[1]), device=device)
        self._size = batch

    def advance(self) -> None:
        """Put the next rows of a shuffled pass into the buffer."""
        if self._used + self._size > len(self._order):
            self._shuffle()
        part = slice(self._used, self._used + self._size)
        if self._on_device is not None:
            torch.index_select(self._on_device, 0, self._on_order[part], out=self.batch)
        else:
            in_file = np.argsort(self._order[part])
            read = np.empty(self.batch.shape, dtype=np.float32)
            read[in_file] = self._values[self._order[part][in_file]]
            self.batch.copy_(torch.from_numpy(read))
        self._used += self._size

    def _shuffle(self) -> None:
        self._before = dict(self._rng.bit_generator.state)
        self._order, self._used = self._rng.permutation(self._rows), 0
        if self._on_device is not None:
            self._on_order = torch.as_tensor(self._order, device=self.batch.device)

    def state(self) -> dict[str, Any]:
        """What brings new batches of the same rows to this place, as plain JSON."""
        return {"before": self._before, "used": self._used}

    def restore(self, state: dict[str, Any]) -> None:
        if state["before"] is not None:
            self._rng.bit_generator.state = state["before"]
            self._shuffle()
        self._used = int(state["used"])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Fixed noised rows for one group's nets: half of them with every candidate, half with some absent."""

    noised: Tensor  # [d, P]
    sigma: Tensor  # [P]
    target: Tensor  # [g, P]
    present: Tensor  # [g, K, P]

    @classmethod
    def of(cls, rows: FloatArray, group: Group, settings: LocalSettings, seed: int) -> HeldOut:
        generator = torch.Generator(group.device).manual_seed(seed)
        repeats = max(1, math.ceil(HELD_OUT_POINTS / len(rows)))
        clean = torch.as_tensor(np.asarray(rows, dtype=np.float32), device=group.device).T.repeat(1, repeats)
        points = clean.shape[1]
        jitter = torch.rand(points, generator=generator, device=group.device)
        spread = torch.randperm(points, generator=generator, device=group.device)
        sigma = SCHEDULE.quantile((spread + jitter) / points)  # levels spread evenly over the schedule
        noise = torch.randn(clean.shape, generator=generator, device=group.device)
        present = draw_present(group, points, settings.local_absent, generator)
        own = group.columns
        return cls(clean + sigma * noise, sigma, denoising_target(clean[own], noise[own], sigma), present)

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


def denoising_target(clean: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    """What F is trained towards, of unit variance."""
    return (sigma * clean - noise) * (1 + sigma.square()).rsqrt()


def draw_present(group: Group, rows: int, absent: float, generator: torch.Generator) -> Tensor:
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
