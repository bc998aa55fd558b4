"""The paper's grid of synthetic data sets: 27 for each kind of graph."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diffan.context import Context
from diffan.dag import Dag
from diffan.errors import InputError
from diffan.simulate.anm import sample_anm
from diffan.simulate.graphs import GraphKind, random_dag
from diffan.simulate.mechanisms import MechanismKind
from diffan.simulate.noise import NoiseKind

if TYPE_CHECKING:
    import pandas as pd

NOISES: tuple[NoiseKind, ...] = ("gauss", "exp", "laplace")
SCALE_RANGES = ((0.4, 0.8), (0.8, 1.2), (1.0, 1.0))
DENSITIES = (1, 5)  # edges per node


@dataclass(frozen=True)
class PaperCase:
    """One data set of the grid; joint Gaussian-process mechanisms unless another kind is named."""

    graph: GraphKind  # "er" or "sf"
    density: int  # edges per node, 1 or 5 in the paper
    noise: NoiseKind
    scale_index: int  # which of SCALE_RANGES
    seed: int
    n_nodes: int = 20
    n_samples: int = 1000
    mechanism: MechanismKind = "gp"  # the paper's

    def __post_init__(self) -> None:
        if self.scale_index not in range(len(SCALE_RANGES)):
            raise InputError(
                f"The 'scale_index' parameter must be 0, 1 or 2. Got {self.scale_index!r} instead."
            )
        Context(seed=self.seed)

    @property
    def name(self) -> str:
        """A short label, fit for a table row or a file name."""
        label = f"{self.graph.upper()}{self.density}-d{self.n_nodes}"
        kind = "" if self.mechanism == "gp" else f"-{self.mechanism}"
        return f"{label}-n{self.n_samples}-{self.noise}-{self.scale_index}-s{self.seed}{kind}"

    def draw(self, *, device: str = "auto") -> tuple[pd.DataFrame, Dag]:
        """The data and the true graph."""
        seed = self._mixed_seed()
        dag = random_dag(self.n_nodes, self.density * self.n_nodes, self.graph, seed)
        scales = SCALE_RANGES[self.scale_index]
        data = sample_anm(dag, self.n_samples, self.noise, scales, self.mechanism, seed, device=device)
        return data, dag

    def _mixed_seed(self) -> int:
        """A seed of its own for every cell of the grid, so that no two cells share a graph or a function."""
        names = (
            zlib.crc32(f"{self.graph} {self.noise}".encode()),
            self.density,
            self.scale_index,
            self.n_nodes,
        )
        return int(np.random.SeedSequence([*names, int(self.seed)]).generate_state(1, np.uint64)[0])


def paper_case(
    graph: GraphKind,
    density: int,
    noise: NoiseKind,
    scale_index: int,
    seed: int,
    n_nodes: int = 20,
    n_samples: int = 1000,
) -> tuple[pd.DataFrame, Dag]:
    """One data set of the paper's grid and its true graph: `PaperCase(...).draw()`."""
    return PaperCase(graph, density, noise, scale_index, seed, n_nodes, n_samples).draw()


def paper_grid(
    graph: GraphKind,
    density: int,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    n_nodes: int = 20,
    n_samples: int = 1000,
) -> Iterator[PaperCase]:
    """The cells for one kind of graph: three noises, three scale ranges, three seeds, 27 in the paper."""
    for noise in NOISES:
        for scale_index in range(len(SCALE_RANGES)):
            for seed in seeds:
                yield PaperCase(graph, density, noise, scale_index, seed, n_nodes, n_samples)
