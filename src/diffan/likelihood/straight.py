"""Another start where many functions are straight lines.

Along straight lines noise adds up, so that later columns are explained better by all the others, and sorting by R^2 comes close
to the order (Reisach et al. 2023), while a score that takes curvature for the sign of a cause may come close to its reverse.
Single moves do not lead from there to here. The sort is only another place to start from: the likelihood chooses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diffan.constraints import Constraints
from diffan.explained import linear_r2
from diffan.likelihood.moves import State
from diffan.likelihood.passes import charge_misfit, find_parents
from diffan.likelihood.work import Work
from diffan.table import Table

MANY = 0.25  # share of the nodes whose functions are straight; choice: bent functions take no lines at all


def start_sorted(state: State, table: Table, rules: Constraints, price: float) -> Work[bool]:
    """Where many nodes took lines, go on from the columns sorted by R^2 if parents along it fit better; whether they do."""
    objective, d = state.objective, len(state.order)
    straight = max(kernel.lines for kernel in objective.kernels)
    if sum(kernel.lines > 0 for kernel in objective.kernels) < max(1.0, MANY * d):
        return False
    order = rules.mended(np.argsort(linear_r2(objective.values), kind="stable").tolist())
    before = state.total() - (state.price - price) * sum(map(len, state.parents))
    kept = list(objective.kernels), objective.ready, objective.gaussian
    rival = replace(state, order=order, parents=list(state.required), price=price, misfit=0.0)
    objective.kernels = [objective.ready._replace(lines=straight)] * d
    yield from find_parents(rival)
    if rival.total() >= before:
        objective.kernels, objective.ready, objective.gaussian = kept
        return False
    state.order, state.parents, state.price, state.misfit = rival.order, rival.parents, price, 0.0
    if objective.settings.charge_misfit:
        yield from charge_misfit(state, table, price)
    return True
