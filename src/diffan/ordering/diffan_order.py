"""From a table to a causal order: train the score once, then peel leaves with the chosen variant."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from diffan.algorithm import LeafFinder, topological_order
from diffan.context import Context
from diffan.ordering.curvature import NetworkField
from diffan.ordering.deciduous import FillReport, deciduous_finder
from diffan.ordering.greedy import greedy_finder
from diffan.ordering.kernel_opinion import kernel_opinion
from diffan.ordering.leaves import Memory, kept_leaves
from diffan.ordering.local import find_local_order
from diffan.ordering.masking import masking_finder
from diffan.ordering.points import OrderingPoints
from diffan.ordering.result import Ordering
from diffan.ordering.retraining import Retrainer
from diffan.ordering.together import masking_orders
from diffan.score.model import ScoreModel
from diffan.score.team import present_team
from diffan.score.training import train
from diffan.settings import DiffanSettings, Variant
from diffan.table import Table

Array = npt.NDArray[np.float64]
MOST_DENSE = 50  # choice: at 20 variables the dense start is measured better, at 500 the local one by far
Weights = npt.NDArray[np.float32]
REPLICATE_ROWS = 256  # measured, see `thrifty`
LEAST_POINTS = 64  # a variance over fewer points is mostly chance


def find_order(table: Table, settings: DiffanSettings, context: Context) -> Ordering:
    """Order the columns of a table, causes first, with the evidence at every step.

    The score is learned on standardised columns in any case; in a table that keeps the user's units the derivatives
    are turned back into them before leaves are compared.
    """
    variant = chosen_variant(settings, table)
    if variant == "local":
        return find_local_order(table, settings, context)
    settings = replace(settings, variant=variant)
    started = time.perf_counter()
    model, losses = train(
        _standardised(table),
        settings.score,
        context.rng("score"),
        context.torch_device(),
        context.progress,
        place=context.keeper.stage("train"),
        team=present_team(),
    )
    trained = time.perf_counter()
    found = _peel(table, model, settings, context)
    return replace(
        found,
        losses=losses,
        timings={"train": trained - started, "order": time.perf_counter() - trained},
        model=model.to_arrays(),
    )


def reuses_model(settings: DiffanSettings, table: Table) -> bool:
    """Whether `reorder` spares a training."""
    return chosen_variant(settings, table) in ("masking", "deciduous")


def reorder(
    table: Table, settings: DiffanSettings, context: Context, *, model: Mapping[str, Weights]
) -> Ordering:
    """Order other rows of the same columns by a score that was trained before; variants that train again do so."""
    settings = replace(settings, variant=chosen_variant(settings, table))
    if not reuses_model(settings, table):
        return find_order(table, settings, context)
    return by_model(table, thrifty(settings), context, model)


def by_model(
    table: Table, settings: DiffanSettings, context: Context, model: Mapping[str, Weights]
) -> Ordering:
    """The order of a table's rows by a score that was trained before, just as the settings say."""
    return _peel(table, _stored_model(model, settings, context), settings, context)


def reorder_together(
    tables: Sequence[Table],
    settings: DiffanSettings,
    contexts: Sequence[Context],
    *,
    model: Mapping[str, Weights],
) -> list[Ordering]:
    """`reorder` for tables with as many rows, which on a GPU are peeled in lockstep where the variant can be."""
    variant = chosen_variant(settings, tables[0])
    if variant != "masking" or contexts[0].torch_device().type == "cpu":
        return [
            reorder(table, settings, context, model=model)
            for table, context in zip(tables, contexts, strict=True)
        ]
    return masked_together(tables, replace(settings, variant=variant), contexts, model=model)


