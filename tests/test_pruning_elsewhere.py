"""Regressions on other processes and on a cluster give the decisions of this process."""

from __future__ import annotations

import numpy as np
import pytest

import diffan
from diffan.additive.fit import fit_nodes
from diffan.additive.gram import SplineGram
from diffan.additive.spread import fit_nodes_elsewhere
from diffan.context import Context
from diffan.errors import InputError
from diffan.pruning import PruneSettings, prune
from diffan.table import Table


def some_table(d: int = 12, n: int = 400) -> Table:
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=n)]
    for j in range(1, d):
        columns.append(np.sin(columns[rng.integers(j)]) + 0.5 * rng.normal(size=n))
    return Table.read(np.column_stack(columns))


def test_the_fits_come_in_order_and_are_the_same() -> None:
    table = some_table()
    gram = SplineGram.from_values(table.values)
    regressions = [(j, tuple(range(j))) for j in range(12)]
    here = list(fit_nodes(gram, regressions))
    there = list(fit_nodes_elsewhere(gram, regressions))
    assert [(fit.target, fit.parents) for fit in there] == [(fit.target, fit.parents) for fit in here]
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other.coefficients, one.coefficients, rtol=1e-4, atol=1e-6)
        assert other.gcv == pytest.approx(one.gcv, rel=1e-6)


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_decisions_are_those_of_this_process(where: str) -> None:
    table, order = some_table(), list(range(12))
    expected = prune(order, table, settings=PruneSettings(), context=Context(device="cpu"))
    if where == "processes":
        spread = PruneSettings(prune_workers=2)
        found = prune(order, table, settings=spread, context=Context(device="cpu"))
    else:
        distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster:
            spread = PruneSettings(prune_scheduler=cluster.scheduler_address)
            found = prune(order, table, settings=spread, context=Context(device="cpu"))
    assert (found.chosen == expected.chosen).all()
    np.testing.assert_allclose(found.p_values, expected.p_values, rtol=1e-2, atol=1e-12)


def test_settings_are_options_of_discover() -> None:
    found = diffan.discover(some_table(5, 100), "random", prune_workers=0, device="cpu")
    assert found.settings["prune_workers"] == 0
    with pytest.raises(InputError, match="prune_workers"):
        PruneSettings(prune_workers=-1)
