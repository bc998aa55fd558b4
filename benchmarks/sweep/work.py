"""What a cell can be asked for: a whole discovery, an order alone, many orders of one score, a picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from diffan import metrics
from diffan.context import Context
from diffan.dag import Dag, topological_indices
from diffan.errors import FitError
from diffan.table import Table
from sweep import bits, data
from sweep.contenders import CONTENDERS

if TYPE_CHECKING:
    import pandas as pd

    from diffan.ordering.curvature import NetworkField
    from diffan.score.model import ScoreModel
    from diffan.settings import DiffanSettings
    from sweep.cell import Cell

Result = dict[str, Any]


def discover(cell: Cell, device: str) -> Result:
    """A whole discovery, scored against the truth; SID only where gadjid is installed."""
    contender = CONTENDERS[cell.method]
    frame, truth = data.draw(cell.data, device)
    _warm_up(contender.method, device)
    if contender.method == "true-order":
        order, estimate, timings, warnings = _prune_true_order(frame, truth, device)
    else:
        import diffan

        options = {**contender.options, **cell.options}
        found = diffan.discover(frame, contender.method, seed=cell.seed, device=device, **options)
        order, estimate = [truth.index(name) for name in found.order], found.dag
        timings, warnings = dict(found.timings), list(found.warnings)
    return graph_scores(truth, estimate, order) | {
        "sortability": data.sortability(frame.to_numpy(), truth),
        "timings": {stage: round(seconds, 3) for stage, seconds in timings.items()},
        "seconds": round(sum(timings.values()), 3),
        "warnings": len(warnings),
    }


def order(cell: Cell, device: str) -> Result:
    """An order alone, by a contender's own settings: for tables too large to prune here."""
    from diffan.methods import METHODS
    from diffan.options import apply

    contender = CONTENDERS[cell.method]
    options = {k: v for k, v in contender.options.items() if k not in ("preset", "refine", "edges")}
    method = METHODS[contender.method]
    base = method.default_settings(contender.options.get("preset", "default"))
    (settings,) = apply({**options, **cell.options}, base, what=cell.method)
    drawing = time.perf_counter()
    frame, truth = data.draw(cell.data, device)
    drawn = round(time.perf_counter() - drawing, 2)
    table = Table.read(frame)
    _warm_up(contender.method, device)
    started = time.perf_counter()
    found = method.find_order(table, settings, Context(seed=cell.seed, device=device))
    seconds = time.perf_counter() - started
    return {
        "nodes": truth.n_nodes,
        "edges": truth.n_edges,
        "order": found.order,
        "order_divergence": metrics.order_divergence(truth, found.order),
        "sortability": data.sortability(frame.to_numpy(), truth),
        "timings": {stage: round(value, 3) for stage, value in found.timings.items()} | {"simulate": drawn},
        "seconds": round(seconds, 3),
        "steps": found.losses["step"][-1] if found.losses else None,
    }


def orders(cell: Cell, device: str) -> Result:
    """One score, trained once; masking orders of it under several order settings, by their labels."""
    from diffan.algorithm import topological_order
    from diffan.options import apply
    from diffan.ordering.masking import masking_finder
    from diffan.ordering.points import OrderingPoints
    from diffan.score.training import train

    settings = _settings(cell)
    frame, truth = data.draw(cell.data, device)
    table, context = Table.read(frame), Context(seed=cell.seed, device=device)
    _warm_up("diffan", device)
    started = time.perf_counter()
    model, losses = train(table.values, settings.score, context.rng("score"), context.torch_device())
    result: Result = {
        "nodes": truth.n_nodes,
        "edges": truth.n_edges,
        "train_seconds": round(time.perf_counter() - started, 3),
        "steps": losses["step"][-1],
        "held_out_loss": round(min(losses["validation"]), 4),
        "divergences": {},
        "order_seconds": {},
    }
    for name, changes in cell.options["orderings"].items():
        (order_settings,) = apply(changes, settings.order, what=cell.method)
        seed = int(context.rng("order").integers(2**62))
        points = OrderingPoints(table.values, order_settings, seed, context.torch_device())
        started = time.perf_counter()
        found, _ = topological_order(masking_finder(_field(model), points), truth.n_nodes)
        result["order_seconds"][name] = round(time.perf_counter() - started, 3)
        result["divergences"][name] = metrics.order_divergence(truth, found)
    return result


