"""Keeping a run's progress as a thing passed in: forgotten by default, kept on disk when a checkpoint is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Saved:
    """Where a stage stood: plain JSON values, and arrays."""

    record: dict[str, Any]
    arrays: Arrays


class Stage(Protocol):
    """One stage's place: whether it keeps anything, what was saved last, and whether it is time to save again."""

    @property
    def keeps(self) -> bool: ...

    def load(self) -> Saved | None: ...

    def due(self) -> bool: ...

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]) -> None: ...


class Keeper(Protocol):
    """Has a place for every stage, by its name."""

    def stage(self, name: str) -> Stage: ...


class _Nowhere:
    keeps = False

    def load(self) -> Saved | None:
        return None

    def due(self) -> bool:
        return False

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        pass


class Tagged:
    """A place that several works share in turn: what another one left there does not count."""

    def __init__(self, place: Stage, tag: Any) -> None:
        self._place, self._tag = place, tag  # the tag is plain JSON

    @property
    def keeps(self) -> bool:
        return self._place.keeps

    def load(self) -> Saved | None:
        saved = self._place.load()
        return saved if saved is not None and saved.record.get("of") == self._tag else None

    def due(self) -> bool:
        return self._place.due()

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._place.save({**record, "of": self._tag}, arrays)


class Forgetful:
    """Keeps nothing."""

    def stage(self, name: str) -> Stage:
        return _Nowhere()
