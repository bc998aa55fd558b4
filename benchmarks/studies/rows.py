"""The effect of n: 300, 1000, 3000 and 10,000 rows of 20 variables (our addition)."""

from __future__ import annotations

from pathlib import Path

from sweep import plots
from sweep.cell import Cell
from sweep.contenders import label
from sweep.data import EVALUATION, KINDS, paper_sets
from sweep.page import Section, image, shown, table
from sweep.results import Results, summary
from sweep.study import Size, Study, discoveries

ROWS = (300, 1000, 3000, 10_000)
METHODS = ("diffan", "masking", "paper-masking", "score", "cam", "var-sort", "r2-sort")


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = [
            spec
            for n in (60, 120)
            for spec in paper_sets(
                [EVALUATION], nodes=5, samples=n, scales=[0], kinds=[("er", 1)], noises=["gauss"]
            )
        ]
        return discoveries(sets, ["score", "var-sort"])
    found: list[Cell] = []
    for n in ROWS:
        for noises, later in ((["gauss"], 0), (["exp", "laplace"], 1)):
            sets = paper_sets([EVALUATION], samples=n, scales=[0], noises=noises)
            for method in METHODS:
                slow = n >= 3000 and method in ("score", "diffan") and (n, method) != (3000, "diffan")
                found += discoveries(sets, [method], rank=2 + later + slow)
    return found


def section(results: Results, figures: Path) -> Section:
    page = Section("The effect of n")
    page.add(
        "20 variables, noise scales in [0.4, 0.8], standardised columns; not in the paper. Means over graphs and noises."
    )
    rows = []
    panels: dict[str, dict[str, list]] = {"order divergence": {}, "SHD": {}}
    for graph_density in (1, 5):
        for method in METHODS:
            for n in ROWS:
                records = [
                    record
                    for graph, density in KINDS
                    if density == graph_density
                    for record in results.select(
                        method=method,
                        options={},
                        graph=graph,
                        density=density,
                        nodes=20,
                        samples=n,
                        scale=0,
                        seed=EVALUATION,
                    )
                ]
                found = [summary(records, m) for m in ("order_divergence", "shd", "sid", "seconds")]
                sortable = [summary(records, f"sortability.{kind}") for kind in ("var", "r2")]
                shares = " / ".join(f"{one.mean:.2f}" if one else "-" for one in sortable)
                density_name = f"ER{graph_density}, SF{graph_density}"
                rows.append(
                    [density_name, label(method), f"{n:,}", *map(shown, found), shares, str(len(records))]
                )
                for name, one in (("order divergence", found[0]), ("SHD", found[1])):
                    if one and graph_density == 5:
                        panels[name].setdefault(label(method), []).append((n, one.mean, one.error))
    header = [
        "graphs",
        "method",
        "rows",
        "order divergence",
        "SHD",
        "SID",
        "seconds",
        "var-/R²-sortability",
        "sets",
    ]
    page.add(table(header, rows))
    if panels["SHD"]:
        plots.lines(figures / "rows.svg", panels, "rows")
        page.add(
            image(
                "rows.svg",
                "Order divergence and SHD against rows, dense graphs (ER5 and SF5), with standard errors",
            )
        )
    return page


STUDY = Study("rows", cells, section)
