"""From a table to a what-if question: discover the graph, hand it to DoWhy, fit its mechanisms, intervene.

Needs DoWhy: pip install dowhy. Run with: python examples/what_if_with_dowhy.py
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

import diffan


class Answer(NamedTuple):
    """The mean of the outcome with the treatment set, as the model sees it and as the simulation knows it."""

    edges: list[tuple[str, str]]
    predicted: float
    true: float
    observed: float  # the mean among rows that happen to have such a treatment: confounded


def simulate(rng: np.random.Generator, n: int, treatment: float | None = None) -> pd.DataFrame:
    """Soil drives both fertiliser and yield, so what is seen is not what would happen."""
    soil = rng.normal(size=n)
    fertiliser = np.tanh(1.5 * soil) + 0.4 * rng.normal(size=n)
    if treatment is not None:
        fertiliser = np.full(n, treatment)
    yield_ = 1.5 * np.sin(fertiliser) + 1.2 * soil**2 - soil + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"soil": soil, "fertiliser": fertiliser, "yield": yield_})


def what_if(treatment: float = 1.0, *, rows: int = 1500, seed: int = 0) -> Answer:
    """What would the yield be if every field got this much fertiliser?"""
    from dowhy import gcm

    rng = np.random.default_rng(seed)
    table = simulate(rng, rows)
    result = diffan.discover(table, method="cam", seed=seed)

    model = result.export("dowhy")
    gcm.auto.assign_causal_mechanisms(model, table)
    gcm.fit(model, table)
    sample = gcm.interventional_samples(
        model, {"fertiliser": lambda amount: treatment}, num_samples_to_draw=rows
    )
    near = np.abs(table["fertiliser"] - treatment) < 0.15
    return Answer(
        edges=result.dag.edges,
        predicted=float(sample["yield"].mean()),
        true=float(simulate(rng, 200_000, treatment)["yield"].mean()),
        observed=float(table.loc[near, "yield"].mean()),
    )


if __name__ == "__main__":
    answer = what_if()
    print("discovered:", ", ".join(f"{a} -> {b}" for a, b in answer.edges))
    print(f"fields with about this much fertiliser yield {answer.observed:.2f} on average;")
    print(f"if every field got it, the model says {answer.predicted:.2f}; the truth is {answer.true:.2f}")
