"""GraN-DAG (Lachapelle et al. 2020): neural networks whose weights must not form a cycle.

The likelihood of all networks is maximised while h(A) = tr(exp A) - d, zero exactly for acyclic connectivity A, is
driven to zero by an augmented Lagrangian. Weak edges are clamped on the way; whatever cycle is left at the end loses
its weakest edge, so a DAG always comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from diffan.additive.gram import SplineGram
from diffan.additive.neighbours import neighbour_mask
from diffan.baselines.checks import require_whole
from diffan.baselines.gran_dag_training import GranDagTraining, TrainingSettings
from diffan.context import Context
from diffan.dag import topological_indices
from diffan.ordering.result import Ordering
from diffan.table import Table

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class GranDagOptions(TrainingSettings):
    """The networks' training (see TrainingSettings) and the neighbour selection before it."""

    preselect_above: int = 50  # paper: neighbours are selected first from about 50 variables on
    neighbours: int = 20  # choice: candidate parents per variable after selection

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self, "preselect_above", least=0)
        require_whole(self, "neighbours", least=1)


def find_order(table: Table, options: GranDagOptions, context: Context) -> Ordering:
    """Fit the networks, make their connectivity a DAG, and return an order of it; its edges are the candidates."""
    start = perf_counter()
    rules = context.rules(table.n_variables)
    allowed = (allowed_edges(table, options) & rules.permitted) | rules.required
    selected = perf_counter()
    training = GranDagTraining(table, allowed, options, context)
    with context.progress.task("GraN-DAG", total=options.max_steps) as task:
        acyclic = training.run(task)
    dag = rules.strongest_dag(training.strength())
    return Ordering(
        order=topological_indices((dag | rules.must_precede).astype(np.int8)),
        candidates=dag,
        losses=training.curves,
        timings={"neighbours": selected - start, "order": perf_counter() - selected},
        warnings=() if acyclic else (_still_cyclic(training, options),),
    )


def allowed_edges(table: Table, options: GranDagOptions) -> BoolArray:
    """Every edge between different variables, or with many variables the likely ones only: [d, d]."""
    every = ~np.eye(table.n_variables, dtype=np.bool_)
    if table.n_variables <= options.preselect_above:
        return every
    return neighbour_mask(SplineGram.from_values(table.values), every, options.neighbours)


def _still_cyclic(training: GranDagTraining, options: GranDagOptions) -> str:
    return (
        f"GraN-DAG stopped after {options.max_steps:,} iterations with an acyclicity value of "
        f"{training.curves['acyclicity'][-1]:.1e}, above its tolerance of {options.tolerance:g}; the weakest edges of "
        "the cycles left were removed. Raise 'max_steps' to let it finish."
    )
