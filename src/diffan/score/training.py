"""Training as a pure function: (values, settings, rng, device) -> (model, losses).

The held-out denoising loss ranks models as the true order divergence does and needs no ground truth, so it alone
decides when to stop: one stopping point for all variables, judged on noise that was drawn once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from diffan.errors import FitError, InputError
from diffan.keeping import Forgetful, Stage
from diffan.progress import Progress, Silent, Task
from diffan.score.batches import TrainingRows, training_rows
from diffan.score.holdout import HeldOut, hold_out
from diffan.score.model import ScoreModel
from diffan.score.network import Network, make_network
from diffan.score.snapshot import Log, Losses, Standing, as_finished, copied, finished
from diffan.score.stepping import Stepper
from diffan.score.team import ALONE, Team
from diffan.settings import ScoreSettings

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
    columns: Sequence[int] | None = None,
    place: Stage | None = None,
    team: Team = ALONE,
) -> tuple[ScoreModel, Losses]:
    """Learn the score of standardised rows [n, d]; the losses are curves over 'step', 'train' and 'validation'.

    Only of these `columns`, if given. A memory map is read a mini-batch at a time. Progress is left at `place`, and
    taken up from there; a `team` shares every batch.
    """
    if values.ndim != 2 or values.shape[0] < LEAST_ROWS:
        raise InputError(
            f"A score needs a table of at least {LEAST_ROWS} rows. Got shape {values.shape} instead."
        )
    place = place or Forgetful().stage("train")
    saved = place.load()
    if saved is not None and saved.record["phase"] == "done":
        return finished(saved, settings, device)
    rows = training_rows(values, device, columns)
    split = rows.split(settings, rng)
    fixed_noise_seed = int(rng.integers(2**62))
    rate = settings.learning_rate
    for number in range(settings.restarts + 1):
        first, noise, shuffle = (int(seed) for seed in rng.integers(2**62, size=3))
        attempt = _Attempt(rows, settings, rate, (first, noise, shuffle), warm_start, team)
        if saved is not None and number < saved.record["attempt"]:
            rate *= SLOWER
            continue
        held_out = hold_out(
            rows.take, split.held_out, attempt.start(), np.random.default_rng(fixed_noise_seed)
        )
        try:
            with (progress or Silent()).task("score", settings.max_steps) as task:
                start = saved if saved is not None and number == saved.record["attempt"] else None
                log = Log(place, number, start)
                found = None if log.refitting else _stop_early(attempt, split.train, held_out, task, log)
            if settings.refit or found is None:
                found = _refit(attempt, found, log)
        except _NotANumber:
            rate *= SLOWER
            continue
        model = ScoreModel.of(found.best, settings)
        place.save(*as_finished(model, found.losses))
        return model, found.losses
    raise FitError(
        f"The training loss was not a number {settings.restarts + 1} times, last at a learning rate of "
        f"{rate / SLOWER:.2g}; look for extreme values in the table or set a lower learning_rate."
    )


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What one attempt at training needs; two runs of the same attempt begin alike."""

    rows: TrainingRows
    settings: ScoreSettings
    rate: float
    seeds: tuple[int, int, int]  # first weights, noise, shuffling
    warm_start: ScoreModel | None
    team: Team

    def start(self) -> ScoreModel:
        d, device = self.rows.n_variables, self.rows.device
        if self.warm_start is None:
            generator = torch.Generator(device).manual_seed(self.seeds[0])
            return ScoreModel.of(make_network(d, self.settings, generator), self.settings)
        if self.warm_start.n_variables != d:
            raise InputError(
                f"A warm start must be a model of {d} variables. Got one of {self.warm_start.n_variables} instead."
            )
        copied = self.warm_start.network.mapped(lambda _, value: value.detach().clone().to(device))
        return ScoreModel.of(copied, self.settings)

    def descent(self, train_rows: npt.NDArray[np.int64]) -> _Descent:
        model = self.start()
        size = self.settings.batch_size or auto_batch_size(self.rows.count(train_rows))
        stepper = Stepper(
            model,
            self.rows.batches(train_rows, size, self.seeds[2]),
            learning_rate=self.rate,
            noise_seed=self.seeds[1],
            team=self.team,
        )
        return _Descent(stepper, copied(model.network), self.settings)


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
    attempt: _Attempt, train_rows: npt.NDArray[np.int64], held_out: HeldOut, task: Task, log: Log
) -> Standing:
    """Descend until the held-out loss of the averaged weights stops falling; the best weights and how they came."""
    settings, descent = attempt.settings, attempt.descent(train_rows)
    standing = log.resumed(descent.stepper, descent.averaged)
    if standing is None:
        at_start = held_out.loss(descent.averaged)
        losses: Losses = {"step": [0.0], "train": [math.nan], "validation": [at_start]}
        # Fresh weights are never the answer, even if nothing better comes: a score of nothing says nothing.
        lowest = math.inf if attempt.warm_start is None else at_start
        standing = Standing(0, copied(descent.averaged), 0, lowest, losses)
    task.advance(standing.step)
    for step in range(standing.step + 1, settings.max_steps + 1):
        if standing.step - standing.best_step >= settings.patience:
            break
        descent.step(step)
        if step % settings.check_every and step != settings.max_steps:
            continue
        train_loss, loss = descent.train_loss(), held_out.loss(descent.averaged)
        if not math.isfinite(loss):
            raise _NotANumber
        for name, value in (("step", float(step)), ("train", train_loss), ("validation", loss)):
            standing.losses[name].append(value)
        task.advance(settings.check_every, f"held-out loss {loss:.4f}")
        standing.step = step
        if loss < standing.lowest:
            standing.best, standing.lowest, standing.best_step = copied(descent.averaged), loss, step
        log.keep(standing, descent.stepper, descent.averaged)
    return standing


def _refit(attempt: _Attempt, found: Standing | None, log: Log) -> Standing:
    """Descend on every row for as many steps as were best; from where it was cut off when nothing is given."""
    descent = attempt.descent(attempt.rows.everything(attempt.settings.ensemble))
    standing = log.resumed(descent.stepper, descent.averaged) if found is None else replace(found, step=0)
    if standing is None:
        raise ValueError("a refit needs either a stopping point or a place to go on from")
    for step in range(standing.step + 1, standing.best_step + 1):
        descent.step(step)
        if step % attempt.settings.check_every == 0:
            standing.step = step
            log.keep(standing, descent.stepper, descent.averaged, "refitting")
    if standing.best_step:
        descent.train_loss()
    return replace(standing, best=descent.averaged)


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
