"""The graph of a run ready to be drawn without a browser: boxes, labels, routes and marks."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.metrics import aligned
from diffan.report.layout import NODE_HEIGHT, Point, place

LETTER = 7.6  # width of a letter at the labels' size; an East Asian one takes two
MOST_LETTERS = 20
LEAST_WIDTH = 44.0
PADDING = 20.0
COLOURS = {  # near Okabe and Ito's; a test holds them apart for the colour-blind
    "": "#5b6b79",
    "correct": "#00795a",
    "extra": "#d55e00",
    "reversed": "#6a2c91",
    "missing": "#8d99a5",
}
DASHES = {"": "", "correct": "", "extra": "8 4", "reversed": "2 3.5", "missing": "10 3 2 3"}

Mark = Literal["", "correct", "extra", "reversed", "missing"]


@dataclass(frozen=True)
class Box:
    """One variable; x and y are its centre."""

    name: str
    label: str
    x: float
    y: float
    width: float
    place: float  # in the causal order, 0 for the first and 1 for the last


@dataclass(frozen=True)
class Arrow:
    """One edge; the curve through `points` leaves and arrives upright, the tip is at the effect's end."""

    cause: str
    effect: str
    points: list[Point]
    upwards: bool  # a true edge that runs against the order: its tip is at the first point
    mark: Mark
    p_value: float | None


@dataclass(frozen=True)
class Drawing:
    boxes: list[Box]
    arrows: list[Arrow]
    width: float
    height: float


def drawing(result: Discovery, truth: Dag | None = None) -> Drawing:
    """Lay the run's graph out; with the truth, each edge gets its mark and missing edges are added."""
    rank = {name: k for k, name in enumerate(result.order)}
    labels = [_label(name) for name in result.order]
    widths = [max(LEAST_WIDTH, LETTER * _letters(label) + PADDING) for label in labels]
    edges = _marked(result, truth)
    ends = [(rank[cause], rank[effect]) for cause, effect, _ in edges]
    found = place(widths, [(min(pair), max(pair)) for pair in ends])
    last = max(len(labels) - 1, 1)
    boxes = [
        Box(name, labels[k], found.x[k], found.y[k], widths[k], k / last)
        for k, name in enumerate(result.order)
    ]
    p_values = {edge: facts["p_value"] for edge, facts in result.edge_facts().items()}
    arrows = [
        Arrow(cause, effect, route, start > end, mark, p_values.get((cause, effect)))
        for (cause, effect, mark), (start, end), route in zip(edges, ends, found.routes, strict=True)
    ]
    return Drawing(boxes, arrows, max(found.width, 1.0), max(found.height, NODE_HEIGHT))


def _marked(result: Discovery, truth: Dag | None) -> list[tuple[str, str, Mark]]:
    found = list(result.edge_facts())
    if truth is None:
        return [(cause, effect, "") for cause, effect in found]
    true_dag, _ = aligned(truth, result.dag)
    true, drawn = set(true_dag.edges), set(found)
    marked: list[tuple[str, str, Mark]] = []
    for cause, effect in found:
        mark: Mark = (
            "correct" if (cause, effect) in true else "reversed" if (effect, cause) in true else "extra"
        )
        marked.append((cause, effect, mark))
    missing = [(a, b) for a, b in true_dag.edges if (a, b) not in drawn and (b, a) not in drawn]
    return marked + [(cause, effect, "missing") for cause, effect in missing]


def _label(name: str) -> str:
    shown = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "(unnamed)"
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1] + "…"


def _letters(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
