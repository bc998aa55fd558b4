"""Every method by its name, and `discover`: a table in, a Discovery out."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from diffan import algorithm
from diffan.context import Context
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.finish import Edges, Refine, resolve, stages
from diffan.inspection.look import inspected
from diffan.likelihood.settings import LikelihoodSettings
from diffan.options import apply, as_record
from diffan.ordering.result import Ordering
from diffan.progress import Progress, RichProgress, Silent
from diffan.pruning import PruneSettings
from diffan.table import Missing, Table, Transform
from diffan.threads import modest_threads

PRESETS = ("default", "paper")


@dataclass(frozen=True)
class Method:
    """Where a method's order comes from; imported when it is used."""

    label: str
    module: str
    settings: str

    def default_settings(self, preset: str) -> Any:
        settings = getattr(import_module(self.module), self.settings)
        return settings.paper() if preset == "paper" and hasattr(settings, "paper") else settings()

    @property
    def find_order(self) -> Callable[[Table, Any, Context], Ordering]:
        found: Callable[[Table, Any, Context], Ordering] = import_module(self.module).find_order
        return found


METHODS = {
    "diffan": Method("DiffAN", "diffan.ordering.diffan_order", "DiffanSettings"),
    "score": Method("SCORE", "diffan.baselines.score", "ScoreOptions"),
    "cam": Method("CAM", "diffan.baselines.cam", "CamOptions"),
    "gran-dag": Method("GraN-DAG", "diffan.baselines.gran_dag", "GranDagOptions"),
    "nogam": Method("NoGAM", "diffan.baselines.nogam", "NogamOptions"),
    "das": Method("DAS", "diffan.baselines.das", "DasOptions"),
    "var-sort": Method("VarSort", "diffan.baselines.sorts", "VarSortOptions"),
    "r2-sort": Method("R2Sort", "diffan.baselines.sorts", "R2SortOptions"),
    "random": Method("RandomOrder", "diffan.baselines.sorts", "RandomOptions"),
}


def discover(
    data: Any,
    method: str = "diffan",
    *,
    variant: str = "auto",
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    missing: Missing = "error",
    transform: Transform = "none",
    standardize: bool = True,
    refine: Refine = "auto",
    edges: Edges = "auto",
    inspect: bool = True,
    progress: bool | Progress = False,
    **options: Any,
) -> Discovery:
    """Find the causal graph of a table.

    `data` is a DataFrame, an array, a polars or pyarrow table, or the path of a CSV or Parquet file. The
    same seed on the same device gives the same answer; the order of the columns and their units do not
    matter. `preset="paper"` takes the paper's settings; any single setting can be given by its name.

    `refine` mends the order by a likelihood ("kernel" sees interactions, "additive" does not, False leaves it);
    `edges` chooses them by the same likelihood or by additive tests (CAM pruning). "auto" is both by likelihood for
    DiffAN up to 100 variables, and neither for the baselines and the paper's preset, which stay as published.

    `inspect` fits each variable on its parents once more and keeps the effect curves, diagnostics and up to 200 sampled
    rows for the report; with False nothing of the table itself is kept.
    """
    entry = _method(method)
    if preset not in PRESETS:
        expected = " or ".join(map(repr, PRESETS))
        raise InputError(f"The 'preset' parameter must be {expected}. Got {preset!r} instead.")
    if variant != "auto":
        options["variant"] = variant
    context = Context(seed=seed, device=device, progress=_shown(progress))
    order_settings, prune_settings, likelihood_settings = apply(
        options,
        entry.default_settings(preset),
        PruneSettings(),
        LikelihoodSettings(),
        what=f"Method {method!r}",
    )
    table = Table.read(data, missing=missing, transform=transform, standardize=standardize)
    refine, edges = resolve(refine, edges, method, preset, table.n_variables)
    record = {
        "preset": preset,
        "device": device,
        "transform": table.transform,
        "standardize": table.standardized,
        "refine": refine,
        "edges": edges,
        **as_record(order_settings, prune_settings, likelihood_settings),
    }

    by_method = entry.find_order

    def find_order(table: Table, context: Context) -> Ordering:
        return by_method(table, order_settings, context)

    refine_order, find_edges = stages(refine, edges, prune_settings, likelihood_settings)
    with modest_threads(table.values.size):
        result = algorithm.run(
            table,
            context,
            find_order=find_order,
            refine=refine_order,
            find_edges=find_edges,
            method=method,
            settings=record,
        )
        # The likelihood finds its own cutoff from its null; one that was asked for replaces it.
        if edges == "likelihood" and "cutoff" in options:
            result = result.at_cutoff(prune_settings.cutoff)
        return inspected(result, table) if inspect else result


def _method(name: str) -> Method:
    if name not in METHODS:
        near = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(METHODS)}."
        raise InputError(f"There is no method {name!r}; {hint}")
    return METHODS[name]


def _shown(progress: bool | Progress) -> Progress:
    if isinstance(progress, bool):
        return RichProgress() if progress else Silent()
    return progress
