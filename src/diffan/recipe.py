"""A whole run but for its data and seed: plain values that can be sent to another process and asked for stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.algorithm import EdgeStage, OrderStage, RefineStage
from diffan.context import Context
from diffan.evidence import EdgeEvidence
from diffan.finish import Edges, Refine, stages
from diffan.likelihood.settings import LikelihoodSettings
from diffan.multiplicity import LEVEL, Adjust, adjusted
from diffan.ordering.result import Ordering
from diffan.pruning import PruneSettings
from diffan.table import Table

Model = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Recipe:
    """Where the order comes from, how it is mended and how edges are chosen along it."""

    module: (
        str  # has find_order(table, settings, context), and reorder(..., model) where a model can be reused
    )
    order_settings: Any
    refine: Refine
    edges: Edges
    prune_settings: PruneSettings
    likelihood_settings: LikelihoodSettings
    adjust: Adjust = "none"
    cutoff: float | None = None  # asked for; None leaves it to the edge stage, or to LEVEL when adjusting
    label: str = "This method"
    most_rows: int | None = None  # of a table on disk, for a method that holds its rows in memory

    def stages(self, model: Model | None = None) -> tuple[OrderStage, RefineStage | None, EdgeStage]:
        """The stages of one run; with a model, the order is found by it instead of by a new one."""
        home = import_module(self.module)
        if model and hasattr(home, "reorder"):
            by_method = partial(home.reorder, model=model)
        else:
            by_method = home.find_order

        def find_order(table: Table, context: Context) -> Ordering:
            used = table if self.most_rows is None else table.in_memory(self.most_rows)
            found: Ordering = by_method(used, self.order_settings, context)
            if used.n_samples == table.n_samples:
                return found
            note = (
                f"{self.label} holds its rows in memory: its order is that of {used.n_samples} random rows of "
                f"{table.n_samples}."
            )
            return replace(found, warnings=(*found.warnings, note))

        refine, find_edges = stages(self.refine, self.edges, self.prune_settings, self.likelihood_settings)

        def judge(ordering: Ordering, table: Table, context: Context) -> EdgeEvidence:
            evidence = find_edges(ordering, table, context)
            if self.adjust != "none":
                known = context.rules(table.n_variables).required
                return adjusted(evidence, self.adjust, self.cutoff or LEVEL, apart=known)
            # The likelihood finds its own cutoff from its null; one that was asked for replaces it.
            if self.edges == "likelihood" and self.cutoff is not None:
                return evidence.at_cutoff(self.cutoff)
            return evidence

        return find_order, refine, judge
