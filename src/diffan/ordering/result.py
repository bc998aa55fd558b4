"""What an ordering stage returns, whichever method made it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from diffan.additive.gram import SplineGram


@dataclass(frozen=True, eq=False)
class Ordering:
    """A causal order of column indices, causes first, and what spoke for it."""

    order: list[int]
    evidence: npt.NDArray[np.float64] | None = None
    """[steps, d]: the criterion of every remaining node at each leaf choice, NaN for removed nodes."""
    candidates: npt.NDArray[np.bool_] | None = None
    """[d, d]: the edges i -> j worth testing, when the method already excludes some; None for all."""
    neighbours: npt.NDArray[np.bool_] | None = None
    """[d, d], symmetric: the pairs that may be joined at all, when the method screened them; None for all."""
    gram: SplineGram | None = None
    """The spline Gram matrix of the columns, when the method already has it."""
    screened: dict[str, float] = field(default_factory=dict)
    """How many pairs the screen left, and how many candidates the variables have, when there was one."""
    losses: dict[str, list[float]] = field(default_factory=dict)
    """Named curves, such as training and validation loss."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds per inner stage."""
    warnings: tuple[str, ...] = ()
    model: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Named arrays of the fitted score model, saved beside the result; empty when there is none."""
