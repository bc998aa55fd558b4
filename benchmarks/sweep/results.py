"""Finished cells, asked for by what they are; means and spreads of their measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweep.cell import Record


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (of the sample) over data sets."""

    mean: float
    std: float
    count: int

    @property
    def error(self) -> float:
        return self.std / self.count**0.5


@dataclass(frozen=True)
class Results:
    """All records of a sweep, done and failed."""

    records: Sequence[Record]

    def select(
        self,
        *,
        work: str = "discover",
        method: str | None = None,
        options: dict[str, Any] | None = None,
        status: str = "done",
        **fields: Any,
    ) -> list[Record]:
        """The records of one kind; `fields` are those of the data set. Options must be the same ones if given."""

        def fits(record: Record) -> bool:
            settings = record["settings"]
            return (
                record["status"] == status
                and settings["work"] == work
                and (method is None or settings["method"] == method)
                and (options is None or settings["options"] == options)
                and all(settings["data"].get(name) == value for name, value in fields.items())
            )

        return [record for record in self.records if fits(record)]

    def failures(self) -> list[Record]:
        return [record for record in self.records if record["status"] == "failed"]


def values(records: Iterable[Record], measure: str) -> list[float]:
    """One measure of each record that has it; "a.b" looks inside."""
    found = []
    for record in records:
        value: Any = record["result"]
        for part in measure.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found.append(float(value))
    return found


def summary(records: Iterable[Record], measure: str) -> Summary | None:
    return summarised(values(records, measure))


def summarised(numbers: Sequence[float]) -> Summary | None:
    finite = [number for number in numbers if np.isfinite(number)]
    if not finite:
        return None
    spread = float(np.std(finite, ddof=1)) if len(finite) > 1 else 0.0
    return Summary(float(np.mean(finite)), spread, len(finite))


def machines(records: Iterable[Record]) -> str:
    """Where the records come from, in words, the commonest first."""
    found = Counter(_machine(record["machine"]) for record in records)
    return " and ".join(name for name, _ in found.most_common(3)) or "no machine yet"


def _machine(described: dict[str, Any]) -> str:
    if described.get("gpu"):
        return f"one {described['gpu']}"
    return "one CPU core"
