"""The paper's variants against each other: SID and run time (its appendix on masking and greedy)."""

from __future__ import annotations

from pathlib import Path

from studies import tables
from sweep import plots
from sweep.cell import Cell
from sweep.contenders import PAPER_VARIANTS, label
from sweep.data import EVALUATION, KINDS, paper_sets
from sweep.page import Section, count, image, shown, table
from sweep.results import Results, summary, values
from sweep.study import Size, Study, discoveries

METHODS = (*PAPER_VARIANTS, "masking", "diffan")


def cells(size: Size) -> list[Cell]:
    if size == "small":
        return discoveries(paper_sets([EVALUATION], **tables.SMALL), PAPER_VARIANTS, quick=True)
    return discoveries(paper_sets([EVALUATION]), ["masking"], rank=2)  # the others are cells of the tables


def section(results: Results, figures: Path) -> Section:
    page = Section("The variants: deciduous, masking, greedy")
    page.add(
        "The paper shows two figures without numbers and says that greedy is best and slowest. Same sets as in the tables "
        "above; the variants as in the paper, our masking order with the same pruning, and our default."
    )
    rows = []
    for method in METHODS:
        for graph, density in KINDS:
            records = _records(results, method, graph, density)
            line = [label(method), f"{graph.upper()}{density}"]
            line += [shown(summary(records, measure)) for measure in ("order_divergence", "shd", "sid")]
            rows.append([*line, shown(summary(records, "seconds"), 2), count(summary(records, "shd"))])
    page.add(table(["method", "graph", "order divergence", "SHD", "SID", "seconds", "sets"], rows))
    for measure, name in (("sid", "SID"), ("order_divergence", "order divergence"), ("seconds", "seconds")):
        groups = {
            label(m): [value for kind in KINDS for value in values(_records(results, m, *kind), measure)]
            for m in METHODS
        }
        if any(groups.values()):
            file = f"variants-{measure.replace('_', '-')}.svg"
            plots.violins(figures / file, {"all 20-node sets": groups}, name, log=measure == "seconds")
            page.add(image(file, f"{name} of the variants"))
    page.verdict = _verdict(results)
    return page.add(page.verdict)


def _records(results: Results, method: str, graph: str, density: int) -> list:
    return results.select(method=method, options={}, graph=graph, density=density, nodes=20, samples=1000)


def _verdict(results: Results) -> str:
    """What the paper's own algorithm does once its sign is right, on the sets that all of these have run."""
    methods = ("paper-deciduous", "paper-masking", "paper-greedy", "score", "random")
    divergences = {
        method: {
            record["key"]: record
            for record in results.select(method=method, options={}, nodes=20, samples=1000)
        }.values()
        for method in methods
    }
    found = {method: summary(records, "order_divergence") for method, records in divergences.items()}
    if found["paper-deciduous"] is None:
        return "The paper's own algorithm with its sign mended has not been run yet."
    words = ", ".join(
        f"{found[method].mean:.1f} ({label(method)}, {found[method].count} sets)"
        for method in methods
        if found[method]
    )
    return (
        "The paper's own algorithm, with its printed settings and the sign of its residue mended, orders 20-node graphs "
        f"with these mean divergences: {words}."
    )


STUDY = Study("variants", cells, section)
