"""Tables that break one assumption each: what comes out, and what the result says about itself.

    python benchmarks/assumptions.py                        # a minute or two
    python benchmarks/assumptions.py --method cam           # seconds
    python benchmarks/assumptions.py --alarms truth         # doubts about tables that break nothing, at the true graph
    python benchmarks/assumptions.py --alarms found         # the same at the graph that was found, d = 10
    python benchmarks/assumptions.py --seen 20              # how often a broken assumption is seen, 20 draws of each

Tuning seeds, small tables: a look at the warnings, not a measurement of accuracy. docs/assumptions.md tells the outcome.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import diffan

ROWS = 500
TRUTHS = {
    "all assumptions hold": "a -> b, a -> c, b -> c",
    "hidden common cause": "none between x and y; y -> z",
    "straight lines, Gaussian noise": "a -> b, b -> c",
    "straight lines, uniform noise": "a -> b, b -> c",
    "noise grows with the cause": "a -> b, b -> c",
    "feedback": "a -> b and b -> a",
    "time series": "a -> b one step later",
    "measurement error in the cause": "a -> b",
    "measurement error in the middle of a chain": "a -> b, b -> c",
    "selected rows": "none",
    "a discrete column": "a -> b, b -> c",
    "heavy tails": "a -> b, b -> c",
    "heavy tails, as they are": "a -> b, b -> c",
    "feedback, skewed noise": "a -> b and b -> a",
}


def tables(rng: np.random.Generator, n: int = ROWS) -> dict[str, pd.DataFrame]:
    """One table for each entry of TRUTHS."""

    def noise(scale: float = 1.0) -> np.ndarray:
        return scale * rng.normal(size=n)

    def even(scale: float = 1.0) -> np.ndarray:
        return scale * rng.uniform(-1.7, 1.7, size=n)

    found = {}
    a = noise()
    b = np.sin(2 * a) + noise(0.4)
    found["all assumptions hold"] = {"a": a, "b": b, "c": b**2 - np.abs(a) + noise(0.4)}
    hidden = noise()
    y = hidden**2 + hidden + noise(0.3)
    found["hidden common cause"] = {
        "x": np.tanh(2 * hidden) + noise(0.3),
        "y": y,
        "z": np.sin(y) + noise(0.3),
    }
    b = 0.8 * a + noise(0.6)
    found["straight lines, Gaussian noise"] = {"a": a, "b": b, "c": 0.7 * b + noise(0.6)}
    u = even()
    b = 0.8 * u + even(0.6)
    found["straight lines, uniform noise"] = {"a": u, "b": b, "c": 0.7 * b + even(0.6)}
    b = np.sin(2 * a) + (0.1 + 0.6 * np.abs(a)) * noise()
    c = b**2 + (0.1 + 0.4 * np.abs(b)) * noise()
    found["noise grows with the cause"] = {"a": a, "b": b, "c": c}
    found["feedback"] = _equilibrium(noise(0.6), noise(0.6))
    found["time series"] = _series(noise(0.3), noise(0.2))
    b = np.sin(2 * a) + noise(0.3)
    found["measurement error in the cause"] = {"a": a + noise(0.6), "b": b}
    c = np.cos(2 * b) + noise(0.3)
    found["measurement error in the middle of a chain"] = {"a": a, "b": b + noise(0.5), "c": c}
    one, other = noise(), noise()
    kept = np.abs(one + other) < 0.7
    found["selected rows"] = {"a": one[kept], "b": other[kept]}
    b = np.round(2 * np.tanh(a) + noise(0.3))
    found["a discrete column"] = {"a": a, "b": b, "c": np.sin(b) + noise(0.3)}
    b = np.cos(1.5 * a) + noise(0.4)
    c = np.sin(2 * b) + noise(0.4)
    heavy = {"a": np.exp(3 * a), "b": np.exp(3 * b), "c": np.exp(3 * c)}
    found["heavy tails"] = found["heavy tails, as they are"] = heavy
    one, other = rng.exponential(size=(2, n))  # a = b / 2 + one, b = 0.7 a + other, settled
    found["feedback, skewed noise"] = {"a": (one + 0.5 * other) / 0.65, "b": (0.7 * one + other) / 0.65}
    return {name: pd.DataFrame(columns) for name, columns in found.items()}


def _equilibrium(one: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    """Two variables that drive each other until both have settled."""
    a = b = np.zeros(len(one))
    for _ in range(200):
        a = 0.8 * np.tanh(1.2 * b) + one
        b = np.sin(a) + other
    return {"a": a, "b": b}


def _series(one: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    """Rows that follow one another in time."""
    a, b = np.zeros(len(one)), np.zeros(len(one))
    for t in range(1, len(one)):
        a[t] = 0.9 * a[t - 1] + one[t]
        b[t] = np.tanh(2 * a[t - 1]) + 0.5 * b[t - 1] + other[t]
    return {"a": a, "b": b}


def looked_at(table: pd.DataFrame, dag: diffan.Dag) -> diffan.Discovery:
    """The second look at a graph that is given."""
    from diffan.evidence import EdgeEvidence
    from diffan.inspection.look import inspected
    from diffan.table import Table

    chosen = np.asarray(dag.adjacency, dtype=bool)
    evidence = EdgeEvidence(p_values=np.where(chosen, 1e-9, 1.0), tested=chosen, chosen=chosen, cutoff=0.001)
    given = diffan.Discovery(
        order=dag.topological_order(),
        names=dag.names,
        evidence=evidence,
        method="given",
        settings={},
        seed=0,
        n_samples=len(table),
    )
    return inspected(given, Table.read(table))


def alarms(at_truth: bool, method: str) -> None:
    """How often each question is a doubt on tables of the paper's grid, tuning seeds."""
    from diffan.simulate.grid import paper_grid

    many = 5 if at_truth else 3
    for graph, density in (("er", 1), ("er", many), ("sf", 1), ("sf", many)):
        counts: dict[str, int] = {}
        cases = list(paper_grid(graph, density, seeds=(0,), n_nodes=20 if at_truth else 10))
        cases = cases if at_truth else cases[::3]
        for case in cases:
            table, dag = case.draw()
            result = looked_at(table, dag) if at_truth else diffan.discover(table, method, device="cpu")
            for one in result.diagnostics:
                counts[one.topic] = counts.get(one.topic, 0) + (one.level == "doubt")
        found = ", ".join(f"{topic} {count}" for topic, count in counts.items() if count) or "none"
        print(f"{graph}{density}, {len(cases)} tables; doubts: {found}", flush=True)