def jacobian(cell: Cell, device: str) -> Result:
    """The diagonal of the score's Jacobian of two variables, and its variances; A causes B."""
    import torch

    from diffan.score.training import train

    settings = _settings(cell)
    frame, _ = data.draw(cell.data)
    table, context = Table.read(frame), Context(seed=cell.seed, device=device)
    _warm_up("diffan", device)
    target = context.torch_device()
    model, _ = train(table.values, settings.score, context.rng("score"), target)
    shown = cell.options.get("points", 0)
    batch = table.values[: max(shown, settings.order.order_batch_size)]
    rows = torch.tensor(batch, dtype=torch.float32, device=target)
    sigma = settings.order.noise_levels[len(settings.order.noise_levels) // 2]
    diagonal = _field(model).diagonal(rows, sigma, [0, 1]).cpu().numpy().astype(float)
    return {
        "variances": [float(f"{value:.4g}") for value in diagonal.var(axis=0)],
        "means": np.round(diagonal.mean(axis=0), 4).tolist(),
        "points": np.round(np.hstack([batch[:shown], diagonal[:shown]]), 2).tolist(),
    }


def sign(cell: Cell, device: str) -> Result:
    """The paper's Algorithm 1 as printed, with a plus, and with its sign mended: order divergence of each."""
    from sweep.printed import printed_orders

    settings = _settings(cell)
    frame, truth = data.draw(cell.data, device)
    _warm_up("diffan", device)
    found = printed_orders(Table.read(frame), settings, Context(seed=cell.seed, device=device))
    divergences = {name: metrics.order_divergence(truth, order) for name, order in found.items()}
    return {"nodes": truth.n_nodes, "edges": truth.n_edges, "divergences": divergences}


WORKS: dict[str, Callable[[Cell, str], Result]] = {
    "discover": discover,
    "order": order,
    "orders": orders,
    "jacobian": jacobian,
    "sign": sign,
}


def graph_scores(truth: Dag, estimate: Dag, order: list[int]) -> Result:
    """Every measure of a graph and its order, with both graphs so that others can be added later."""
    errors = metrics.edge_errors(truth, estimate)
    return {
        "nodes": truth.n_nodes,
        "edges": truth.n_edges,
        "order": order,
        "graph": bits.to_text(estimate.adjacency),
        "truth": bits.to_text(truth.adjacency),
        "shd": sum(errors),
        "extra": errors.extra,
        "sid": sid_if_possible(truth, estimate),
        "order_divergence": metrics.order_divergence(truth, order),
    }


def sid_if_possible(truth: Any, estimate: Any) -> int | None:
    try:
        return metrics.sid(truth, estimate)
    except FitError:
        return None  # added later, where gadjid is installed


def _settings(cell: Cell) -> DiffanSettings:
    """The settings of a contender of DiffAN's own, with the cell's changes to its training."""
    from diffan.options import apply
    from diffan.settings import DiffanSettings

    preset = CONTENDERS[cell.method].options.get("preset", "default")
    base = DiffanSettings.paper("masking") if preset == "paper" else DiffanSettings()
    (settings,) = apply(cell.options.get("settings", {}), base, what=cell.method)
    return settings


def _field(model: ScoreModel) -> NetworkField:
    from diffan.ordering.curvature import NetworkField

    return NetworkField(model, memory_bytes=2**32 if model.device.type == "cuda" else 2**26)


def _prune_true_order(
    frame: pd.DataFrame, truth: Dag, device: str
) -> tuple[list[int], Dag, dict[str, float], list[str]]:
    from diffan.pruning import PruneSettings, prune

    order, table = list(topological_indices(truth.adjacency)), Table.read(frame)
    started = time.perf_counter()
    evidence = prune(order, table, None, settings=PruneSettings(), context=Context(device=device))
    return order, Dag(evidence.chosen, truth.names), {"edges": time.perf_counter() - started}, []


@cache
def _warm_up(method: str, device: str) -> None:
    """Pay once a process for imports and for the GPU's context, so that no cell's seconds hold them."""
    from diffan.methods import METHODS

    if method in METHODS:
        METHODS[method].default_settings("default")
    if device.startswith("cuda"):
        import torch

        square = torch.eye(4, device=device, dtype=torch.float64)
        torch.linalg.cholesky(square @ square)
        torch.cuda.synchronize()
