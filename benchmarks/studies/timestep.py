"""The choice of t against a majority vote (the paper's appendix on the optimal t)."""

from __future__ import annotations

from pathlib import Path

from diffan.settings import OrderSettings, ScoreSettings, ddpm_sigmas
from sweep import plots
from sweep.cell import Cell
from sweep.data import EVALUATION, paper_sets
from sweep.page import Section, image, shown, table
from sweep.results import Results, summary, values
from sweep.study import QUICK, Size, Study

STEPS = (0, 24, 49, 74, 99)


def orderings() -> dict[str, dict]:
    """A vote at each t alone, the paper's three by majority, all five by majority, and their mean."""
    sigmas = ddpm_sigmas(ScoreSettings.paper())
    alone = {f"t = {t}": {"noise_levels": [sigmas[t]]} for t in STEPS}
    five = {"noise_levels": [sigmas[t] for t in STEPS]}
    paper = {"noise_levels": list(OrderSettings.paper().noise_levels)}
    return {**alone, "majority of 3": paper, "majority of 5": five, "mean of 5": {**five, "vote": "log_mean"}}


def cells(size: Size) -> list[Cell]:
    if size == "small":
        sets = paper_sets([EVALUATION], nodes=4, samples=80, scales=[0], kinds=[("er", 1)], noises=["gauss"])
        options = {"orderings": orderings(), "settings": QUICK}
        return [Cell(spec, "paper-masking", "orders", options) for spec in sets]
    sets = paper_sets([EVALUATION], scales=[0])
    return [Cell(spec, "paper-masking", "orders", {"orderings": orderings()}) for spec in sets]


def section(results: Results, figures: Path) -> Section:
    page = Section("The choice of t against a majority vote")
    page.add(
        "The paper shows a figure without numbers and says that the best t varies and that a majority vote is better than any "
        "single t. The paper's network and masking, one training a set, noise scales in [0.4, 0.8]."
    )
    records = [
        record
        for record in results.select(work="orders", method="paper-masking", nodes=20)
        if "majority of 3" in record["result"]["divergences"]
        and not record["settings"]["options"].get("settings")
    ]
    found = {name: summary(records, f"divergences.{name}") for name in orderings()}
    rows = [[name, shown(one), str(one.count if one else 0)] for name, one in found.items()]
    page.add(table(["t", "order divergence", "sets"], rows))
    if records:
        groups = {name: values(records, f"divergences.{name}") for name in orderings()}
        plots.violins(figures / "timestep.svg", {"paper's network, masking": groups}, "order divergence")
        page.add(image("timestep.svg", "Order divergence by t and by vote"))
        alone = {name: one.mean for name, one in found.items() if name.startswith("t =") and one}
        best = min(alone, key=lambda name: alone[name])
        vote = found["majority of 3"]
        if vote:
            word = "better" if vote.mean < alone[best] else "no better"
            page.verdict = (
                f"A majority vote over three t is {word} than the best single t ({vote.mean:.1f} against {alone[best]:.1f} "
                f"at {best}); t = 0 alone, where the noise carries almost no score, gives {alone['t = 0']:.1f}."
            )
    return page.add(page.verdict)


STUDY = Study("timestep", cells, section)
