"""The violins of the paper's Figure 3 for graphs of 50 nodes."""

from __future__ import annotations

from pathlib import Path

from sweep import plots
from sweep.cell import Cell
from sweep.contenders import label
from sweep.data import EVALUATION, KINDS, paper_sets
from sweep.page import Section, count, image, shown, table
from sweep.results import Results, summary, values
from sweep.study import Size, Study, discoveries

CHEAP = ("cam", "score", "var-sort", "r2-sort", "random")
METHODS = ("diffan", "local-default", "paper-masking", "paper-deciduous", *CHEAP)


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=8, samples=100, scales=[0], kinds=[("sf", 1)], noises=["gauss"])
        return discoveries(sets, ["cam", "r2-sort"])
    gauss = paper_sets([EVALUATION], nodes=50, scales=[0], noises=["gauss"])
    others = paper_sets([EVALUATION], nodes=50, scales=[0], noises=["exp", "laplace"])
    return [
        *discoveries(gauss, CHEAP),
        *discoveries(gauss, ["diffan", "paper-masking"], rank=2),
        *discoveries(others, CHEAP, rank=1),
        *discoveries(others, ["diffan", "paper-masking"], rank=3),
        *discoveries([*gauss, *others], ["paper-deciduous", "local-default"], rank=4),
    ]


def section(results: Results, figures: Path) -> Section:
    page = Section("Graphs of 50 nodes")
    page.add(
        "The paper shows violins and prints no numbers here. Noise scales in [0.4, 0.8], 1000 rows, standardised columns; "
        "means over the noises that were run. The local variant ran with the least priority on busy machines: its seconds say little."
    )
    rows = []
    for graph, density in KINDS:
        for method in METHODS:
            records = _records(results, graph, density, method)
            rows.append(
                [
                    f"{graph.upper()}{density}",
                    label(method),
                    shown(summary(records, "shd")),
                    shown(summary(records, "sid")),
                    shown(summary(records, "order_divergence")),
                    shown(summary(records, "seconds"), 2),
                    _sortability(results, graph, density),
                    count(summary(records, "shd")),
                ]
            )
    header = ["graph", "method", "SHD", "SID", "order divergence", "seconds", "var-/R²-sortability", "sets"]
    page.add(table(header, rows))
    panels = {
        f"{graph.upper()}{density}": {
            label(m): values(_records(results, graph, density, m), "shd") for m in METHODS
        }
        for graph, density in KINDS
    }
    if any(found for groups in panels.values() for found in groups.values()):
        plots.violins(figures / "fifty-shd.svg", panels, "SHD")
        page.add(image("fifty-shd.svg", "SHD by method on graphs of 50 nodes"))
    return page


def _records(results: Results, graph: str, density: int, method: str) -> list:
    return results.select(method=method, options={}, graph=graph, density=density, nodes=50, samples=1000)


def _sortability(results: Results, graph: str, density: int) -> str:
    records = _records(results, graph, density, "var-sort")
    found = [summary(records, f"sortability.{kind}") for kind in ("var", "r2")]
    return " / ".join(f"{one.mean:.2f}" if one else "-" for one in found)


STUDY = Study("fifty", cells, section)
