"""One checkpoint for all processes that train together: the first writes and reads, and tells the others what it read.

So no process ever goes on from another place than its fellows, whatever disks they see, and only one holds the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.checkpoint import Checkpoint
from diffan.errors import InputError
from diffan.keeping import Keeper, Saved, Stage
from diffan.score.team import Team, present_team


@contextmanager
def opened_checkpoint(
    folder: str | os.PathLike[str], identity: Mapping[str, Any], *, every: float
) -> Iterator[Keeper]:
    """This process's checkpoint, or that of the team it belongs to; refused for all if the first is refused.

    The number of processes is part of the run's identity, because sums over them differ in their last bits.
    """
    team = present_team()
    if team.size == 1:
        with Checkpoint(folder, identity, every=every) as alone:
            yield alone
        return
    own, refusal = None, ""
    if team.rank == 0:
        try:
            own = Checkpoint(folder, {**identity, "processes": team.size}, every=every)
        except InputError as error:
            refusal = str(error)
    try:
        refusal = team.told(refusal.encode()).decode()
        if refusal:
            raise InputError(refusal)
        yield _TeamKeeper(own, team)
    finally:
        if own is not None:
            own.close()


class _TeamKeeper:
    """The first process's places, seen by all."""

    def __init__(self, own: Checkpoint | None, team: Team) -> None:
        self._own, self._team = own, team

    def stage(self, name: str) -> Stage:
        return _TeamStage(None if self._own is None else self._own.stage(name), self._team)


class _TeamStage:
    """`load` is asked of all processes at once; `save` does nothing but in the first."""

    def __init__(self, own: Stage | None, team: Team) -> None:
        self._own, self._team = own, team

    @property
    def keeps(self) -> bool:
        return self._own is not None

    def load(self) -> Saved | None:
        from safetensors.numpy import load, save

        saved = None if self._own is None else self._own.load()
        record = b"" if saved is None else json.dumps(saved.record).encode()
        arrays = b"" if saved is None else save({name: np.array(v) for name, v in saved.arrays.items()})
        record, arrays = self._team.told(record), self._team.told(arrays)
        return Saved(json.loads(record), load(arrays)) if record else None

    def due(self) -> bool:
        return self._own is not None and self._own.due()

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        if self._own is not None:
            self._own.save(record, arrays)
