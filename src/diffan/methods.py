"""Every method by its name, and `discover`: a table in, a Discovery out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from time import perf_counter
from typing import Any, get_args

import numpy as np

from diffan import algorithm
from diffan.context import Context
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.finish import Edges, Refine, is_ours, is_wide, resolve
from diffan.inspection.look import inspected
from diffan.keeping import Forgetful, Keeper
from diffan.knowledge import Knowledge
from diffan.likelihood.settings import LikelihoodSettings
from diffan.multiplicity import LEVEL, Adjust
from diffan.options import apply, as_record
from diffan.ordering.result import Ordering
from diffan.progress import Progress, RichProgress, Silent
from diffan.pruning import PruneSettings
from diffan.recipe import Recipe
from diffan.replicates import ConfidenceSettings, Job, measure
from diffan.resume import kept_edges, kept_order
from diffan.streaming import Stream, read_table
from diffan.table import Missing, Table
from diffan.table_checks import Transforming
from diffan.threads import explained_memory, modest_threads, threads_to_be_had
from diffan.versions import versions

PRESETS = ("default", "paper")
MOST_PAIRED_ROWS = 5000  # choice: of a method that compares all pairs of rows
MOST_INSPECTED_ROWS = 5000  # choice: of a table on disk, for the effect curves and the doubts
MOST_REPLICATED_ROWS = 100_000  # choice: of a table on disk, whose halves are measured
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
    transform: Transforming = "auto",
    standardize: bool = True,
    refine: Refine = "auto",
    edges: Edges = "auto",
    adjust: Adjust = "none",
    knowledge: Knowledge | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    confidence: int | ConfidenceSettings = 0,
    inspect: bool = True,
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
    folder of Parquet files. The same seed on the same device gives the same answer; the order of the columns and
    the scale of their units do not matter. `preset="paper"` takes the paper's settings; any single setting can be given
    by its name.

    `refine` mends the order by a likelihood ("kernel" sees interactions, "additive" does not, False leaves it);
    `edges` chooses them by the same likelihood or by additive tests (CAM pruning). "auto" is both by likelihood for
    DiffAN, with additive tests for the edges of wide tables, and neither for the baselines and the paper's preset,
    which stay as published.

    `transform` is applied to every column first: "log", or "rank" for normal scores. "auto" takes logarithms for DiffAN when
    all columns are positive, some have extreme outliers, and logarithms leave none; a warning says so.

    `knowledge` is what is known beforehand: a `diffan.Knowledge`, its fields as a mapping, or the path of a file. It
    holds in the answer of every method, whatever the data say.

    `confidence=100` runs the same on 100 halves of the rows and counts how often each edge and each precedence comes
    out: `result.confidence`. `adjust` judges edges by p-values adjusted for their number ("holm" or "by", for
    Benjamini and Yekutieli), at 0.05 unless a cutoff is given; the raw ones are kept.

    `columns` names those to use, `rows` is the size of a random sample of rows. A table of more than 2e7 cells is
    converted into a memory map first (`stream` forces or forbids it) and read from disk; `cache` is a folder that keeps
    the map for the next run. `checkpoint` is a folder in which the run leaves its progress, every `checkpoint_every`
    seconds of training, ordering and refining, after each stage and after each replicate: a run that was cut off goes
    on from there and ends the same.

    `inspect` fits each variable on its parents once more and keeps the effect curves, diagnostics and up to 200 sampled
    rows for the report; with False nothing of the table itself is kept.
    """
    entry = _method(method)
    if preset not in PRESETS:
        expected = " or ".join(map(repr, PRESETS))
        raise InputError(f"The 'preset' parameter must be {expected}. Got {preset!r} instead.")
    if variant != "auto":
        options["variant"] = variant
    context = Context(seed=seed, device=device, progress=_shown(progress), threads=threads_to_be_had())
    order_settings, prune_settings, likelihood_settings = apply(
        options,
        entry.default_settings(preset),
        PruneSettings(),
        LikelihoodSettings(),
        what=f"Method {method!r}",
    )
    if adjust not in get_args(Adjust):
        raise InputError(f"The 'adjust' parameter must be 'none', 'holm' or 'by'. Got {adjust!r} instead.")
    known, replicated = Knowledge.of(knowledge), ConfidenceSettings.of(confidence)
    table = read_table(
        data,
        missing=missing,
        transform="none" if transform == "auto" and not is_ours(method, preset) else transform,
        standardize=standardize,
        columns=columns,
        rows=rows,
        seed=seed,
        stream=stream,
        cache=checkpoint if cache is None else cache,
    )
    known.refuse_unknown(table.names)
    refine, edges = resolve(refine, edges, method, preset, table)
    record = {
        "preset": preset,
        "device": device,
        "transform": table.transform,
        "standardize": table.standardized,
        "refine": refine,
        "edges": edges,
        "adjust": adjust,
        **({} if rows is None else {"rows": rows}),
        **as_record(order_settings, prune_settings, likelihood_settings),
    }
    if adjust != "none" and "cutoff" not in options:
        record["cutoff"] = LEVEL
    recipe = Recipe(
        entry.module,
        order_settings,
        refine,
        edges,
        prune_settings,
        likelihood_settings,
        adjust,
        prune_settings.cutoff if "cutoff" in options else None,
        entry.label,
        entry.most_rows,
        is_wide(table),
    )
    find_order, refine_order, find_edges = recipe.stages()
    identity = {"method": method, "seed": int(seed), "settings": record, "knowledge": known.record()}
    with _keeping(checkpoint, checkpoint_every, table, identity) as keeper:
        kept = replace(context, keeper=keeper)
        with modest_threads(table.n_samples * table.n_variables), explained_memory():
            result = algorithm.run(
                table,
                kept,
                find_order=kept_order(find_order),
                refine=refine_order,
                find_edges=kept_edges(find_edges),
                knowledge=known,
                method=method,
                settings=record,
            )
        if replicated is not None:
            settings = replicated.kept_beside(checkpoint)
            with explained_memory():
                result = _with_confidence(result, table, recipe, context, settings)
    if not inspect:
        return result
    held = table.in_memory(MOST_INSPECTED_ROWS)
    return inspected(result, held, rows_in_order=held is table and rows is None)


