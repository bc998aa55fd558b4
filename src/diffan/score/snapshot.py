"""Training as it stands, turned into arrays and back, so that a run that was cut off ends as if it had not been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diffan.keeping import Arrays, Saved, Stage
from diffan.score.model import ScoreModel
from diffan.score.network import Network
from diffan.score.stepping import Stepper
from diffan.settings import ScoreSettings

Losses = dict[str, list[float]]
CURVES = ("step", "train", "validation")


@dataclass(eq=False)
class Standing:
    """The best weights so far, and the losses that say so."""

    step: int  # the last one whose loss was looked at
    best: Network
    best_step: int
    lowest: float
    losses: Losses


@dataclass(frozen=True, eq=False)
class Log:
    """Writes one attempt's standing to its place from time to time, and reads what was written before."""

    place: Stage
    attempt: int
    start: Saved | None = None

    @property
    def refitting(self) -> bool:
        """Whether the stopping point was known when it was cut off, and training on every row had begun."""
        return self.start is not None and self.start.record["phase"] == "refitting"

    def keep(
        self, standing: Standing, stepper: Stepper, averaged: Network, phase: str = "descending"
    ) -> None:
        """Save, if it is time to."""
        if not self.place.due():
            return
        tensors = {f"stepper.{name}": value for name, value in stepper.state().items()}
        tensors |= {f"averaged.{name}": value for name, value in averaged.tensors().items()}
        tensors |= {f"best.{name}": value for name, value in standing.best.tensors().items()}
        arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
        arrays |= _curves(standing.losses) | {"lowest": np.array([standing.lowest])}
        record = {"phase": phase, "attempt": self.attempt, "step": standing.step}
        self.place.save(record | {"best_step": standing.best_step}, arrays)

    def resumed(self, stepper: Stepper, averaged: Network) -> Standing | None:
        """Bring the stepper and the average to where they were, if they were anywhere."""
        if self.start is None:
            return None
        record, arrays = self.start.record, self.start.arrays
        stepper.restore(_part(arrays, "stepper."))
        with torch.no_grad():
            for name, value in _part(arrays, "averaged.").items():
                averaged.tensors()[name].copy_(value)
        weights = _part(arrays, "best.")
        best = averaged.mapped(lambda name, value: weights[name].to(value.device))
        lowest = float(arrays["lowest"][0])
        return Standing(record["step"], best, record["best_step"], lowest, _losses(arrays))


def as_finished(model: ScoreModel, losses: Losses) -> tuple[dict[str, Any], Arrays]:
    """What is kept of a training that is over."""
    weights: Arrays = {f"best.{name}": value for name, value in model.to_arrays().items()}
    return {"phase": "done"}, weights | _curves(losses)


def finished(saved: Saved, settings: ScoreSettings, device: torch.device) -> tuple[ScoreModel, Losses]:
    """The inverse of `as_finished`."""
    weights = {name: value.numpy() for name, value in _part(saved.arrays, "best.").items()}
    network = ScoreModel.from_arrays(weights, settings).network
    model = ScoreModel.of(network.mapped(lambda _, value: value.to(device)), settings)
    return model, _losses(saved.arrays)


def copied(network: Network) -> Network:
    """The same weights in memory of their own."""
    return network.mapped(lambda _, value: value.detach().clone())


def _part(arrays: Arrays, start: str) -> dict[str, Tensor]:
    """The arrays whose names begin so, without the beginning."""
    found = {name: value for name, value in arrays.items() if name.startswith(start)}
    return {name[len(start) :]: torch.from_numpy(np.array(value)) for name, value in found.items()}


def _curves(losses: Losses) -> Arrays:
    return {f"losses.{name}": np.array(curve, dtype=np.float64) for name, curve in losses.items()}


def _losses(arrays: Arrays) -> Losses:
    """In the order in which they were begun: a file of arrays has an order of its own."""
    return {name: arrays[f"losses.{name}"].tolist() for name in CURVES}
