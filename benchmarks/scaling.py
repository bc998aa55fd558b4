"""Hundreds to thousands of variables: whole runs of `local` beside the dense network, SCORE and R2-sort.

    python benchmarks/scaling.py run --device cuda --out benchmarks/results/scaling-h200.jsonl     # a GPU
    python benchmarks/scaling.py run --device cpu --cases cpu --out benchmarks/results/scaling-cpu.jsonl
    python benchmarks/scaling.py table benchmarks/results/scaling-h200.jsonl                       # Markdown
    python benchmarks/scaling.py plot benchmarks/results/scaling-h200.jsonl docs/scaling.svg

Seeds of 1000 and above, GP mechanisms, Gaussian noise. A cell that is already in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import diffan
from diffan.metrics import order_divergence
from diffan.simulate import random_dag, sample_anm

METHODS: dict[str, dict[str, Any]] = {
    "local": {"method": "diffan", "variant": "local"},
    "local, edges by likelihood": {"method": "diffan", "variant": "local", "edges": "likelihood"},
    "local, order alone": {"method": "diffan", "variant": "local", "refine": False},
    "dense masking": {"method": "diffan", "variant": "masking", "refine": False, "edges": "additive"},
    "SCORE": {"method": "score", "refine": False, "edges": "additive"},
    "R2-sort": {"method": "r2-sort", "refine": False, "edges": "additive"},
    "auto": {"method": "diffan"},
}


@dataclass(frozen=True)
class Cell:
    method: str
    graph: str
    degree: int
    d: int
    n: int
    seed: int = 1000

    def draw(self, device: str) -> tuple[Any, Any]:
        dag = random_dag(self.d, self.degree * self.d, graph=self.graph, seed=self.seed)
        return dag, sample_anm(dag, self.n, noise="gauss", seed=self.seed, device=device)


WARM_UP = Cell("local", "er", 1, 20, 500)
MAIN = [
    Cell("local", "er", 1, 500, 100_000),
    Cell("local", "sf", 1, 500, 100_000),
    Cell("local", "er", 4, 500, 100_000),
    Cell("local", "er", 1, 500, 100_000, 1001),
    Cell("local, order alone", "er", 1, 500, 100_000),
    Cell("R2-sort", "er", 1, 500, 100_000),
    Cell("dense masking", "er", 1, 500, 100_000),
    Cell("local", "er", 1, 1000, 100_000),
    Cell("local", "er", 1, 500, 1_000),
    Cell("local", "er", 1, 500, 10_000),
    Cell("SCORE", "er", 1, 500, 1_000),
    Cell("local", "er", 1, 100, 100_000),
    Cell("local", "er", 1, 250, 100_000),
    Cell("local, order alone", "sf", 1, 500, 100_000),
    Cell("local, order alone", "er", 4, 500, 100_000),
    Cell("local", "er", 1, 2000, 100_000),
    Cell("local", "sf", 1, 500, 100_000, 1001),
    Cell("local", "er", 4, 500, 100_000, 1001),
]
CPU = [
    Cell("local", "er", 1, 100, 10_000),
    Cell("local", "sf", 1, 100, 10_000),
    Cell("local", "er", 4, 100, 10_000),
]
EDGES = [  # tuning seeds: which way of choosing edges among screened predecessors is better
    Cell(method, "er", degree, 60, 4000, 11)
    for degree in (1, 4)
    for method in ("local", "local, edges by likelihood")
]
CASES = {"main": MAIN, "cpu": CPU, "edges": EDGES}


def measure(cell: Cell, device: str) -> dict[str, Any]:
    dag, data = cell.draw(device)
    truth = np.asarray(dag.adjacency)
    _reset_peak(device)
    started = time.perf_counter()
    found = diffan.discover(data, device=device, seed=cell.seed, **METHODS[cell.method])
    seconds = time.perf_counter() - started
    place = {name: k for k, name in enumerate(found.names)}
    order = [place[name] for name in found.order]
    estimate = np.asarray(found.adjacency)
    right = int((estimate * truth).sum())
    return {
        **asdict(cell),
        "seconds": round(seconds, 2),
        "timings": {stage: round(value, 2) for stage, value in found.timings.items()},
        "reversed": round(order_divergence(truth, order) / truth.sum(), 4),
        "precision": round(right / max(1, int(estimate.sum())), 4),
        "recall": round(right / int(truth.sum()), 4),
        "f1": round(2 * right / (int(estimate.sum()) + int(truth.sum())), 4),
        "peak_gib": _peak(device),
        "machine": _machine(device),
    }


def _reset_peak(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak(device: str) -> float:
    if device == "cuda":
        import torch

        return round(torch.cuda.max_memory_allocated() / 2**30, 2)
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def _machine(device: str) -> str:
    import torch

    return (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"{platform.machine()} {torch.get_num_threads()} threads"
    )


def run(args: argparse.Namespace) -> None:
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = {cell_of(line) for line in read(args.out)} if args.out.exists() else set()
    started = time.perf_counter()
    if args.device == "cuda":
        measure(WARM_UP, args.device)
    for cell in CASES[args.cases]:
        if cell in done or time.perf_counter() - started > args.limit_seconds:
            continue
        try:
            line = measure(cell, args.device)
        except Exception as error:  # a cell that cannot run is part of the record
            line = {**asdict(cell), "error": f"{type(error).__name__}: {error}"[:300]}
        with args.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def cell_of(line: dict[str, Any]) -> Cell:
    return Cell(**{name: line[name] for name in Cell.__dataclass_fields__})


def table(lines: list[dict[str, Any]]) -> str:
    head = "| method | graph | d | n | seed | reversed edges | precision | recall | F1 | seconds | of which | peak GiB |"
    rows = [head, "|" + "---|" * 12]
    for line in sorted(
        lines, key=lambda x: (x["d"], x["n"], x["graph"], x["degree"], x["method"], x["seed"])
    ):
        case = f"| {line['method']} | {line['graph'].upper()}{line['degree']} | {line['d']} | {line['n']} | {line['seed']} |"
        if "error" in line:
            rows.append(f"{case} {line['error']} |" + " |" * 6)
            continue
        parts = ", ".join(f"{stage} {value:.1f}" for stage, value in line["timings"].items())
        rows.append(
            f"{case} {line['reversed']:.3f} | {line['precision']:.3f} | {line['recall']:.3f} | {line['f1']:.3f} "
            f"| {line['seconds']:.1f} | {parts} | {line['peak_gib']:.1f} |"
        )
    return "\n".join([*rows, "", *exponents(lines)])


def growth(lines: list[dict[str, Any]], axis: str) -> list[tuple[int, float]]:
    """(size, seconds) of local on ER1 with the other size at its usual value."""
    other, usual = ("n", 100_000) if axis == "d" else ("d", 500)
    fits = [
        x
        for x in lines
        if x["method"] == "local"
        and x["graph"] == "er"
        and x["degree"] == 1
        and x[other] == usual
        and "error" not in x
    ]
    sizes = sorted({x[axis] for x in fits})
    return [(size, float(np.mean([x["seconds"] for x in fits if x[axis] == size]))) for size in sizes]


def exponents(lines: list[dict[str, Any]]) -> list[str]:
    found = []
    for axis in ("d", "n"):
        points = growth(lines, axis)
        if len(points) >= 3:
            slope = np.polyfit(np.log([p[0] for p in points]), np.log([p[1] for p in points]), 1)[0]
            found.append(
                f"Seconds grow as {axis}^{slope:.2f} over {axis} = {points[0][0]} to {points[-1][0]}."
            )
    return found


def plot(lines: list[dict[str, Any]], out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "diffan"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    for axis, frame in zip(("d", "n"), axes, strict=True):
        points = growth(lines, axis)
        frame.loglog([p[0] for p in points], [p[1] for p in points], "o-", color="#0072B2")
        frame.set_xlabel("variables (100,000 rows)" if axis == "d" else "rows (500 variables)")
        frame.set_ylabel("seconds, table to graph")
        frame.grid(which="both", alpha=0.25)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="what", required=True)
    one = parts.add_parser("run")
    one.add_argument("--device", default="cpu")
    one.add_argument("--cases", choices=sorted(CASES), default="main")
    one.add_argument("--limit-seconds", type=float, default=1e9)
    one.add_argument("--out", type=Path, required=True)
    for name in ("table", "plot"):
        other = parts.add_parser(name)
        other.add_argument("cells", type=Path)
        if name == "plot":
            other.add_argument("out", type=Path)
    args = parser.parse_args()
    if args.what == "run":
        run(args)
    elif args.what == "table":
        print(table(read(args.cells)))
    else:
        plot(read(args.cells), args.out)


if __name__ == "__main__":
    main()
