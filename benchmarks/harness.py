"""Cells of a study: a data set of the paper's grid and a way to order or discover, run over worker processes.

Records are JSON lines: one cell each, with the order and the edges found, so that scores which need further
packages (SID) can be added later on another machine.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from diffan.simulate.grid import NOISES, PaperCase

Record = dict[str, Any]
Cell = Callable[[PaperCase, str, str], Record]  # (data set, name of the contender, device) -> what came out
KINDS = [("er", 1), ("er", 5), ("sf", 1), ("sf", 5)]


def grid(
    seeds: Iterable[int],
    n_nodes: int = 20,
    n_samples: int = 1000,
    scales: Sequence[int] = (0, 1, 2),
    mechanism: str = "gp",
) -> list[PaperCase]:
    """The paper's grid: four kinds of graph, three noises, the scale ranges, some seeds."""
    return [
        PaperCase(graph, density, noise, scale, seed, n_nodes, n_samples, mechanism)
        for seed in seeds
        for graph, density in KINDS
        for noise in NOISES
        for scale in scales
    ]


def sweep(
    cell: Cell,
    cases: Sequence[PaperCase],
    names: Sequence[str],
    *,
    jobs: int,
    device: str,
    out: Path | None = None,
) -> list[Record]:
    """Run every (case, name); cells already in `out` are not run again."""
    records = read(out) if out and out.exists() else []
    done = {(r["case"], r["name"]) for r in records}
    todo = [(case, name) for case in cases for name in names if (case.name, name) not in done]
    started = time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        running = {pool.submit(_guarded, cell, case, name, device): (case, name) for case, name in todo}
        for count, future in enumerate(as_completed(running), 1):
            record = future.result()
            records.append(record)
            if out:
                out.parent.mkdir(parents=True, exist_ok=True)
                with out.open("a") as stream:
                    stream.write(json.dumps(record) + "\n")
            if count % 50 == 0 or count == len(todo):
                print(f"{count}/{len(todo)} cells, {time.perf_counter() - started:.0f} s", flush=True)
    return records


def read(file: Path) -> list[Record]:
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]


def _one_thread() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


def _guarded(cell: Cell, case: PaperCase, name: str, device: str) -> Record:
    """A cell that fails is recorded with its error and does not stop the rest."""
    record: Record = {"case": case.name, "kind": f"{case.graph.upper()}{case.density}", "noise": case.noise}
    record |= {"scale": case.scale_index, "seed": case.seed, "nodes": case.n_nodes, "samples": case.n_samples}
    record |= {"mechanism": case.mechanism, "name": name, "machine": f"{platform.machine()} {device}"}
    try:
        return record | cell(case, name, device)
    except Exception as error:
        return record | {"error": f"{type(error).__name__}: {error}"}


def print_table(
    records: Sequence[Record], value: str, names: Sequence[str], *, by_noise: bool = False
) -> None:
    """Mean of one value: a row per contender, a column per kind of graph (and noise), the mean last."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    columns: dict[str, None] = {}
    for record in records:
        if record.get(value) is None:
            continue
        column = record["kind"] + (f"-{record['noise']}" if by_noise else "")
        columns[column] = None
        groups[record["name"], column].append(float(record[value]))
    ordered = sorted(columns)
    print(f"\n{value}: mean over data sets")
    print("| method | " + " | ".join(ordered) + " | mean | sets |")
    print("|---|" + "---|" * (len(ordered) + 2))
    for name in names:
        cells = [np.mean(groups[name, c]) if groups[name, c] else float("nan") for c in ordered]
        everything = [v for c in ordered for v in groups[name, c]]
        if everything:
            numbers = " | ".join(f"{c:.2f}" for c in cells)
            print(f"| {name} | {numbers} | {np.mean(everything):.2f} | {len(everything)} |")
    failed = [r for r in records if "error" in r]
    for record in failed[:5]:
        print(f"failed: {record['name']} on {record['case']}: {record['error']}")
