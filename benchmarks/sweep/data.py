"""Data sets of the studies, each named by a plain dictionary that fits into JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from diffan.dag import Dag

if TYPE_CHECKING:
    import pandas as pd

Spec = dict[str, Any]
Array = npt.NDArray[np.float64]

KINDS = (("er", 1), ("er", 5), ("sf", 1), ("sf", 5))
NOISES = ("exp", "gauss", "laplace")
EVALUATION = 1000  # the first evaluation seed; nothing is tuned on it or above
EXACT_ROWS = 2500  # up to here functions are exact draws and the data are the same bytes on every device


def paper_sets(
    seeds: Iterable[int],
    *,
    nodes: int = 20,
    samples: int = 1000,
    scales: Sequence[int] = (0, 1, 2),
    kinds: Sequence[tuple[str, int]] = KINDS,
    noises: Sequence[str] = NOISES,
) -> list[Spec]:
    """The paper's grid: kinds of graph, noises, ranges of the noise scale, seeds."""
    return [
        {
            "set": "paper",
            "graph": graph,
            "density": density,
            "noise": noise,
            "scale": scale,
            "seed": seed,
            "nodes": nodes,
            "samples": samples,
        }
        for seed in seeds
        for scale in scales
        for graph, density in kinds
        for noise in noises
    ]


SACHS: Spec = {"set": "sachs"}
SYNTREN: tuple[Spec, ...] = tuple({"set": "syntren", "index": index} for index in range(1, 11))


def pair(seed: int, samples: int = 1000) -> Spec:
    """The paper's two-variable case."""
    return {"set": "pair", "seed": seed, "samples": samples}


def name(spec: Spec) -> str:
    """A short label that tells data sets apart."""
    if spec["set"] == "paper":
        return paper_case(spec).name
    return "-".join(str(value) for value in spec.values())


def kind(spec: Spec) -> str:
    """The paper's name of a kind of graph, such as ER5; real data go by their own name."""
    return f"{spec['graph'].upper()}{spec['density']}" if spec["set"] == "paper" else str(spec["set"])


def paper_case(spec: Spec) -> Any:
    from diffan.simulate.grid import PaperCase

    return PaperCase(
        spec["graph"],
        spec["density"],
        spec["noise"],
        spec["scale"],
        spec["seed"],
        spec["nodes"],
        spec["samples"],
    )


def draw(spec: Spec, device: str = "cpu") -> tuple[pd.DataFrame, Dag]:
    """The table and its true graph."""
    from diffan import datasets
    from diffan.simulate.anm import two_variable

    if spec["set"] == "paper":
        return paper_case(spec).draw(device="cpu" if spec["samples"] <= EXACT_ROWS else device)
    if spec["set"] == "sachs":
        return datasets.load_sachs()
    if spec["set"] == "syntren":
        return datasets.load_syntren(spec["index"])
    if spec["set"] == "pair":
        return two_variable(spec["samples"], spec["seed"])
    raise ValueError(f"There is no data set {spec['set']!r}.")


def sortability(values: Array, truth: Dag) -> dict[str, float]:
    """How far sorting by raw variance, and by R^2, already gives the causal order: 0.5 says nothing, 1 all.

    The share of directed paths (one for each pair of ends and each length) whose end has the larger value than its
    start (Reisach et al. 2021, 2023); equal values count half.
    """
    from diffan.baselines.sorts import linear_r2

    standardised = (values - values.mean(axis=0)) / values.std(axis=0)
    return {
        "var": round(rising_paths(values.var(axis=0), truth), 3),
        "r2": round(rising_paths(linear_r2(standardised), truth), 3),
    }


def rising_paths(heights: Array, truth: Dag) -> float:
    """The share of directed paths that end higher than they start; NaN in a graph without edges."""
    step = truth.adjacency.astype(bool)
    counted = step.astype(np.float32)  # floats, because BLAS does not multiply integers
    rises = np.sign(heights[None, :] - heights[:, None]) / 2 + 0.5  # [from, to]
    reached, paths, rising = step, 0, 0.0
    while reached.any():
        paths += int(reached.sum())
        rising += float(rises[reached].sum())
        reached = reached.astype(np.float32) @ counted > 0
    return rising / paths if paths else float("nan")
