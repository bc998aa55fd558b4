"""How many rows k the order needs once the score is trained (Figure 4 right)."""

from __future__ import annotations

from pathlib import Path

from sweep import plots
from sweep.cell import Cell
from sweep.contenders import score_label
from sweep.data import EVALUATION, paper_sets
from sweep.page import Section, image, shown, table
from sweep.results import Results, summary
from sweep.study import QUICK_SCORE, Size, Study

BATCHES = (8, 16, 32, 64, 128, 256, 512, 1000)
NODES = (10, 20, 50)
KINDS = (("er", 1), ("sf", 1))
ORDERINGS = {f"k = {k}": {"order_batch_size": k} for k in BATCHES}
METHODS = ("masking", "paper-masking")


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=5, samples=100, scales=[0], kinds=KINDS[:1], noises=["gauss"])
        options = {"orderings": ORDERINGS, "settings": QUICK_SCORE}
        return [Cell(spec, "masking", "orders", options) for spec in sets]
    return [
        Cell(spec, method, "orders", {"orderings": ORDERINGS}, rank=0 if method == "masking" else 2)
        for nodes in NODES
        for spec in paper_sets(
            [EVALUATION, EVALUATION + 1, EVALUATION + 2],
            nodes=nodes,
            scales=[0],
            kinds=KINDS,
            noises=["gauss"],
        )
        for method in METHODS
    ]


def section(results: Results, figures: Path) -> Section:
    page = Section("Ordering batch size k")
    page.add(
        "The paper shows curves without numbers and says that a small k costs little. One training a set, then an order for "
        "each k; six sets (three ER, three SF, one edge a node, Gaussian noise, 1000 rows)."
    )
    rows = []
    panels: dict[str, dict[str, list]] = {
        f"order divergence, {score_label(method)}": {} for method in METHODS
    }
    for method in METHODS:
        for nodes in NODES:
            options = {"orderings": ORDERINGS}
            records = results.select(work="orders", method=method, options=options, nodes=nodes)
            found = [summary(records, f"divergences.k = {k}") for k in BATCHES]
            rows.append([score_label(method), str(nodes), *map(shown, found), str(len(records))])
            points = [(k, one.mean, 1.96 * one.error) for k, one in zip(BATCHES, found, strict=True) if one]
            if points:
                panels[f"order divergence, {score_label(method)}"][f"d = {nodes}"] = points
    page.add(table(["score", "nodes", *(f"k = {k}" for k in BATCHES), "sets"], rows))
    panels = {name: series for name, series in panels.items() if series}
    if panels:
        plots.lines(figures / "batch-size.svg", panels, "k")
        page.add(image("batch-size.svg", "Order divergence against the ordering batch size (Figure 4 right)"))
    return page


STUDY = Study("batch_size", cells, section)
