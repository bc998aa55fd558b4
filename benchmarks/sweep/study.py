"""A study: the cells it needs, and the section of the report that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sweep.cell import Cell
from sweep.contenders import CONTENDERS
from sweep.page import Section
from sweep.results import Results

Size = Literal["full", "small"]
QUICK_SCORE: dict[str, Any] = {"max_steps": 6, "check_every": 3}
QUICK = {**QUICK_SCORE, "greedy_steps": 3, "order_batch_size": 16}
"""Training cut short, for the small versions that tests run."""


@dataclass(frozen=True)
class Study:
    name: str
    cells: Callable[[Size], list[Cell]]
    section: Callable[[Results, Path], Section]  # with the folder for its figures


def discoveries(
    specs: Iterable[dict[str, Any]],
    methods: Iterable[str],
    *,
    rank: int = 0,
    quick: bool = False,
    **options: Any,
) -> list[Cell]:
    """A whole discovery for each data set and contender."""
    names = list(methods)
    return [
        Cell(spec, name, options={**options, **_quick(name, quick)}, rank=rank)
        for spec in specs
        for name in names
    ]


def _quick(name: str, quick: bool) -> dict[str, Any]:
    if not quick:
        return {}
    if CONTENDERS[name].method == "diffan":
        return QUICK
    return {"max_steps": 50} if name == "gran-dag" else {}
