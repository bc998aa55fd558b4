"""How wrong the additive-noise model is for a table, in the nats that edges are counted in.

Where the noise of many variables varies with earlier ones the model is wrong, and further edges can be its patches: a noisy
reading of a cause leaves something for every relative of that cause to explain. An edge, and a move in the order, then
has to pay at least what the model still leaves unsaid about the noise of an average variable.
"""

from __future__ import annotations

import numpy as np

from diffan.likelihood.dependence import LEAST_SHARE, LEVEL, BoolArray, FloatArray, spread_explained
from diffan.likelihood.fits import Query
from diffan.likelihood.moves import State
from diffan.likelihood.work import Work
from diffan.table import Table

MOST_SHARE = 0.999  # more is worth no more, which keeps nats finite
MANY_NODES = 0.25  # share of the nodes from which on it is the model's fault, not theirs; choice


def left_over(state: State, table: Table) -> Work[FloatArray]:
    """What each node's noise still owes to each column before it, given its parents, in nats: [d, d] for i -> j."""
    objective, d = state.objective, len(state.order)
    yield objective, [Query(node, parents, kept=True) for node, parents in enumerate(state.parents)]
    residuals = np.stack([objective.residuals(node, parents) for node, parents in enumerate(state.parents)])
    objective.forget_residuals()
    earlier = np.zeros((d, d), dtype=np.bool_)
    for k, node in enumerate(state.order):
        earlier[state.candidates(node, state.order[:k]), node] = True
    return owed_nats(residuals, table.values[objective.kept_rows], earlier)


def owed_nats(residuals: FloatArray, values: FloatArray, earlier: BoolArray) -> FloatArray:
    """What the size of each residual owes to each earlier column: twice a log-likelihood ratio, as for edges.

    Zero where chance could do it, or where it is slight. residuals [d, n], values [n, d] -> [d, d].
    """
    shares, p_values = spread_explained(residuals, values, earlier)
    seen = (p_values * max(int(earlier.sum()), 1) < LEVEL) & (shares > LEAST_SHARE)
    nats = -residuals.shape[1] * np.log1p(-np.minimum(shares, MOST_SHARE))
    return np.where(seen, nats, 0.0)


def misfit(owed: FloatArray) -> float:
    """The most that one earlier column tells about a node's noise, in the mean over nodes; nothing where few nodes owe."""
    most = owed.max(axis=0)
    return float(most.mean()) if _many(most > 0) else 0.0


def misfit_warning(owed: FloatArray, table: Table, price: float, usual: float) -> str | None:
    """A sentence when the noise of many variables depends on earlier ones, or when edges had to pay for it."""
    names, owing = table.names, owed.max(axis=0) > 0
    if price <= usual and not _many(owing):
        return None
    nodes = np.flatnonzero(owing)
    shown = ", ".join(repr(names[j]) for j in nodes[:5]) + (", ..." if len(nodes) > 5 else "")
    paid = (
        f" an edge had to show {_told(price)} nats of evidence instead of {_told(usual)};"
        if price > usual
        else ""
    )
    expect = "missed edges and some wrong ones" if price > usual else "wrong edges"
    return (
        f"The noise of {len(nodes)} of {len(names)} variables ({shown}) varies with earlier variables, which an "
        f"additive-noise model rules out:{paid} expect {expect}, and {table.other_transform}."
    )


def _many(nodes: BoolArray) -> bool:
    """Of two columns only one has an earlier one, and it is enough."""
    return int(nodes.sum()) >= max(min(2, len(nodes) - 1), MANY_NODES * len(nodes))


def _told(nats: float) -> str:
    return f"{nats:.1f}" if nats < 100 else f"{nats:.0f}"
