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
    meets the same random numbers and gives the permuted answer, exactly. Knowledge, said by name, becomes tables
    over these columns in the context; every stage obeys them, and the graph is settled by them at the end.
    """
    timings: dict[str, float] = {}
    positions = table.canonical_positions()
    canonical = table.select(positions)
    rules = (knowledge or Knowledge()).consequences(canonical.names)
    context = replace(context, constraints=rules)
    with _timed(timings, "order"):
        ordering = find_order(canonical, context)
        ordering = replace(
            ordering, order=rules.mended(ordering.order)
        )  # a stage of the caller's may not obey
    if ordering.timings:
        timings = dict(ordering.timings)
    if refine is not None:
        with _timed(timings, "refine"):
            ordering = refine(ordering, canonical, context)
    with _timed(timings, "edges"):
        evidence = find_edges(ordering, canonical, context).settled(rules, ordering.order)
    back = np.argsort(positions)
    return Discovery(
        order=[canonical.names[i] for i in ordering.order],
        names=table.names,
        evidence=_rearranged(evidence, back),
        method=method,
        settings=dict(settings or {}),
        knowledge=knowledge or Knowledge(),
        seed=int(context.seed),
        n_samples=table.n_samples,
        timings=timings,
        warnings=(*table.warnings, *ordering.warnings, *evidence.warnings),
        versions=versions(),
        leaf_evidence=None if ordering.evidence is None else ordering.evidence[:, back],
        losses=ordering.losses,
        model=ordering.model,
    )


def _rearranged(evidence: EdgeEvidence, back: npt.NDArray[np.intp]) -> EdgeEvidence:
    cells = np.ix_(back, back)
    return replace(
        evidence,
        p_values=evidence.p_values[cells],
        tested=evidence.tested[cells],
        chosen=evidence.chosen[cells],
        measures={name: values[cells] for name, values in evidence.measures.items()},
    )


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    timings[stage] = perf_counter() - start
