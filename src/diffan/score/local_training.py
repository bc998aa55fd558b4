"""Training of all local denoisers at once: one batch of rows, one step, one stopping point for everyone.

Every step draws rows, noise levels, noise and absent candidates (`score.local_stepping`).
Nets are independent of each other given the rows, so several GPUs simply hold different variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch

from diffan.errors import FitError
from diffan.keeping import Forgetful, Stage
from diffan.local_settings import LocalSettings
from diffan.progress import Progress, Task
from diffan.score.local_batches import HeldOut
from diffan.score.local_network import Group, make_groups
from diffan.score.local_snapshot import Log, Standing, finished, with_weights
from diffan.score.local_stepping import LocalStepper
from diffan.score.snapshot import Losses

FloatArray = npt.NDArray[np.floating]
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
    place: Stage | None = None,
) -> tuple[list[Group], Losses]:
    """Denoisers of standardised rows [n, d], one per column over its neighbours; losses are named curves.

    Progress is left at `place`, and taken up from there.
    """
    place = place or Forgetful().stage("train")
    saved = place.load()
    n = len(values)
    shuffled = rng.permutation(n)
    count = min(MOST_HELD_OUT, max(1, round(settings.local_holdout * n)), n - 1)
    held_rows, train_rows = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    rate = settings.local_rate
    steps = settings.steps_for(n, gpu=devices[0].type == "cuda")
    for number in range(RESTARTS + 1):
        groups = make_groups(
            neighbours, width=settings.local_width, depth=settings.local_depth, rng=rng, devices=devices
        )
        if saved is not None and saved.record["phase"] == "done":
            return finished(saved, groups)
        seeds = [int(rng.integers(2**62)) for _ in groups]
        own = list(dict.fromkeys(group.device for group in groups))
        noise_seeds = [int(rng.integers(2**62)) for _ in own]
        if saved is None or number >= saved.record["attempt"]:
            held_out = [
                HeldOut.of(values[held_rows], group, settings, seed)
                for group, seed in zip(groups, seeds, strict=True)
            ]
            steppers = [
                LocalStepper(
                    values, train_rows, [g for g in groups if g.device == device], settings, rate, seed
                )
                for device, seed in zip(own, noise_seeds, strict=True)
            ]
            log = Log(place, number, saved if saved and saved.record["attempt"] == number else None)
            with progress.task("score", steps) as task, _fast_products():
                found = _descend(steppers, held_out, groups, steps, settings, task, log)
            if found is not None:
                log.finish(found)
                return with_weights(groups, found.best), found.losses
        rate *= SLOWER
    raise FitError(
        f"The training loss was not a number {RESTARTS + 1} times; look for extreme values in the table or set a "
        "lower local_rate."
    )


def _descend(
    steppers: Sequence[LocalStepper],
    held_out: Sequence[HeldOut],
    groups: Sequence[Group],
    steps: int,
    settings: LocalSettings,
    task: Task,
    log: Log,
) -> Standing | None:
    """Train until the held-out loss of the averaged weights stops falling; None when it left the numbers."""
    standing = log.resumed(steppers, groups)
    task.advance(standing.step)
    every = max(1, steps // LOOKS)
    for step in range(standing.step + 1, steps + 1):
        for stepper in steppers:
            stepper.step(step / steps)
        if step % every and step != steps:
            continue
        averaged = {node: group for stepper in steppers for node, group in stepper.averaged_groups()}
        in_order = [averaged[int(group.nodes[0])] for group in groups]
        train = sum(stepper.mean_loss() for stepper in steppers) / _n_nodes(groups)
        loss = sum(held.loss(group) for held, group in zip(held_out, in_order, strict=True)) / _n_nodes(
            groups
        )
        if not math.isfinite(train) or not math.isfinite(loss):
            return None
        for name, value in (("step", float(step)), ("train", train), ("validation", loss)):
            standing.losses[name].append(value)
        task.advance(every, f"held-out loss {loss:.4f}")
        standing.step = step
        if loss < standing.lowest:
            standing.lowest, standing.worse = loss, 0
            standing.best = [[value.detach().clone() for value in group.parameters] for group in in_order]
        else:
            standing.worse += 1
            if standing.worse >= settings.local_patience:
                break
        log.keep(standing, steppers)
    return standing


def _n_nodes(groups: Sequence[Group]) -> int:
    return sum(len(group.nodes) for group in groups)


@contextmanager
def _fast_products() -> Iterator[None]:
    """Let GPUs round the factors of products to TF32, as training can bear."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
