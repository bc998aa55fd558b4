"""The command that discovers: its options, and what they become."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import diffan
from diffan.cli_options import Device, Json, Output, Quiet, Seed
from diffan.errors import InputError
from diffan.finish import parse_refine
from diffan.printing import print_json, result_record, say
from diffan.progress import RichProgress, Silent

Listed = Annotated[list[str] | None, Parameter(negative="")]
MethodName = Literal["diffan", "score", "cam", "gran-dag", "nogam", "das", "var-sort", "r2-sort", "random"]


def discover(
    data: Path,
    /,
    *,
    output: Output,
    method: MethodName = "diffan",
    variant: str = "auto",
    preset: Literal["default", "paper"] = "default",
    refine: Literal["auto", "kernel", "additive", "none"] = "auto",
    edges: Literal["auto", "likelihood", "additive"] = "auto",
    cutoff: float | None = None,
    adjust: Literal["none", "holm", "by"] = "none",
    knowledge: Path | None = None,
    tiers: Path | None = None,
    require: Listed = None,
    forbid: Listed = None,
    ancestor: Listed = None,
    not_ancestor: Listed = None,
    root: Listed = None,
    leaf: Listed = None,
    confidence: int = 0,
    scheme: Literal["subsample", "bootstrap"] = "subsample",
    workers: int = 0,
    scheduler: str | None = None,
    seed: Seed = 0,
    device: Device = "auto",
    missing: Literal["error", "drop"] = "error",
    transform: Literal["auto", "none", "log", "rank"] = "auto",
    columns: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    rows: int | None = None,
    cache: Path | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = 30.0,
    distributed: Annotated[bool, Parameter(negative="")] = False,
    option: Annotated[list[str] | None, Parameter(name=["--option"], negative="")] = None,
    inspect: bool = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Discover the causal graph of a table and write a run folder.

    The folder holds graph.json, adjacency.csv, order.txt, graph.graphml, graph.dot, inspection.json and report.html.

    Example: diffan discover data.csv -o run/ --method diffan --seed 0

    Parameters
    ----------
    data
        A .csv, .tsv, .txt, .parquet or .npy file, or a folder of Parquet files: one column per variable, numbers only.
    method
        How the causal order is found.
    variant
        Of method diffan: auto, masking, deciduous, greedy or local.
    preset
        "paper" takes the settings of the DiffAN paper.
    refine
        Mend the order by a likelihood; auto: kernel for method diffan, none for the others.
    edges
        Choose edges by that likelihood or by additive tests; auto: likelihood for method diffan.
    cutoff
        Edges with a smaller p-value are kept (0.001 when not given; 0.05 of adjusted ones).
    adjust
        Judge edges by p-values adjusted for their number: holm, or by (Benjamini-Yekutieli).
    knowledge
        A file of what is known: TOML, or lines such as "require A -> B", "tier A, B" (docs/knowledge.md).
    tiers
        A file that lists tiers, earlier ones first: tiers = [["A", "B"], ["C"]].
    require
        An edge that is there, 'A->B'; may be repeated.
    forbid
        An edge that is not there, 'A->B'; may be repeated.
    ancestor
        A path that is there, 'A->B'; may be repeated.
    not_ancestor
        A path that is not there, 'A->B'; may be repeated.
    root
        A variable without causes in the table; may be repeated.
    leaf
        A variable without effects in the table; may be repeated.
    confidence
        Replicates on parts of the rows, for the frequency of every edge, such as 100; finished ones are kept in the
        checkpoint, or else in the output folder, so that a stopped run goes on where it was.
    scheme
        Replicates are halves of the rows, or drawn with repetition.
    workers
        Processes that run replicates; 0 for this one alone.
    scheduler
        Address of a Dask cluster that runs the replicates instead, such as tcp://host:8786.
    missing
        "drop" leaves out rows with missing cells instead of refusing the file.
    transform
        "log" or "rank" (normal scores) of every column first, for heavy tails; "auto" takes logarithms of positive columns
        with extreme outliers, for DiffAN.
    columns
        Names of the columns to use; all when not given.
    rows
        Use a random sample of this many rows, drawn by the seed.
    cache
        Folder that keeps a large table in converted form for the next run.
    checkpoint
        Folder to leave progress in; the same command, started again after an interruption, goes on from there.
    checkpoint_every
        Seconds between two savings of progress.
    distributed
        Share the training with the other processes that torchrun started.
    option
        Any further setting as name=value; may be repeated.
    inspect
        Keep effect curves, diagnostics and up to 200 sampled rows for the report.
    """
    settings = _parsed_options(option or [])
    if cutoff is not None:
        settings["cutoff"] = cutoff
    with _team(distributed, device) as (device, leads):
        result = diffan.discover(
            data,
            method,
            variant=variant,
            preset=preset,
            refine=parse_refine(refine),
            edges=edges,
            adjust=adjust,
            knowledge=_known(
                knowledge,
                tiers,
                required=require,
                forbidden=forbid,
                required_ancestors=ancestor,
                forbidden_ancestors=not_ancestor,
                roots=root,
                leaves=leaf,
            ),
            confidence=_replicates(
                confidence, scheme, workers, scheduler, output if checkpoint is None else checkpoint
            ),
            seed=seed,
            device=device,
            missing=missing,
            transform=transform,
            inspect=inspect,
            progress=_progress(quiet or as_json or not leads),
            columns=columns,
            rows=rows,
            cache=cache,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            **settings,
        )
    if not leads:
        return
    result.save(output)
    if as_json:
        print_json(result_record(result) | {"folder": str(output)})
    elif not quiet:
        say(result.summary())
        say(f"written to {output}/ (open {output / 'report.html'})")


def _team(distributed: bool, device: str) -> AbstractContextManager[tuple[str, bool]]:
    """The device to use and whether this process writes the result."""
    if not distributed:
        return nullcontext((device, True))
    from diffan.score.team import joined

    return joined(device)


def _known(knowledge: Path | None, tiers: Path | None, **said: list[str] | None) -> diffan.Knowledge:
    """What the files and the single options say together."""
    known = diffan.Knowledge.of(knowledge)
    if tiers is not None:
        ranked = diffan.Knowledge.read(tiers)
        if not ranked.tiers:
            raise InputError(f'{str(tiers)!r} lists no tiers; expected tiers = [["A", "B"], ["C"]].')
        known = known | ranked
    return known | diffan.Knowledge.from_record({kind: names or [] for kind, names in said.items()})


def _replicates(
    replicates: int,
    scheme: Literal["subsample", "bootstrap"],
    workers: int,
    scheduler: str | None,
    folder: Path,
) -> diffan.ConfidenceSettings | int:
    if replicates == 0:
        return 0
    return diffan.ConfidenceSettings(
        replicates=replicates,
        scheme=scheme,
        workers=workers,
        scheduler=scheduler,
        folder=folder / "replicates",
    )


def _parsed_options(pairs: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--option takes name=value. Got {pair!r} instead.")
        try:
            options[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            options[name.strip().replace("-", "_")] = value
    return options


def _progress(quiet: bool) -> Silent | RichProgress:
    return Silent() if quiet else RichProgress()
