"""Minimise many smooth functions of shares in (0, 1) at once, by Newton's method within the box."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

LONGEST_STEP = 0.5
SHORTEST_TRIAL = 0.02  # of the Newton step, after which the point is kept
MAX_TRIALS = 60


def minimise(
    start: Array,
    evaluate: Callable[[Rows, Array], tuple[Array, Array, Array]],
    *,
    edge: float,
    tolerance: float,
) -> Array:
    """The shares [B, m] where each function is least, near `start`.

    `evaluate(rows, points)` gives the value [b], gradient [b, m] and Hessian [b, m, m] of the functions in `rows`.
    A function is done when a step gains, or promises, less than `tolerance`.
    """
    point = np.clip(start, edge, 1 - edge)
    active = np.arange(len(point))
    value, gradient, hessian = evaluate(active, point)
    value = value.copy()
    step = np.zeros_like(point)
    step[active], promise = _newton_steps(point, gradient, hessian, edge)
    part = np.ones(len(point))
    active = active[promise >= tolerance]
    for _ in range(MAX_TRIALS):
        if not len(active):
            break
        trial = np.clip(point[active] + part[active, None] * step[active], edge, 1 - edge)
        new_value, gradient, hessian = evaluate(active, trial)
        gain = value[active] - new_value
        better = gain > 0
        rows = active[better]
        point[rows], value[rows], part[rows] = trial[better], new_value[better], 1.0
        step[rows], promise = _newton_steps(trial[better], gradient[better], hessian[better], edge)
        part[active[~better]] /= 3
        going = part[active] >= SHORTEST_TRIAL
        going[better] = (gain[better] >= tolerance) & (promise >= tolerance)
        active = active[going]
    return point


def _newton_steps(point: Array, gradient: Array, hessian: Array, edge: float) -> tuple[Array, Array]:
    """Steps [B, m] that descend within the box, and the first-order gain [B] they promise."""
    held = ((point <= edge) & (gradient >= 0)) | ((point >= 1 - edge) & (gradient <= 0))
    free = ~held
    inner = hessian * (free[:, :, None] & free[:, None, :])
    inner += np.eye(point.shape[1]) * held[:, :, None]
    curvature, directions = np.linalg.eigh(inner)
    size = np.abs(curvature)
    size = np.maximum(size, 1e-6 * size.max(axis=1, initial=1e-300, keepdims=True))
    downhill = gradient * free
    along = (directions.swapaxes(1, 2) @ downhill[..., None])[..., 0]
    step = _within_box(point, -(directions @ (along / size)[..., None])[..., 0] * free, edge)
    promise = -(gradient * step).sum(axis=1)
    # Clipping to the box can turn a Newton step uphill; going down each coordinate by itself never does.
    own = np.abs(np.diagonal(inner, axis1=1, axis2=2))
    safe = _within_box(
        point, -downhill / np.maximum(own, 1e-6 * own.max(axis=1, initial=1e-300, keepdims=True)), edge
    )
    uphill = promise <= 0
    step[uphill] = safe[uphill]
    return step, np.where(uphill, -(gradient * safe).sum(axis=1), promise)


def _within_box(point: Array, step: Array, edge: float) -> Array:
    moved = np.clip(point + np.clip(step, -LONGEST_STEP, LONGEST_STEP), edge, 1 - edge)
    return moved - point
