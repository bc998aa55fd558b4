"""Run time and order divergence against the number of rows at 500 variables (Figures 1 and 4 left)."""

from __future__ import annotations

from pathlib import Path

from sweep import plots
from sweep.cell import Cell
from sweep.contenders import order_label
from sweep.data import EVALUATION, paper_sets
from sweep.page import NOT_RUN, Section, image, shown, table
from sweep.results import Results, summary
from sweep.study import QUICK, Size, Study

ROWS = (100, 1000, 10_000, 100_000)
METHODS = ("masking", "local", "paper-masking", "score", "r2-sort", "random")
KINDS = (("er", 1), ("sf", 1))


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=12, samples=60, scales=[0], kinds=[("er", 1)], noises=["gauss"])
        return [
            Cell(spec, method, "order", options=QUICK if method in ("masking", "local") else {})
            for spec in sets
            for method in ("masking", "local", "score", "random")
        ]
    return [
        Cell(spec, method, "order", rank=_rank(method, rows, spec["seed"]))
        for rows in ROWS
        for method in METHODS
        for spec in paper_sets(
            [EVALUATION, EVALUATION + 1, EVALUATION + 2],
            nodes=500,
            samples=rows,
            scales=[0],
            kinds=KINDS,
            noises=["gauss"],
        )
    ]


def _rank(method: str, rows: int, seed: int) -> int:
    """Two sets first; the paper's wide network and SCORE on many rows when there is time."""
    if seed > EVALUATION:
        return 4
    if rows <= 10_000:
        return 3 if method == "paper-masking" or (method == "score" and rows > 1000) else 0
    return 3 if method == "paper-masking" else 1


def section(results: Results, figures: Path) -> Section:
    page = Section("500 variables: run time and order divergence against rows")
    page.add(
        "Graphs with one edge a node (ER and SF), Gaussian noise; ordering alone, as in the paper, so seconds are training "
        "and ordering. The paper shows curves and prints two facts: SCORE is intractable beyond 2000 rows in 64 GB, and "
        "DiffAN's divergence falls as rows are added. A random order reverses half of the edges. Our masking and local orders "
        "and SCORE had the GPU to themselves, but for one of the local cells of 100,000 rows; the paper's network shared it with a "
        "dozen other processes, which slows it down several times."
    )
    rows = []
    panels: dict[str, dict[str, list]] = {"seconds": {}, "order divergence": {}}
    for method in METHODS:
        for n in ROWS:
            records = results.select(work="order", method=method, nodes=500, samples=n)
            seconds, divergence = (summary(records, measure) for measure in ("seconds", "order_divergence"))
            memory = [max(record.get("memory", {}).values(), default=0) for record in records]
            peak = f"{max(memory) / 1024:.1f} GiB" if memory else "-"
            words = _failure(results, method, n) if not records else shown(divergence)
            sortable = [summary(records, f"sortability.{kind}") for kind in ("var", "r2")]
            shares = " / ".join(f"{one.mean:.2f}" if one else "-" for one in sortable)
            rows.append(
                [order_label(method), f"{n:,}", words, shown(seconds), peak, shares, str(len(records))]
            )
            if seconds and divergence:
                for name, found in (("seconds", seconds), ("order divergence", divergence)):
                    panels[name].setdefault(order_label(method), []).append(
                        (n, found.mean, 1.96 * found.error)
                    )
    header = ["method", "rows", "order divergence", "seconds", "most memory", "var-/R²-sortability", "sets"]
    page.add(table(header, rows))
    if panels["seconds"]:
        plots.lines(figures / "samples.svg", panels, "rows", logy=["seconds"])
        page.add(
            image(
                "samples.svg",
                "Run time and order divergence against rows at 500 variables (Figures 1 and 4 left)",
            )
        )
    page.verdict = _verdict(results)
    return page.add(page.verdict)


def _failure(results: Results, method: str, n: int) -> str:
    failed = results.select(work="order", method=method, nodes=500, samples=n, status="failed")
    return failed[0]["error"].partition(".")[0] if failed else NOT_RUN


def _verdict(results: Results) -> str:
    ends = [
        summary(results.select(work="order", method="masking", nodes=500, samples=n), "order_divergence")
        for n in (ROWS[0], ROWS[-1])
    ]
    if ends[0] is None or ends[1] is None:
        return "The study of 500 variables has not been run up to 100,000 rows."
    falls = "falls" if ends[1].mean < ends[0].mean else "does not fall"
    return (
        f"At 500 variables the divergence of the masking order {falls} from {ends[0].mean:.0f} at 100 rows to "
        f"{ends[1].mean:.0f} at 100,000 rows."
    )


STUDY = Study("samples", cells, section)
