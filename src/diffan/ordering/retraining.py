"""Greedy's trainings: the score of fewer and fewer columns, each begun from the weights before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from diffan.context import Context
from diffan.keeping import Arrays, Tagged
from diffan.ordering.curvature import Field
from diffan.score.model import ScoreModel
from diffan.score.training import train
from diffan.settings import DiffanSettings

Array = npt.NDArray[np.float64]
WEIGHTS = "weights."


class Retrainer:
    """Columns -> the field of these columns alone; remembers the last model, and leaves it at a checkpoint."""

    def __init__(
        self,
        values: Array,
        model: ScoreModel,
        settings: DiffanSettings,
        context: Context,
        field: Callable[[ScoreModel], Field],
    ) -> None:
        self._values, self._context, self._field = values, context, field
        self._columns, self._model = tuple(range(model.n_variables)), model
        self._brief = replace(settings.score, max_steps=settings.order.greedy_steps)
        self._place = context.keeper.stage("retrain")

    def __call__(self, columns: Sequence[int]) -> Field:
        wanted = tuple(columns)
        if wanted != self._columns:
            kept = [self._columns.index(column) for column in wanted]
            # The same stream each time: the rows held out stay held out, so that none is ever trained on.
            self._model, _ = train(
                self._values,
                self._brief,
                self._context.rng("greedy"),
                self._model.device,
                columns=wanted,
                warm_start=self._model.restricted(kept),
                place=Tagged(self._place, list(map(int, wanted))),
            )
            self._columns = wanted
        return self._field(self._model)

    def state(self) -> Arrays:
        weights: Arrays = {f"{WEIGHTS}{name}": value for name, value in self._model.to_arrays().items()}
        return weights | {"columns": np.array(self._columns, dtype=np.int64)}

    def restore(self, arrays: Arrays) -> None:
        weights = {name[len(WEIGHTS) :]: v for name, v in arrays.items() if name.startswith(WEIGHTS)}
        stored = ScoreModel.from_arrays(weights, self._brief).network
        device = self._model.device
        self._model = ScoreModel.of(stored.mapped(lambda _, value: value.to(device)), self._brief)
        self._columns = tuple(arrays["columns"].tolist())
