"""A gene-expression simulator in the manner of SynTReN (Van den Bulcke et al., 2006).

The noise here is multiplicative and the kinetics saturate, so the data do not follow an additive-noise
model: that is what the simulator is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from diffan.context import Context
from diffan.dag import Dag, topological_indices
from diffan.errors import InputError
from diffan.simulate.anm import check_samples
from diffan.simulate.graphs import grow_scale_free

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GeneNetworkSettings:
    """How the genes interact and how noisily they are seen."""

    repressor_share: float = 0.3  # share of edges that repress: a choice, activators the commoner
    hill_share: float = (
        0.5  # share of edges with Hill kinetics (cooperative binding); others Michaelis-Menten
    )
    cooperative_share: float = 0.5  # share of genes whose regulators must act together (product, not mean)
    basal_rate: float = 0.05  # expression of a gene that nothing activates, as a share of its maximum
    biological_noise: float = 0.1  # log-standard deviation within the cell: passed on to the targets
    measurement_noise: float = 0.1  # log-standard deviation of the array: not passed on

    def __post_init__(self) -> None:
        for name in ("repressor_share", "hill_share", "cooperative_share", "basal_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(
                    f"The '{name}' setting must lie in [0, 1]. Got {getattr(self, name)!r} instead."
                )
        for name in ("biological_noise", "measurement_noise"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise InputError(
                    f"The '{name}' setting must be 0 or more. Got {getattr(self, name)!r} instead."
                )


def simulate_gene_network(
    n_genes: int = 20,
    n_edges: int = 24,
    n_samples: int = 500,
    seed: int = 0,
    *,
    settings: GeneNetworkSettings | None = None,
) -> tuple[pd.DataFrame, Dag]:
    """Steady-state expression of a scale-free regulation network: the data and the true graph.

    Few genes regulate many: the network grows by preferential attachment (`random_dag` says how many edges
    come out) and an older gene regulates the younger gene that joined it. Genes without a regulator follow
    the external condition, uniform over samples. Every other gene has the rate its regulators allow, times
    log-normal biological noise that its own targets feel. What is observed carries log-normal measurement
    noise and a unit per gene.
    """
    import pandas as pd

    rows = check_samples(n_samples)
    chosen = settings or GeneNetworkSettings()
    context = Context(seed=seed)
    dag = _regulation_graph(n_genes, n_edges, context.rng("regulation graph"))
    kinetics = context.rng("kinetics").spawn(n_genes)
    biology = context.rng("biological noise").spawn(n_genes)

    levels = np.empty((rows, n_genes), order="F")
    for gene in topological_indices(dag.adjacency):
        regulators = levels[:, np.flatnonzero(dag.adjacency[:, gene])]
        if regulators.shape[1]:
            rate = _expression_rate(regulators, chosen, kinetics[gene])
        else:
            rate = biology[gene].uniform(0.0, 1.0, rows)
        levels[:, gene] = rate * np.exp(chosen.biological_noise * biology[gene].standard_normal(rows))

    measurement = context.rng("measurement")
    units = np.exp(measurement.uniform(np.log(1e3), np.log(1e4), n_genes))  # the order of SynTReN's readings
    seen = levels * units * np.exp(chosen.measurement_noise * measurement.standard_normal(levels.shape))
    return pd.DataFrame(seen, columns=list(dag.names)), dag


def _regulation_graph(n_genes: int, n_edges: int, rng: np.random.Generator) -> Dag:
    if n_genes < 1 or n_edges < 0:
        raise InputError(
            f"A gene network needs 1 or more genes and 0 or more edges. Got {n_genes} and {n_edges}."
        )
    older_to_younger = grow_scale_free(n_genes, n_edges, rng)
    labels = rng.permutation(n_genes)
    return Dag(older_to_younger[np.ix_(labels, labels)], [f"g{i}" for i in range(n_genes)])


def _expression_rate(regulators: Array, settings: GeneNetworkSettings, rng: np.random.Generator) -> Array:
    """The share of its maximum at which a gene is expressed, given its regulators' levels [n, p].

    Regulator a with half-saturation K and order h binds with probability a^h / (K^h + a^h): Michaelis-Menten
    for h = 1, Hill for h of 2 to 4. A repressor acts through the probability that it is not bound.
    """
    n_regulators = regulators.shape[1]
    order = np.where(rng.random(n_regulators) < settings.hill_share, rng.integers(2, 5, n_regulators), 1)
    half_saturation = rng.uniform(0.2, 0.8, n_regulators)
    represses = rng.random(n_regulators) < settings.repressor_share
    together = rng.random() < settings.cooperative_share

    ratio = (regulators / half_saturation) ** order  # [n, p]
    bound = ratio / (1.0 + ratio)
    effect = np.where(represses, 1.0 - bound, bound)
    combined = effect.prod(axis=1) if together else effect.mean(axis=1)  # [n]
    return np.asarray(settings.basal_rate + (1.0 - settings.basal_rate) * combined)
