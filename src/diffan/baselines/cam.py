"""CAM (Buhlmann, Peters and Ernest 2014): the order that greedy search on the additive likelihood finds.

The Gaussian log-likelihood of an additive model is a sum over nodes of -log of the residual standard deviation, so
edges can be added one by one where they help most. Neighbours are selected beforehand when there are many variables;
the edges the search leaves are then pruned like every other method's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from diffan.additive.gram import SplineGram
from diffan.additive.neighbours import neighbour_mask
from diffan.baselines.cam_search import PenalisedGram, greedy_search
from diffan.baselines.checks import require_number, require_whole
from diffan.context import Context
from diffan.dag import topological_indices
from diffan.errors import InputError
from diffan.ordering.result import Ordering
from diffan.table import Table


@dataclass(frozen=True, kw_only=True)
class CamOptions:
    """CAM's regressions and its neighbour selection."""

    search_basis: int = 10  # CAM: spline functions per variable; fewer when there are few rows
    search_edf: float = 7.0  # measured on tuning sets: 3 to 9 degrees of freedom per parent give like orders
    min_gain: float = 0.0  # CAM: search until no edge raises the likelihood
    preselect_above: int = 50  # choice: with more variables than this, neighbours are selected first
    neighbours: int = 20  # choice: candidate parents per variable after selection; CAM's own default is 10

    def __post_init__(self) -> None:
        require_whole(self, "search_basis", least=2)
        require_number(self, "search_edf", above=0)
        require_whole(self, "preselect_above", least=0)
        require_whole(self, "neighbours", least=1)
        if (
            isinstance(self.min_gain, bool)
            or not isinstance(self.min_gain, (int, float))
            or self.min_gain < 0
        ):
            raise InputError(
                f"The 'min_gain' parameter of CamOptions must be a number of 0 or more. Got {self.min_gain!r} instead."
            )


def find_order(table: Table, options: CamOptions, context: Context) -> Ordering:
    """Search greedily for edges; the graph's order is the order, its edges are the candidates for pruning."""
    start = perf_counter()
    d = table.n_variables
    most = min(options.neighbours, d - 1) if d > options.preselect_above else d - 1
    basis = max(2, min(options.search_basis, math.ceil(table.n_samples / (3 * max(most, 1)))))  # CAM's rule
    gram = SplineGram.from_values(table.values, n_basis=basis)
    rules = context.rules(d)
    candidates = neighbour_mask(gram, rules.permitted, most) | rules.required
    selected = perf_counter()
    with context.progress.task("CAM") as task:
        found = greedy_search(
            PenalisedGram.build(gram, options.search_edf),
            candidates,
            task,
            min_gain=options.min_gain,
            rules=rules,
        )
    return Ordering(
        order=topological_indices((found.adjacency | rules.must_precede).astype(np.int8)),
        candidates=found.adjacency,
        losses={"negative log-likelihood": found.negative_log_likelihood},
        timings={"neighbours": selected - start, "order": perf_counter() - selected},
    )
