"""The two-variable picture: the diagonal of the score's Jacobian where A causes B."""

from __future__ import annotations

from pathlib import Path

from sweep import plots
from sweep.cell import Cell
from sweep.contenders import score_label
from sweep.data import EVALUATION, pair
from sweep.page import Section, image, table
from sweep.results import Results
from sweep.study import QUICK_SCORE, Size, Study

SEEDS = range(EVALUATION, EVALUATION + 10)
METHODS = ("masking", "paper-masking")
DRAWN = 400


def cells(size: Size) -> list[Cell]:
    if size == "small":
        return [Cell(pair(EVALUATION, 100), "masking", "jacobian", {"points": 20, "settings": QUICK_SCORE})]
    return [
        Cell(pair(seed), method, "jacobian", {"points": DRAWN} if seed == EVALUATION else {})
        for seed in SEEDS
        for method in METHODS
    ]


def section(results: Results, figures: Path) -> Section:
    page = Section("Two variables: the picture of the score's Jacobian")
    page.add(
        "A ~ N(0, 1), B = a random two-layer network of A + N(0, 1), 1000 rows. Theory says that ∂s/∂x of the effect B is "
        "constant; the paper shows one picture in which its variance is the smaller. Ten draws:"
    )
    rows = []
    for method in METHODS:
        records = results.select(work="jacobian", method=method, set="pair", samples=1000)
        right = sum(record["result"]["variances"][1] < record["result"]["variances"][0] for record in records)
        ratios = sorted(b / a for a, b in (record["result"]["variances"] for record in records))
        middle = f"{ratios[len(ratios) // 2]:.2f}" if ratios else "not run"
        rows.append([score_label(method), f"{right} of {len(records)}", middle])
        if records:
            page.verdict = f"Of two variables the effect has the smaller variance in {right} of {len(records)} draws ({score_label(method)})."
    page.add(table(["score", "effect has the smaller variance", "median variance of B / of A"], rows))
    for method in METHODS:
        drawn = [
            r for r in results.select(work="jacobian", method=method, set="pair") if r["result"]["points"]
        ]
        if drawn and len(drawn[0]["result"]["points"]) >= DRAWN:
            plots.jacobian_picture(figures / f"jacobian-{method}.svg", drawn[0]["result"]["points"])
            page.add(
                image(
                    f"jacobian-{method}.svg", f"The diagonal of the score's Jacobian, {score_label(method)}"
                )
            )
    return page


STUDY = Study("jacobian", cells, section)
