"""A whole run but for its data and seed: plain values that can be sent to another process and asked for stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.algorithm import EdgeStage, OrderStage, RefineStage
from diffan.context import Context
from diffan.evidence import EdgeEvidence
from diffan.finish import Edges, EdgeSteps, Refine, RefineSteps, steps
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import Work, finish
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
    wide: bool | None = (
        None  # whether the search keeps to screened neighbours; None: by the size of each table
    )

    @property
    def fits_kernels(self) -> bool:
        """Whether some stage asks for leave-one-out fits."""
        return self.refine == "kernel" or self.edges == "likelihood"

    def reuses_model(self, table: Table) -> bool:
        """Whether an order by a model that was trained before spares a training."""
        reuses = getattr(import_module(self.module), "reuses_model", None)
        return reuses is not None and bool(reuses(self.order_settings, table))

    def stages(self) -> tuple[OrderStage, RefineStage | None, EdgeStage]:
        """The stages of one run, each a plain function."""
        find_order, refine, judge = self.steps(warn=True)

        def mended(ordering: Ordering, table: Table, context: Context) -> Ordering:
            assert refine is not None
            return finish(refine(ordering, table, context))

        def judged(ordering: Ordering, table: Table, context: Context) -> EdgeEvidence:
            return finish(judge(ordering, table, context))

        return find_order, None if refine is None else mended, judged

    def steps(
        self, model: Model | None = None, *, warn: bool = False
    ) -> tuple[OrderStage, RefineSteps | None, EdgeSteps]:
        """The same with mending and choosing as work that asks for its fits, so that tables can go in lockstep.

        With a model, the order is found by it instead of by a new one.
        """
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

        refine, find_edges = steps(
            self.refine,
            self.edges,
            self.prune_settings,
            self.likelihood_settings,
            wide=self.wide,
            warn=warn,
        )

        def judge(ordering: Ordering, table: Table, context: Context) -> Work[EdgeEvidence]:
            evidence = yield from find_edges(ordering, table, context)
            if self.adjust != "none":
                known = context.rules(table.n_variables).required
                return adjusted(evidence, self.adjust, self.cutoff or LEVEL, apart=known)
            # The likelihood finds its own cutoff from its null; one that was asked for replaces it.
            if self.edges == "likelihood" and self.cutoff is not None:
                return evidence.at_cutoff(self.cutoff)
            return evidence

        return find_order, refine, judge

    def orders_together(
        self, tables: Sequence[Table], contexts: Sequence[Context], model: Model | None
    ) -> list[Ordering] | None:
        """The orders of several tables by one model, found at once; None where the method has no way to."""
        home = import_module(self.module)
        if not model or not hasattr(home, "reorder_together"):
            return None
        found: list[Ordering] = home.reorder_together(tables, self.order_settings, contexts, model=model)
        return found
