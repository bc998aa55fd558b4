"""Training as a pure function: (values, settings, rng, device) -> (model, losses).

The held-out denoising loss ranks models as the true order divergence does and needs no ground truth, so it alone
decides when to stop: one stopping point for all variables, judged on noise that was drawn once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from diffan.errors import FitError, InputError
from diffan.progress import Progress, Silent, Task
from diffan.score.holdout import HeldOut, hold_out, split_rows
from diffan.score.model import ScoreModel
from diffan.score.network import Network, make_network
from diffan.score.stepping import Stepper
from diffan.settings import ScoreSettings

Losses = dict[str, list[float]]
LEAST_ROWS = 10
SLOWER = 0.3


class _NotANumber(Exception):
    """The loss left the finite numbers."""


def train(
    values: npt.NDArray[np.floating],
    settings: ScoreSettings,
    rng: np.random.Generator,
    device: torch.device,
    progress: Progress | None = None,
    *,
    warm_start: ScoreModel | None = None,
) -> tuple[ScoreModel, Losses]:
    """Learn the score of standardised rows [n, d]; the losses are curves over 'step', 'train' and 'validation'."""
    if values.ndim != 2 or values.shape[0] < LEAST_ROWS:
        raise InputError(
            f"A score needs a table of at least {LEAST_ROWS} rows. Got shape {values.shape} instead."
        )
    data = torch.tensor(np.asarray(values, dtype=np.float32), device=device)
    split = split_rows(len(values), settings, rng)
    fixed_noise_seed = int(rng.integers(2**62))
    rate = settings.learning_rate
    for _ in range(settings.restarts + 1):
        first, noise, shuffle = (int(seed) for seed in rng.integers(2**62, size=3))
        attempt = _Attempt(data, settings, rate, (first, noise, shuffle), warm_start)
        held_out = hold_out(data, split.held_out, attempt.start(), np.random.default_rng(fixed_noise_seed))
        try:
            with (progress or Silent()).task("score", settings.max_steps) as task:
                network, best_step, losses = _stop_early(attempt, split.train, held_out, task)
            if settings.refit:
                network = _run_for(attempt, best_step)
        except _NotANumber:
            rate *= SLOWER
            continue
        return ScoreModel.of(network, settings), losses
    raise FitError(
        f"The training loss was not a number {settings.restarts + 1} times, last at a learning rate of "
        f"{rate / SLOWER:.2g}; look for extreme values in the table or set a lower learning_rate."
    )


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What one attempt at training needs; two runs of the same attempt begin alike."""

    data: Tensor  # [n, d]
    settings: ScoreSettings
    rate: float
    seeds: tuple[int, int, int]  # first weights, noise, shuffling
    warm_start: ScoreModel | None

    def start(self) -> ScoreModel:
        d = self.data.shape[1]
        if self.warm_start is None:
            generator = torch.Generator(self.data.device).manual_seed(self.seeds[0])
            return ScoreModel.of(make_network(d, self.settings, generator), self.settings)
        if self.warm_start.n_variables != d:
            raise InputError(
                f"A warm start must be a model of {d} variables. Got one of {self.warm_start.n_variables} instead."
            )
        copied = self.warm_start.network.mapped(lambda _, value: value.detach().clone().to(self.data.device))
        return ScoreModel.of(copied, self.settings)

    def descent(self, train_rows: npt.NDArray[np.int64]) -> _Descent:
        model = self.start()
        stepper = Stepper(
            model,
            self.data,
            train_rows,
            learning_rate=self.rate,
            batch_size=self.settings.batch_size or auto_batch_size(train_rows.shape[1]),
            seeds=self.seeds[1:],
        )
        return _Descent(stepper, _copy(model.network), self.settings)


@dataclass(frozen=True, eq=False)
class _Descent:
    """Weights under way and their running average, which is what counts."""

    stepper: Stepper
    averaged: Network
    settings: ScoreSettings

    def step(self, number: int) -> None:
        self.stepper.step()
        _average(
            list(self.averaged.tensors().values()), self.stepper.parameters, self.settings.averaging, number
        )

    def train_loss(self) -> float:
        loss = self.stepper.mean_loss()
        if not math.isfinite(loss):
            raise _NotANumber
        return loss


def _stop_early(
    attempt: _Attempt, train_rows: npt.NDArray[np.int64], held_out: HeldOut, task: Task
) -> tuple[Network, int, Losses]:
    """Descend until the held-out loss of the averaged weights stops falling; the best weights, their step, the losses."""
    settings, descent = attempt.settings, attempt.descent(train_rows)
    best, best_step = _copy(descent.averaged), 0
    at_start = held_out.loss(descent.averaged)
    losses: Losses = {"step": [0.0], "train": [math.nan], "validation": [at_start]}
    # Fresh weights are never the answer, even if nothing better comes: a score of nothing says nothing.
    lowest = math.inf if attempt.warm_start is None else at_start
    for step in range(1, settings.max_steps + 1):
        descent.step(step)
        if step % settings.check_every and step != settings.max_steps:
            continue
        train_loss, loss = descent.train_loss(), held_out.loss(descent.averaged)
        if not math.isfinite(loss):
            raise _NotANumber
        for name, value in (("step", float(step)), ("train", train_loss), ("validation", loss)):
            losses[name].append(value)
        task.advance(settings.check_every, f"held-out loss {loss:.4f}")
        if loss < lowest:
            best, lowest, best_step = _copy(descent.averaged), loss, step
        elif step - best_step >= settings.patience:
            break
    return best, best_step, losses


def _run_for(attempt: _Attempt, steps: int) -> Network:
    """Descend on every row for a given number of steps."""
    every = np.tile(np.arange(len(attempt.data)), (attempt.settings.ensemble, 1))
    descent = attempt.descent(every)
    for step in range(1, steps + 1):
        descent.step(step)
    if steps:
        descent.train_loss()
    return descent.averaged


def _copy(network: Network) -> Network:
    return network.mapped(lambda _, value: value.detach().clone())


def _average(averages: list[Tensor], parameters: list[Tensor], decay: float, step: int) -> None:
    """Move the running averages towards the parameters; early on the average is short, so it is not stale."""
    with torch.no_grad():
        early = min(decay, (1 + step) / (10 + step)) if decay > 0 else 0.0
        get_ema_multi_avg_fn(early)(averages, parameters, step)  # type: ignore[no-untyped-call]


def auto_batch_size(n_rows: int) -> int:
    """Every row at once while that is cheap; small tables are repeated to a few hundred noise draws a step."""
    if n_rows <= 2000:
        return max(n_rows, 256)
    return 2048 if n_rows < 100_000 else 8192
