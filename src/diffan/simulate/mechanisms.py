"""Causal mechanisms: random functions from a node's parents to its noiseless value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.simulate.gaussian_process import draw_function

Array = npt.NDArray[np.float64]
Mechanism = Callable[[Array, np.random.Generator], Array]  # parents [n, p], p >= 1 -> values [n]
MechanismKind = Literal["gp", "additive-gp", "mlp", "linear", "sigmoid"]

HIDDEN_UNITS = 32


def additive_gp(parents: Array, rng: np.random.Generator, *, device: str) -> Array:
    """A sum of independent one-dimensional Gaussian-process draws, one per parent (no interactions)."""
    columns = (parents[:, [k]] for k in range(parents.shape[1]))
    return np.asarray(sum(draw_function(column, rng, device=device) for column in columns))


def mlp(parents: Array, rng: np.random.Generator) -> Array:
    """A random two-layer network with tanh units.

    Input weights N(0, 4/p) and shifts N(0, 1) put inputs of unit scale well into the bends of the units;
    output weights N(0, 2/units) give values of about unit variance.
    """
    n_parents = parents.shape[1]
    into = rng.standard_normal((n_parents, HIDDEN_UNITS)) * np.sqrt(4.0 / n_parents)
    shift = rng.standard_normal(HIDDEN_UNITS)
    out = rng.standard_normal(HIDDEN_UNITS) * np.sqrt(2.0 / HIDDEN_UNITS)
    return np.asarray(np.tanh(parents @ into + shift) @ out)


def linear(parents: Array, rng: np.random.Generator) -> Array:
    """A weighted sum; weights uniform in [0.5, 2] with a random sign, so that no edge is nearly absent."""
    return np.asarray(parents @ _away_from_zero(parents.shape[1], rng))


def sigmoid(parents: Array, rng: np.random.Generator) -> Array:
    """A sum over parents of a b(x + c) / (1 + |b(x + c)|), the monotone mechanisms of CAM's simulations.

    a - 1 is exponential with rate 4, b uniform in [0.5, 2] with a random sign, c uniform in [-2, 2].
    """
    n_parents = parents.shape[1]
    height = 1.0 + rng.exponential(0.25, n_parents)
    slope = _away_from_zero(n_parents, rng)
    bent = slope * (parents + rng.uniform(-2.0, 2.0, n_parents))  # [n, p]
    return np.asarray((bent / (1.0 + np.abs(bent))) @ height)


def _away_from_zero(size: int, rng: np.random.Generator) -> Array:
    signs = np.where(rng.random(size) < 0.5, -1.0, 1.0)
    return rng.uniform(0.5, 2.0, size) * signs


def mechanism_named(name: str, *, device: str) -> Mechanism:
    """The mechanism of that name; `device` matters to Gaussian processes over many rows only."""
    known: dict[str, Mechanism] = {
        "gp": partial(draw_function, device=device),
        "additive-gp": partial(additive_gp, device=device),
        "mlp": mlp,
        "linear": linear,
        "sigmoid": sigmoid,
    }
    if name not in known:
        names = ", ".join(map(repr, known))
        raise InputError(f"The 'mechanism' parameter must be one of {names}. Got {name!r} instead.")
    return known[name]
