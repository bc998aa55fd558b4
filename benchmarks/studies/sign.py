"""The sign of the residue: Algorithm 1 as the paper prints it, with a plus, and as its theorem has it."""

from __future__ import annotations

from pathlib import Path

from sweep.cell import Cell
from sweep.contenders import score_label
from sweep.data import EVALUATION, KINDS, paper_sets
from sweep.page import Section, shown, table
from sweep.results import Results, summary
from sweep.study import QUICK_SCORE, Size, Study

METHODS = ("masking", "paper-masking")
SIGNS = ("plus, as printed", "minus", "no residue (masking)")


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=4, samples=80, scales=[0], kinds=[("er", 1)], noises=["gauss"])
        return [
            Cell(spec, "masking", "sign", {"settings": QUICK_SCORE | {"order_batch_size": 8}})
            for spec in sets
        ]
    return [
        Cell(
            spec,
            method,
            "sign",
            {"settings": {"order_batch_size": 100}},
            rank=1 if spec["noise"] == "gauss" else 3,
        )
        for spec in paper_sets([EVALUATION], scales=[0])
        for method in METHODS
    ]


def section(results: Results, figures: Path) -> Section:
    page = Section("The sign of the residue")
    page.add(
        "The paper proves Δ = s - s₋ₗ and prints s + Δ in its Algorithm 1; the minus is right. Its algorithm letter by "
        "letter, summing Δ of the original score over all removed leaves, with each sign, from the same trained score. "
        '(The sum is exact for one leaf only; `variant="deciduous"` fills and takes a Schur complement instead.)'
    )
    rows, all_found = [], {}
    for method in METHODS:
        for graph, density in KINDS:
            records = results.select(work="sign", method=method, graph=graph, density=density, nodes=20)
            found = [summary(records, f"divergences.{name}") for name in SIGNS]
            rows.append(
                [score_label(method), f"{graph.upper()}{density}", *map(shown, found), str(len(records))]
            )
        records = results.select(work="sign", method=method, nodes=20)
        all_found[method] = [summary(records, f"divergences.{name}") for name in SIGNS]
    page.add(table(["score", "graph", *SIGNS, "sets"], rows))
    sentences = [
        f"with {score_label(method)} the printed plus gives a mean order divergence of {plus.mean:.1f}, the minus {minus.mean:.1f}, "
        f"no residue at all {none.mean:.1f} ({plus.count} sets)"
        for method, (plus, minus, none) in all_found.items()
        if plus and minus and none
    ]
    if sentences:
        page.verdict = "Letter by letter, " + "; ".join(sentences) + "."
    return page.add(page.verdict)


STUDY = Study("sign", cells, section)
