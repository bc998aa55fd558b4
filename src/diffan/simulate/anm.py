"""Samples from an additive-noise model: every variable is a function of its parents plus noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from diffan.context import Context
from diffan.dag import Dag, topological_indices
from diffan.errors import InputError
from diffan.simulate.mechanisms import MechanismKind, mechanism_named, mlp
from diffan.simulate.noise import NoiseKind, check_noise, draw_noise, scale_range

if TYPE_CHECKING:
    import pandas as pd


def sample_anm(
    dag: Dag,
    n_samples: int,
    noise: NoiseKind = "gauss",
    noise_scale: float | tuple[float, float] = 1.0,
    mechanism: MechanismKind = "gp",
    seed: int = 0,
    *,
    device: str = "auto",
) -> pd.DataFrame:
    """Sample x_j = f_j(parents of j) + noise_j for every node; columns are `dag.names`, raw units.

    A node without parents is its noise alone. Each node draws its noise scale uniformly from `noise_scale`
    (low, high), or takes the one number given; `diffan.simulate.noise` says what the scale means. Every f_j
    is a fresh draw of `mechanism`: "gp" (jointly over all parents), "additive-gp", "mlp", "linear" or
    "sigmoid".

    Every node has random streams of its own, so the same seed gives the same bytes on the same device, and
    another kind of noise leaves the functions' random numbers alone. Only Gaussian processes over more than a
    few thousand rows use `device`; there a GPU differs from the CPU by single-precision rounding.
    """
    import pandas as pd

    rows = check_samples(n_samples)
    check_noise(noise)
    check_device(device)
    low, high = scale_range(noise_scale)
    function = mechanism_named(mechanism, device=device)

    context = Context(seed=seed)
    scales = context.rng("noise scales").uniform(low, high, dag.n_nodes)
    noise_streams = context.rng("noise").spawn(dag.n_nodes)
    function_streams = context.rng("mechanisms").spawn(dag.n_nodes)
    values = np.empty((rows, dag.n_nodes), order="F")
    for node in topological_indices(dag.adjacency):
        values[:, node] = draw_noise(noise, rows, scales[node], noise_streams[node])
        parents = np.flatnonzero(dag.adjacency[:, node])
        if len(parents):
            values[:, node] += function(values[:, parents], function_streams[node])
    return pd.DataFrame(values, columns=list(dag.names), copy=False)


def two_variable(n_samples: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Dag]:
    """The paper's two-variable case: A ~ N(0, 1) and B = a random two-layer network of A + N(0, 1)."""
    import pandas as pd

    rng = Context(seed=seed).rng("two variables")
    cause = rng.standard_normal(check_samples(n_samples))
    effect = mlp(cause[:, None], rng) + rng.standard_normal(len(cause))
    return pd.DataFrame({"A": cause, "B": effect}), Dag([[0, 1], [0, 0]], ["A", "B"])


def check_samples(n_samples: int) -> int:
    whole = isinstance(n_samples, (int, np.integer)) and not isinstance(n_samples, bool)
    if not whole or n_samples < 1:
        raise InputError(
            f"The 'n_samples' parameter must be a whole number of 1 or more. Got {n_samples!r} instead."
        )
    return int(n_samples)


def check_device(device: str) -> None:
    """Refuse a misspelt device without loading torch, which small samples never need."""
    if not isinstance(device, str) or device.split(":")[0] not in ("auto", "cpu", "cuda"):
        raise InputError(
            f"The 'device' parameter must be 'auto', 'cpu' or 'cuda[:index]'. Got {device!r} instead."
        )
