"""DiffAN's Algorithm 1 and the road from a table to a finished discovery; every stage is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.context import Context
from diffan.discovery import Discovery
from diffan.evidence import EdgeEvidence
from diffan.knowledge import Knowledge
from diffan.ordering.result import Ordering
from diffan.table import Table
from diffan.versions import versions

FloatArray = npt.NDArray[np.float64]
LeafFinder = Callable[[Sequence[int], Sequence[int]], tuple[int, FloatArray]]
"""(remaining, removed in order of removal) -> (leaf, criterion of each remaining node, least for a leaf)."""
OrderStage = Callable[[Table, Context], Ordering]
RefineStage = Callable[[Ordering, Table, Context], Ordering]
EdgeStage = Callable[[Ordering, Table, Context], EdgeEvidence]
Eligible = Callable[[Sequence[int]], Sequence[int]]
"""Those of the remaining that knowledge allows to be the leaf; at least one."""


def topological_order(
    find_leaf: LeafFinder, n_nodes: int, eligible: Eligible | None = None
) -> tuple[list[int], FloatArray]:
    """Algorithm 1: find a leaf of what remains, put it before the leaves already found, go on without it.

    A leaf that is not eligible gives way to the eligible node with the least criterion. Returns the order, causes
    first, and the criterion at each choice, [n_nodes - 1, n_nodes], NaN where removed.
    """
    remaining, removed = list(range(n_nodes)), list[int]()
    evidence = np.full((max(n_nodes - 1, 0), n_nodes), np.nan)
    while len(remaining) > 1:
        leaf, criterion = find_leaf(tuple(remaining), tuple(removed))
        evidence[len(removed), remaining] = criterion
        if eligible is not None and leaf not in (allowed := eligible(remaining)):
            leaf = min(allowed, key=lambda node: criterion[remaining.index(node)])
        remaining.remove(leaf)
        removed.append(leaf)
    return remaining + removed[::-1], evidence


def run(
    table: Table,
    context: Context,
    *,
    find_order: OrderStage,
    find_edges: EdgeStage,
    refine: RefineStage | None = None,
    knowledge: Knowledge | None = None,
    method: str = "custom",
    settings: Mapping[str, Any] | None = None,
) -> Discovery:
    """Order the columns, mend the order if asked to, choose the edges, and name everything again.

    The columns are first put into an order that depends on their contents alone, so that a permuted table
    meets the same random numbers and gives the permuted answer, exactly. Knowledge, said by name, becomes tables over
    these columns in the context, which every stage obeys.
    """
    positions = table.canonical_positions()
    canonical = table.select(positions)
    known = knowledge or Knowledge()
    context = replace(context, constraints=known.consequences(canonical.names))
    ordering, evidence = order_and_edges(canonical, context, find_order, refine, find_edges)
    back = np.argsort(positions)
    return Discovery(
        order=[canonical.names[i] for i in ordering.order],
        names=table.names,
        evidence=evidence.rearranged(back),
        method=method,
        settings=dict(settings or {}),
        knowledge=known,
        seed=int(context.seed),
        n_samples=table.n_samples,
        timings=ordering.timings,
        warnings=(*table.warnings, *ordering.warnings, *evidence.warnings),
        versions=versions(),
        leaf_evidence=None if ordering.evidence is None else ordering.evidence[:, back],
        screened=ordering.screened,
        losses=ordering.losses,
        model=ordering.model,
    )


def order_and_edges(
    table: Table, context: Context, find_order: OrderStage, refine: RefineStage | None, find_edges: EdgeStage
) -> tuple[Ordering, EdgeEvidence]:
    """The three stages in turn, within what the context's constraints allow; the ordering carries all timings."""
    rules = context.rules(table.n_variables)
    timings: dict[str, float] = {}
    with _timed(timings, "order"):
        ordering = find_order(table, context)
        ordering = replace(
            ordering, order=rules.mended(ordering.order)
        )  # a stage of the caller's may not obey
    timings = dict(ordering.timings) or timings
    if refine is not None:
        with _timed(timings, "refine"):
            ordering = refine(ordering, table, context)
    with _timed(timings, "edges"):
        evidence = find_edges(ordering, table, context).settled(rules, ordering.order)
    return replace(ordering, timings=timings), evidence


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    timings[stage] = perf_counter() - start
