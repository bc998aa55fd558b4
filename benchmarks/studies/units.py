"""Raw against standardised columns: what the units of the benchmark give away (our addition)."""

from __future__ import annotations

from pathlib import Path

from sweep.cell import Cell
from sweep.contenders import label
from sweep.data import EVALUATION, KINDS, paper_sets
from sweep.page import Section, shown, table
from sweep.results import Results, summarised, summary
from sweep.study import Size, Study, discoveries

RAW = {"standardize": False}
METHODS = ("diffan", "masking", "paper-masking", "score", "cam", "nogam")


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=5, samples=80, scales=[0], kinds=[("er", 1)], noises=["gauss"])
        return discoveries(sets, ["score"], **RAW)
    return [
        *discoveries(paper_sets([EVALUATION]), ["score", "cam"], rank=1, **RAW),
        *discoveries(paper_sets([EVALUATION], scales=[0]), ["diffan", "paper-masking"], rank=3, **RAW),
        *discoveries(paper_sets([EVALUATION], scales=[0]), ["masking", "nogam"], rank=3, **RAW),
    ]


def section(results: Results, figures: Path) -> Section:
    page = Section("Raw and standardised input apart")
    page.add(
        "The same 20-node sets with the columns' own units and standardised; only sets that were run both ways. Sorting by "
        "variance reads the raw units and is the same in both."
    )
    rows = []
    for method in (*METHODS, "var-sort"):
        for graph, density in KINDS:
            where = {"method": method, "graph": graph, "density": density, "nodes": 20, "samples": 1000}
            plain = {_name(record): record for record in results.select(options={}, **where)}
            raw = {_name(record): record for record in results.select(options=RAW, **where)}
            both = sorted(plain if method == "var-sort" else set(plain) & set(raw))
            line = [label(method), f"{graph.upper()}{density}"]
            for measure in ("order_divergence", "shd"):
                line.append(shown(summary([plain[name] for name in both], measure)))
                line.append(
                    "same" if method == "var-sort" else shown(summary([raw[name] for name in both], measure))
                )
            shares = [plain[name]["result"]["sortability"]["var"] for name in both]
            one = summarised(shares)
            rows.append([*line, f"{one.mean:.2f}" if one else "-", str(len(both))])
    header = [
        "method",
        "graph",
        "order divergence, standardised",
        "raw",
        "SHD, standardised",
        "raw",
        "var-sortability",
        "sets",
    ]
    return page.add(table(header, rows))


def _name(record: dict) -> tuple:
    data = record["settings"]["data"]
    return data["noise"], data["scale"], data["seed"]


STUDY = Study("units", cells, section)
