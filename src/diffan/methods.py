"""Every method by its name, and `discover`: a table in, a Discovery out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from diffan import algorithm
from diffan.checkpoint import Checkpoint
from diffan.context import Context
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.finish import Edges, Refine, resolve, stages
from diffan.keeping import Forgetful, Keeper
from diffan.likelihood.settings import LikelihoodSettings
from diffan.options import apply, as_record
from diffan.ordering.result import Ordering
from diffan.progress import Progress, RichProgress, Silent
from diffan.pruning import PruneSettings
from diffan.resume import kept_edges, kept_order
from diffan.streaming import Stream, read_table
from diffan.table import Missing, Table
from diffan.table_checks import Transform
from diffan.threads import explained_memory, modest_threads
from diffan.versions import versions

PRESETS = ("default", "paper")
MOST_PAIRED_ROWS = 5000  # choice: of a method that compares all pairs of rows
MOST_RESIDENT_ROWS = 1_000_000  # choice: of a method that holds its rows in memory


@dataclass(frozen=True)
class Method:
    """Where a method's order comes from; imported when it is used."""

    label: str
    module: str
    settings: str
    most_rows: int | None = None  # of a table on disk, for a method that holds its rows in memory

    def default_settings(self, preset: str) -> Any:
        settings = getattr(import_module(self.module), self.settings)
        return settings.paper() if preset == "paper" and hasattr(settings, "paper") else settings()

    @property
    def find_order(self) -> Callable[[Table, Any, Context], Ordering]:
        found: Callable[[Table, Any, Context], Ordering] = import_module(self.module).find_order
        return found


METHODS = {
    "diffan": Method("DiffAN", "diffan.ordering.diffan_order", "DiffanSettings"),
    "score": Method("SCORE", "diffan.baselines.score", "ScoreOptions", MOST_PAIRED_ROWS),
    "cam": Method("CAM", "diffan.baselines.cam", "CamOptions"),
    "gran-dag": Method("GraN-DAG", "diffan.baselines.gran_dag", "GranDagOptions", MOST_RESIDENT_ROWS),
    "nogam": Method("NoGAM", "diffan.baselines.nogam", "NogamOptions", MOST_PAIRED_ROWS),
    "das": Method("DAS", "diffan.baselines.das", "DasOptions", MOST_PAIRED_ROWS),
    "var-sort": Method("VarSort", "diffan.baselines.sorts", "VarSortOptions"),
    "r2-sort": Method("R2Sort", "diffan.baselines.sorts", "R2SortOptions", MOST_RESIDENT_ROWS),
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
    progress: bool | Progress = False,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    stream: Stream = "auto",
    cache: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    **options: Any,
) -> Discovery:
    """Find the causal graph of a table.

    `data` is a DataFrame, an array, a polars or pyarrow table, or the path of a CSV, Parquet or .npy file or of a
    folder of Parquet files. The same seed on the same device gives the same answer; the order of the columns and their
    units do not matter. `preset="paper"` takes the paper's settings; any single setting can be given by its name.

    `refine` mends the order by a likelihood ("kernel" sees interactions, "additive" does not, False leaves it);
    `edges` chooses them by the same likelihood or by additive tests (CAM pruning). "auto" is both by likelihood for
    DiffAN up to 100 variables, and neither for the baselines and the paper's preset, which stay as published.

    `columns` names those to use, `rows` is the size of a random sample of rows. A table of more than 2e7 cells is
    converted into a memory map first (`stream` forces or forbids it) and read from disk; `cache` is a folder that keeps
    the map for the next run. `checkpoint` is a folder in which the run leaves its progress, every `checkpoint_every`
    seconds of training and after each stage: a run that was cut off goes on from there and ends the same.
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
    table = read_table(
        data,
        missing=missing,
        transform=transform,
        standardize=standardize,
        columns=columns,
        rows=rows,
        seed=seed,
        stream=stream,
        cache=checkpoint if cache is None else cache,
    )
    refine, edges = resolve(refine, edges, method, preset, table.n_variables)
    record = {
        "preset": preset,
        "device": device,
        "transform": table.transform,
        "standardize": table.standardized,
        "refine": refine,
        "edges": edges,
        **({} if rows is None else {"rows": rows}),
        **as_record(order_settings, prune_settings, likelihood_settings),
    }

    def find_order(table: Table, context: Context) -> Ordering:
        return _on_fitting_rows(entry, table, order_settings, context)

    refine_order, find_edges = stages(refine, edges, prune_settings, likelihood_settings)
    with _keeping(checkpoint, checkpoint_every, table, method, record, seed) as keeper:
        context = replace(context, keeper=keeper)
        with modest_threads(table.n_samples * table.n_variables), explained_memory():
            result = algorithm.run(
                table,
                context,
                find_order=kept_order(find_order),
                refine=refine_order,
                find_edges=kept_edges(find_edges),
                method=method,
                settings=record,
            )
    # The likelihood finds its own cutoff from its null; one that was asked for replaces it.
    return (
        result.at_cutoff(prune_settings.cutoff) if edges == "likelihood" and "cutoff" in options else result
    )


def _on_fitting_rows(entry: Method, table: Table, settings: Any, context: Context) -> Ordering:
    """The method's order, on a sample of a table on disk where the method needs its rows in memory."""
    used = table if entry.most_rows is None else table.in_memory(entry.most_rows)
    found = entry.find_order(used, settings, context)
    if used.n_samples == table.n_samples:
        return found
    note = f"{entry.label} holds its rows in memory: its order is that of {used.n_samples} random rows of {table.n_samples}."
    return replace(found, warnings=(*found.warnings, note))


@contextmanager
def _keeping(
    folder: str | os.PathLike[str] | None,
    every: float,
    table: Table,
    method: str,
    record: dict[str, Any],
    seed: int,
) -> Iterator[Keeper]:
    """The checkpoint of this run, open while it lasts."""
    if folder is None:
        yield Forgetful()
        return
    identity = {
        "table": table.select(table.canonical_positions()).fingerprint(),
        "method": method,
        "seed": int(seed),
        "settings": record,
        **versions(),
    }
    with Checkpoint(folder, identity, every=every) as checkpoint:
        yield checkpoint


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
