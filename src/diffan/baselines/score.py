"""SCORE (Rolland et al. 2022): the variable whose d s_j / d x_j varies least is a leaf."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from diffan.baselines.checks import require_choice, require_number
from diffan.baselines.stein_order import order_by_stein, strong_parents
from diffan.context import Context
from diffan.ordering.result import Ordering
from diffan.table import Table


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How SCORE estimates the score, and whether its Hessian already excludes edges."""

    ridge: float = 0.001  # the SCORE paper's eta, for the score and for the Hessian
    stein_pruning: bool = False  # the paper's experiments prune by CAM alone; its theory allows the Hessian
    stein_cutoff: float = 0.05  # measured: smaller ones lose true edges; used with stein_pruning only

    def __post_init__(self) -> None:
        require_number(self, "ridge", above=0)
        require_choice(self, "stein_pruning", (True, False))
        require_number(self, "stein_cutoff", above=0, below=1)


def find_order(table: Table, options: ScoreOptions, context: Context) -> Ordering:
    """Order the columns by SCORE; with `stein_pruning` only edges the leaf's Hessian row speaks for are left."""
    test = partial(strong_parents, cutoff=options.stein_cutoff, min_parents=0, max_parents=table.n_variables)
    return order_by_stein(
        table,
        context,
        method="SCORE",
        ridge=options.ridge,
        test_parents=test if options.stein_pruning else None,
    )
