"""DAS (Montagna et al. 2023): SCORE's order, with each leaf's parents preselected by its Hessian row.

For a leaf l of an additive-noise model d s_l / d x_j vanishes unless j is a parent of l, so the row of the
Hessian that the order computes anyway names the parents. Pruning then tests a few edges per node instead of
all predecessors, which is what makes DAS scale to many variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from diffan.baselines.checks import require_number, require_whole
from diffan.baselines.stein_order import order_by_stein, strong_parents
from diffan.context import Context
from diffan.errors import InputError
from diffan.ordering.result import Ordering
from diffan.table import Table


@dataclass(frozen=True, kw_only=True)
class DasOptions:
    """How DAS estimates the score and how many parents it lets through to pruning."""

    ridge: float = 0.001  # as SCORE
    stein_cutoff: float = 0.05  # measured: a loose test, because pruning follows
    min_parents: int = 10  # measured: this many pass untested; 5 loses a tenth of the edges of dense graphs
    max_parents: int = 20  # choice: the cap K of the DAS paper, which bounds the cost of pruning

    def __post_init__(self) -> None:
        require_number(self, "ridge", above=0)
        require_number(self, "stein_cutoff", above=0, below=1)
        require_whole(self, "min_parents", least=0)
        require_whole(self, "max_parents", least=1)
        if self.max_parents < self.min_parents:
            raise InputError(
                f"The 'max_parents' parameter of DasOptions must be at least min_parents = {self.min_parents}. "
                f"Got {self.max_parents} instead."
            )


def find_order(table: Table, options: DasOptions, context: Context) -> Ordering:
    """Order the columns as SCORE does and keep, for each leaf, the nodes its score reacts to."""
    test = partial(
        strong_parents,
        cutoff=options.stein_cutoff,
        min_parents=options.min_parents,
        max_parents=options.max_parents,
    )
    return order_by_stein(table, context, method="DAS", ridge=options.ridge, test_parents=test)
