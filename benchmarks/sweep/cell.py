"""A cell: one data set, one contender, one seed; its settings have a hash, and running it gives a record.

The device is not part of the settings: a cell computed on a GPU is the same cell. The record says where it was
computed, how long each stage took and how much memory was held at the most.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from sweep import data, machine, work
from sweep.contenders import CONTENDERS

Record = dict[str, Any]
MOMENT = "%Y-%m-%dT%H:%M:%SZ"  # at which a cell was finished
LARGE = 50  # variables from which the default is worth a GPU
BY_ROWS = ("diffan", "score")  # methods that are worth a GPU from 3000 rows on, whatever the variables


@dataclass(frozen=True)
class Cell:
    """What is to be computed; `rank` orders the queue (0 first) and is not part of the cell's identity."""

    data: data.Spec
    method: str
    work: str = "discover"
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    rank: int = field(default=0, compare=False)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "method": self.method,
            "work": self.work,
            "options": self.options,
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """A hash of the settings: the name of the cell's file."""
        text = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        return f"{self.method} on {data.name(self.data)}"

    @property
    def lane(self) -> str:
        """Where the cell runs best when there is a GPU: "gpu" or "cpu"."""
        if self.work in ("orders", "sign"):
            return "gpu"
        large = self.data.get("nodes", 0) >= LARGE
        method = CONTENDERS[self.method].method
        rows = self.data.get("samples", 0) >= 3000
        if CONTENDERS[self.method].wide or (method == "diffan" and large) or (method in BY_ROWS and rows):
            return "gpu"
        return "gpu" if self.work == "order" and large else "cpu"


def run_cell(task: tuple[Cell, str]) -> Record:
    """Compute one cell on a device; whatever goes wrong is part of the record."""
    cell, device = task
    device = device if cell.lane == "gpu" else "cpu"
    record: Record = {"key": cell.key, "settings": cell.settings, "machine": machine.describe(device)}
    memory = machine.PeakMemory(device)
    started = time.perf_counter()
    try:
        found: Record = {"status": "done", "result": work.WORKS[cell.work](cell, device)}
    except Exception as error:
        found = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    record |= found
    record |= {"seconds": round(time.perf_counter() - started, 3), "memory": memory.peaks()}
    return record | {"finished": time.strftime(MOMENT, time.gmtime())}


def failure(cell: Cell, error: Exception) -> Record:
    """The record of a cell whose process died or could not even begin."""
    return {
        "key": cell.key,
        "settings": cell.settings,
        "machine": machine.describe("cpu"),
        "status": "failed",
        "error": f"{type(error).__name__}: {error}",
        "finished": time.strftime(MOMENT, time.gmtime()),
    }