def _with_confidence(
    result: Discovery, table: Table, recipe: Recipe, context: Context, settings: ConfidenceSettings
) -> Discovery:
    """The result with the shares of replicates that agree with it, on its edges too."""
    started = perf_counter()
    table = table.in_memory(MOST_REPLICATED_ROWS)
    positions = table.canonical_positions()
    canonical = table.select(positions)
    rules = result.knowledge.consequences(canonical.names)
    spread = settings.workers > 0 or settings.scheduler is not None
    alone = Context(
        seed=context.seed,
        device=context.device,
        constraints=rules,
        threads=1 if spread else context.threads,
    )
    model = result.model if settings.reuse else None
    here = replace(
        recipe.prune_settings, prune_workers=0, prune_scheduler=None
    )  # replicates are spread already
    job = Job(canonical, replace(recipe, prune_settings=here), alone, settings.scheme, model or None)
    found = measure(job, settings, replace(context, constraints=rules)).rearranged(np.argsort(positions))
    frequency = np.where(result.evidence.tested, found.frequency, np.nan)
    evidence = replace(result.evidence, measures={**result.evidence.measures, "frequency": frequency})
    timings = {**result.timings, "confidence": perf_counter() - started}
    return replace(result, evidence=evidence, confidence=found, timings=timings)


@contextmanager
def _keeping(
    folder: str | os.PathLike[str] | None,
    every: float,
    table: Table,
    identity: Mapping[str, Any],
) -> Iterator[Keeper]:
    """The checkpoint of this run, open while it lasts."""
    if folder is None:
        yield Forgetful()
        return
    # imported here: a run without a checkpoint may not need torch
    from diffan.score.shared_checkpoint import opened_checkpoint

    contents = table.select(table.canonical_positions()).fingerprint()
    with opened_checkpoint(folder, {"table": contents, **identity, **versions()}, every=every) as checkpoint:
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
