"""Who competes: a short name, the label tables show, and the options of `diffan.discover` it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contender:
    label: str
    method: str = "diffan"
    options: dict[str, Any] = field(default_factory=dict)
    wide: bool = False  # trains the paper's wide network: worth a GPU even for 20 variables


def _paper(variant: str) -> dict[str, Any]:
    return {"preset": "paper", "variant": variant}


_ORDER_ALONE: dict[str, Any] = {"refine": False, "edges": "additive"}

CONTENDERS: dict[str, Contender] = {
    "diffan": Contender("DiffAN (our default)"),
    "paper-deciduous": Contender("DiffAN as in the paper", options=_paper("deciduous"), wide=True),
    "paper-greedy": Contender("DiffAN Greedy as in the paper", options=_paper("greedy"), wide=True),
    "paper-masking": Contender("DiffAN Masking as in the paper", options=_paper("masking"), wide=True),
    "masking": Contender("our masking order, CAM pruning", options={"variant": "masking", **_ORDER_ALONE}),
    "local": Contender("our local order, CAM pruning", options={"variant": "local", **_ORDER_ALONE}),
    "local-default": Contender("DiffAN (variant local)", options={"variant": "local"}),
    "score": Contender("SCORE", "score"),
    "cam": Contender("CAM", "cam"),
    "gran-dag": Contender("GraN-DAG", "gran-dag"),
    "nogam": Contender("NoGAM", "nogam"),
    "das": Contender("DAS", "das"),
    "var-sort": Contender("sorted by variance", "var-sort"),
    "r2-sort": Contender("sorted by R²", "r2-sort"),
    "random": Contender("random order", "random"),
    "true-order": Contender("true order, CAM pruning", "true-order"),
}

BASELINES = ("cam", "gran-dag", "score", "nogam", "das", "var-sort", "r2-sort", "random")
PAPER_VARIANTS = ("paper-deciduous", "paper-greedy", "paper-masking")


def label(name: str) -> str:
    return CONTENDERS[name].label


def order_label(name: str) -> str:
    """The contender's order alone, where nothing is pruned."""
    return CONTENDERS[name].label.partition(",")[0]


def score_label(name: str) -> str:
    """Whose score a contender trains, where its order or graph is not the point."""
    return "the paper's score" if CONTENDERS[name].wide else "our score"