def thrifty(settings: DiffanSettings) -> DiffanSettings:
    """What orders many replicates: the score alone, for a kernel's opinion would be found anew for each.

    Masking by the mean of several noise levels goes by the middle one, at a few hundred rows. Measured on 144 halves of 24 tuning
    tables: mean divergence 7.37, and 7.36 by three levels at 500 rows, which takes six times as long.
    """
    order = replace(settings.order, kernel_columns=0)
    if settings.variant != "masking" or order.vote != "log_mean":
        return replace(settings, order=order)
    levels = sorted(order.noise_levels)
    rows = min(order.order_batch_size, REPLICATE_ROWS)
    order = replace(order, noise_levels=(levels[len(levels) // 2],), order_batch_size=rows)
    return replace(settings, order=order)


def masked_together(
    tables: Sequence[Table],
    settings: DiffanSettings,
    contexts: Sequence[Context],
    *,
    model: Mapping[str, Weights],
) -> list[Ordering]:
    """The orders of the masking variant for several tables; without the evidence, which replicates do not keep."""
    settings = thrifty(settings)
    field = _field(_stored_model(model, settings, contexts[0]), settings)
    points = [_points(table, settings, context) for table, context in zip(tables, contexts, strict=True)]
    n_nodes = tables[0].n_variables
    orders = masking_orders(field, points, n_nodes, contexts[0].rules(n_nodes).leaves_among)
    return [Ordering(order=order) for order in orders]


def _stored_model(model: Mapping[str, Weights], settings: DiffanSettings, context: Context) -> ScoreModel:
    stored = ScoreModel.from_arrays(dict(model), settings.score).network
    device = context.torch_device()
    return ScoreModel.of(stored.mapped(lambda _, weights: weights.to(device)), settings.score)


def _points(table: Table, settings: DiffanSettings, context: Context) -> OrderingPoints:
    device = context.torch_device()
    return OrderingPoints(
        _standardised(table), settings.order, _order_seed(context), device, scale=table.raw_scale
    )


def _standardised(table: Table) -> Array:
    return table.values if table.standardized else table.values / table.scale


def _peel(table: Table, model: ScoreModel, settings: DiffanSettings, context: Context) -> Ordering:
    """Take leaves away by the model's score at the table's rows."""
    report = FillReport()
    points = _points(table, settings, context)
    if table.n_variables <= settings.order.kernel_columns:
        rows = points.drawn(context.rng("kernel opinion"), settings.order.kernel_rows)
        points = replace(points, second_opinion=kernel_opinion(rows, points.device))
    finder, memory = _make_finder(points, model, settings, context, report)
    finder = kept_leaves(finder, context.keeper.stage("leaves"), memory)
    with context.progress.task("order", max(table.n_variables - 1, 0)) as task:

        def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
            found = finder(remaining, removed)
            task.advance(1)
            return found

        rules = context.rules(table.n_variables)
        order, evidence = topological_order(find_leaf, table.n_variables, rules.leaves_among)
    return Ordering(order=order, evidence=evidence, warnings=report.warnings())


def chosen_variant(settings: DiffanSettings, table: Table) -> Variant:
    """The variant that was asked for, or what "auto" means for this table."""
    return settings.variant if settings.variant != "auto" else automatic_variant(table.n_variables)


def automatic_variant(n_variables: int) -> Variant:
    """What "auto" means: one dense network while it can learn to ignore the rest, local ones beyond."""
    return "masking" if n_variables <= MOST_DENSE else "local"


def _order_seed(context: Context) -> int:
    return int(context.rng("order").integers(2**62))


def _make_finder(
    points: OrderingPoints, model: ScoreModel, settings: DiffanSettings, context: Context, report: FillReport
) -> tuple[LeafFinder, Memory | None]:
    """The finder of the variant, and what it has to remember from leaf to leaf."""
    field = _field(model, settings)
    if settings.variant == "masking":
        return masking_finder(field, points), None
    if settings.variant == "deciduous":
        return deciduous_finder(field, _fewer_for_many_variables(points), report=report), report
    retrainer = Retrainer(points.values, model, settings, context, lambda one: _field(one, settings))
    return greedy_finder(retrainer, points), retrainer


def _fewer_for_many_variables(points: OrderingPoints) -> OrderingPoints:
    """Full Jacobians cost d times their diagonals: above 100 variables fewer rows keep deciduous affordable."""
    affordable = max(LEAST_POINTS, points.settings.order_batch_size * 100 // points.values.shape[1])
    rows = min(points.settings.order_batch_size, affordable)
    return replace(points, settings=replace(points.settings, order_batch_size=rows))


def _field(model: ScoreModel, settings: DiffanSettings) -> NetworkField:
    megabytes = settings.order.memory_mb or (4096 if model.device.type == "cuda" else 64)
    return NetworkField(model, memory_bytes=megabytes * 2**20)