def seen(draws: int) -> None:
    """How often the edge between the variables of a broken pair, drawn as the truth has it, is a doubt."""
    pairs = {
        "hidden common cause": ["x", "y"],
        "noise grows with the cause": ["a", "b"],
        "feedback": ["a", "b"],
        "feedback, skewed noise": ["a", "b"],
        "time series": ["a", "b"],
        "measurement error in the cause": ["a", "b"],
        "selected rows": ["a", "b"],
        "all assumptions hold": ["a", "b"],
    }
    for name, (cause, effect) in pairs.items():
        counts: dict[str, int] = {}
        for seed in range(draws):
            table = tables(np.random.default_rng(seed), 3 * ROWS if name == "selected rows" else ROWS)[name]
            for edges in ([(cause, effect)], []):
                result = looked_at(table[[cause, effect]], diffan.Dag.from_edges(edges, [cause, effect]))
                for one in result.diagnostics:
                    key = f"{one.topic} ({'with' if edges else 'without'} the edge)"
                    counts[key] = counts.get(key, 0) + (one.level == "doubt")
        print(f"{name}, {draws} draws")
        for topic, count in counts.items():
            if count:
                print(f"  {count:3d}  {topic}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="diffan")
    parser.add_argument("--only", help="one of the tables, by its name")
    parser.add_argument("--alarms", choices=["truth", "found"])
    parser.add_argument("--seen", type=int)
    asked = parser.parse_args()
    method = asked.method
    if asked.alarms:
        alarms(asked.alarms == "truth", method)
        return
    if asked.seen:
        seen(asked.seen)
        return
    for name, table in tables(np.random.default_rng(0)).items():
        if asked.only not in (None, name):
            continue
        transform = "none" if "as they are" in name else "auto"
        result = diffan.discover(table, method, transform=transform, seed=0, device="cpu")
        print(f"{name}\n  truth: {TRUTHS[name]}")
        print("  found:", ", ".join(f"{cause} -> {effect}" for cause, effect in result.dag.edges) or "none")
        for warning in result.warnings:
            print("  warning:", warning)
        for one in result.diagnostics:
            if one.level != "fine":
                print(f"  {one.level}:", one.text, one.advice)


if __name__ == "__main__":
    main()
