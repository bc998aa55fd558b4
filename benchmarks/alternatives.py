"""Other packages on the same tables, each by its defaults: what docs/alternatives.md shows.

    pip install lingam causal-learn gcastle          # in an environment of their own
    python benchmarks/alternatives.py run benchmarks/results/alternatives.jsonl
    python benchmarks/alternatives.py table benchmarks/results/alternatives.jsonl

Three worlds, so that each kind of method meets one it was made for: nonlinear effects drawn from Gaussian processes,
nonlinear effects drawn from neural networks, and straight lines with skewed noise. 10 variables, 10 edges, 500 rows,
standardised for everybody, evaluation seeds. A cell that is already in the file is not run again; a package that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

import diffan

NODES, EDGES, ROWS = 10, 10, 500
SEEDS = (1000, 1001, 1002)
WORLDS = {
    "Gaussian process, Gaussian noise": ("gp", "gauss"),
    "neural network, Gaussian noise": ("mlp", "gauss"),
    "straight lines, exponential noise": ("linear", "exp"),
}
Marks = np.ndarray  # [d, d]: 1 for i -> j, a half each way for a link without a direction


def ours(method: str) -> Callable[[pd.DataFrame], Marks]:
    return lambda table: np.array(
        diffan.discover(table, method, seed=0, device="cpu", inspect=False).dag.adjacency, float
    )


def pc(table: pd.DataFrame) -> Marks:
    from causallearn.search.ConstraintBased.PC import pc

    return _from_endpoints(pc(table.to_numpy(), show_progress=False).G.graph)


def ges(table: pd.DataFrame) -> Marks:
    from causallearn.search.ScoreBased.GES import ges

    return _from_endpoints(ges(table.to_numpy())["G"].graph)


def direct_lingam(table: pd.DataFrame) -> Marks:
    import lingam

    return (lingam.DirectLiNGAM(random_state=0).fit(table).adjacency_matrix_.T != 0).astype(float)


def resit(table: pd.DataFrame) -> Marks:
    import lingam
    from sklearn.ensemble import RandomForestRegressor

    model = lingam.RESIT(regressor=RandomForestRegressor(max_depth=4, random_state=0))  # as in its tutorial
    return (model.fit(table).adjacency_matrix_.T != 0).astype(float)


def notears(table: pd.DataFrame) -> Marks:
    from castle.algorithms import Notears

    return _castle(Notears(), table)


def notears_mlp(table: pd.DataFrame) -> Marks:
    from castle.algorithms import NotearsNonlinear

    return _castle(NotearsNonlinear(), table)


METHODS: dict[str, tuple[str, Callable[[pd.DataFrame], Marks]]] = {
    "random order": ("diffan", ours("random")),
    "CAM": ("diffan", ours("cam")),
    "NoGAM": ("diffan", ours("nogam")),
    "DiffAN (default)": ("diffan", ours("diffan")),
    "PC (Fisher-z)": ("causal-learn", pc),
    "GES (BIC)": ("causal-learn", ges),
    "DirectLiNGAM": ("lingam", direct_lingam),
    "RESIT": ("lingam", resit),
    "NOTEARS": ("gcastle", notears),
    "NOTEARS-MLP": ("gcastle", notears_mlp),
}


def _from_endpoints(graph: np.ndarray) -> Marks:
    """causal-learn's marks: [i, j] = -1 and [j, i] = 1 is i -> j; -1 at both ends has no direction."""
    directed = (graph == -1) & (graph.T == 1)
    return directed + 0.5 * ((graph == -1) & (graph.T == -1))


def _castle(model, table: pd.DataFrame) -> Marks:
    model.learn(table.to_numpy())
    return np.asarray(model.causal_matrix, dtype=float)


def run(out: Path) -> None:
    done = {(cell["world"], cell["seed"], cell["method"]) for cell in _cells(out)}
    logging.disable(logging.INFO)
    for name, (package, find) in METHODS.items():
        for world, (mechanism, noise) in WORLDS.items():
            for seed in SEEDS:
                if (world, seed, name) in done:
                    continue
                truth = diffan.simulate.random_dag(NODES, EDGES, graph="er", seed=seed)
                table = diffan.simulate.sample_anm(
                    truth, ROWS, noise=noise, noise_scale=(0.4, 0.8), mechanism=mechanism, seed=seed
                )
                table = (table - table.mean()) / table.std()
                started = time.process_time()
                try:
                    marks = find(table)
                except ImportError as error:
                    print(f"{name} left out: {error}")
                    break
                cell = {
                    "world": world,
                    "seed": seed,
                    "method": name,
                    "package": f"{package} {diffan.__version__ if package == 'diffan' else version(package)}",
                    "cpu_seconds": round(time.process_time() - started, 2),
                    **scores(truth.adjacency, marks),
                }
                print(cell, flush=True)
                out.parent.mkdir(parents=True, exist_ok=True)
                with out.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(cell) + "\n")


def scores(truth: np.ndarray, marks: Marks) -> dict[str, float]:
    """F1 of the edges, where a link without a direction is half right, and F1 of the links whatever their direction."""
    links, true_links = np.triu(marks + marks.T) > 0, np.triu(truth + truth.T) > 0
    return {
        "f1": _f1((marks * truth).sum(), marks.sum(), truth.sum()),
        "skeleton_f1": _f1((links & true_links).sum(), links.sum(), true_links.sum()),
    }


def _f1(right: float, found: float, true: float) -> float:
    return round(float(2 * right / (found + true)), 4)


def show(out: Path) -> None:
    cells = pd.DataFrame(_cells(out))
    print("| method | package | " + " | ".join(WORLDS) + " | CPU seconds |")
    print("|---|---|" + "---|" * (len(WORLDS) + 1))
    for name in METHODS:
        mine = cells[cells.method == name]
        if mine.empty:
            continue
        means = [mine[mine.world == world][["f1", "skeleton_f1"]].mean() for world in WORLDS]
        told = " | ".join(f"{mean.f1:.2f} / {mean.skeleton_f1:.2f}" for mean in means)
        print(f"| {name} | {mine.package.iloc[0]} | {told} | {mine.cpu_seconds.mean():.1f} |")


def _cells(out: Path) -> list[dict]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    run(asked.file) if asked.action == "run" else show(asked.file)
