"""The training of many local denoisers as it stands, turned into arrays and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from diffan.keeping import Arrays, Saved, Stage
from diffan.score.local_network import Group
from diffan.score.local_stepping import LocalStepper
from diffan.score.snapshot import CURVES, Losses


@dataclass(eq=False)
class Standing:
    """The best weights so far, the losses that say so, and for how many looks they have not been beaten."""

    step: int = 0  # the last one whose loss was looked at
    worse: int = 0
    lowest: float = math.inf
    best: list[list[Tensor]] = field(default_factory=list)  # of each group
    losses: Losses = field(default_factory=lambda: {name: [] for name in CURVES})


@dataclass(frozen=True, eq=False)
class Log:
    """Writes one attempt's standing to its place from time to time, and reads what was written before."""

    place: Stage
    attempt: int
    start: Saved | None = None

    def keep(self, standing: Standing, steppers: Sequence[LocalStepper]) -> None:
        """Save, if it is time to."""
        if not self.place.due():
            return
        states = [stepper.state() for stepper in steppers]
        arrays = _best_and_losses(standing)
        for k, (_, tensors) in enumerate(states):
            arrays |= {f"stepper{k}.{name}": value.cpu().numpy() for name, value in tensors.items()}
        record = {"phase": "descending", "attempt": self.attempt, "step": standing.step}
        record |= {"worse": standing.worse, "steppers": [plain for plain, _ in states]}
        self.place.save(record, arrays)

    def resumed(self, steppers: Sequence[LocalStepper], groups: Sequence[Group]) -> Standing:
        """Bring the steppers to where they were, if they were anywhere."""
        if self.start is None:
            return Standing()
        record, arrays = self.start.record, self.start.arrays
        for k, (stepper, plain) in enumerate(zip(steppers, record["steppers"], strict=True)):
            start = f"stepper{k}."
            tensors = {name: torch.from_numpy(np.array(v)) for name, v in arrays.items()}
            stepper.restore(
                plain, {name[len(start) :]: v for name, v in tensors.items() if name.startswith(start)}
            )
        return _standing(self.start, groups, step=record["step"], worse=record["worse"])

    def finish(self, standing: Standing) -> None:
        self.place.save({"phase": "done"}, _best_and_losses(standing))


def finished(saved: Saved, groups: Sequence[Group]) -> tuple[list[Group], Losses]:
    """What `finish` left: the nets of groups of the same shape, and the losses."""
    standing = _standing(saved, groups)
    return with_weights(groups, standing.best), standing.losses


def with_weights(groups: Sequence[Group], weights: Sequence[Sequence[Tensor]]) -> list[Group]:
    return [group.with_parameters(values) for group, values in zip(groups, weights, strict=True)]


def _best_and_losses(standing: Standing) -> Arrays:
    arrays: Arrays = {f"losses.{name}": np.array(curve, float) for name, curve in standing.losses.items()}
    for k, weights in enumerate(standing.best):
        arrays |= {f"best{k}.{i}": value.cpu().numpy() for i, value in enumerate(weights)}
    return arrays | {"lowest": np.array([standing.lowest])}


def _standing(saved: Saved, groups: Sequence[Group], *, step: int = 0, worse: int = 0) -> Standing:
    arrays = saved.arrays
    best = [
        [
            torch.from_numpy(np.array(arrays[f"best{k}.{i}"])).to(group.device)
            for i in range(len(group.parameters))
        ]
        for k, group in enumerate(groups)
        if f"best{k}.0" in arrays
    ]
    losses = {name: arrays[f"losses.{name}"].tolist() for name in CURVES}
    return Standing(step, worse, float(arrays["lowest"][0]), best, losses)
