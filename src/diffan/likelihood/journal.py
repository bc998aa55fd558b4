"""How far a refinement is, left at a checkpoint after each sweep and taken up from there.

The fits are kept too, not only what they led to: whoever goes on from here then asks for exactly the fits that an
undisturbed run would ask for next, in the same batches, and gets the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diffan.keeping import Arrays, Forgetful, Stage
from diffan.likelihood.moves import Move, State

SWEEPING = "sweeping"
FITS = "objective."


class Journal:
    """The pass under way, the objective after each of its sweeps, and the moves of all passes."""

    def __init__(self, place: Stage | None = None) -> None:
        self._place = place or Forgetful().stage("refine")
        saved = self._place.load()
        self._start = saved if saved is not None and saved.record["phase"] == SWEEPING else None
        self.number, self.trace = 0, list[float]()
        self.moves: list[tuple[int, int, int]] = []  # (variable, old place, new place)
        if self._start is not None:
            self.number = int(self._start.record["pass"])
            self.trace = self._start.arrays["trace"].tolist()
            self.moves = [(node, old, new) for node, old, new in self._start.record["moves"]]

    def skips(self, number: int) -> bool:
        """Whether that pass was over before."""
        return number < self.number

    def drawn_from(self, number: int) -> dict[str, Any] | None:
        """The random stream as it was at the start of that pass, if that is the one to go on with."""
        here = self._start is not None and number == self.number
        return self._start.record["state"]["rng"] if self._start is not None and here else None

    def resume(self, state: State) -> None:
        """Bring the pass to where it was; its objective has the same rows already."""
        if self._start is None:
            raise ValueError("there is nothing to go on from")
        record, arrays = self._start.record["state"], self._start.arrays
        state.order = list(record["order"])
        state.parents = [frozenset(parents) for parents in record["parents"]]
        state.price, state.misfit = float(arrays["price"][0]), float(arrays["misfit"][0])
        state.objective.remember(fits_in(arrays))
        self._start = None

    def begin(self, number: int, state: State) -> None:
        """A pass has found its parents and has not moved anything yet."""
        self.number, self.trace = number, []
        self._keep(state)

    def swept(self, state: State, accepted: list[Move]) -> None:
        """A sweep is over."""
        self.moves += [(move.node, move.old, move.new) for move in accepted]
        self.trace.append(state.total())
        self._keep(state)

    def _keep(self, state: State) -> None:
        if self._place.due():
            record, arrays = state_as_arrays(state)
            self._place.save(
                {
                    "phase": SWEEPING,
                    "pass": self.number,
                    "moves": [list(move) for move in self.moves],
                    "state": record,
                },
                arrays | {"trace": np.array(self.trace, dtype=np.float64)},
            )


def state_as_arrays(state: State) -> tuple[dict[str, Any], Arrays]:
    """As JSON values and arrays."""
    record = {
        "order": list(state.order),
        "parents": [sorted(parents) for parents in state.parents],
        "required": [sorted(parents) for parents in state.required],
        "rng": state.objective.drawn_from,
        "n_shadows": state.objective.n_shadows,
    }
    arrays: Arrays = {"price": np.array([state.price]), "misfit": np.array([state.misfit])}
    arrays |= {"allowed": state.allowed, "must_precede": state.must_precede}
    return record, arrays | {f"{FITS}{name}": values for name, values in state.objective.memory().items()}


def fits_in(arrays: Arrays) -> Arrays:
    """The objective's part of what `state_as_arrays` made."""
    return {name[len(FITS) :]: values for name, values in arrays.items() if name.startswith(FITS)}
