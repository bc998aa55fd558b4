"""How far an estimated graph, or an order, is from the truth.

Graphs may be given as Dag, named DataFrame, networkx DiGraph or square 0/1 array; rows cause columns. When both have
names they are matched by name, otherwise by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Union, cast

import numpy as np
import numpy.typing as npt

from diffan.dag import Dag
from diffan.errors import FitError, InputError

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

GraphLike: TypeAlias = Union[Dag, "pd.DataFrame", "nx.DiGraph", npt.ArrayLike]
Edges = npt.NDArray[np.bool_]  # [d, d]


class EdgeErrors(NamedTuple):
    """The pairs of nodes on which two graphs differ, by kind."""

    missing: int  # joined in the truth only
    extra: int  # joined in the estimate only
    reversed: int  # joined in both, the other way round


class EdgeScores(NamedTuple):
    """Precision is 1 when nothing is estimated, recall is 1 when there is nothing to find."""

    precision: float
    recall: float
    f1: float


def shd(truth: GraphLike, estimate: GraphLike) -> int:
    """Structural Hamming distance: edges to add, remove or turn around; a reversed edge counts once."""
    return sum(edge_errors(truth, estimate))


def sid(truth: GraphLike, estimate: GraphLike) -> int:
    """Structural intervention distance (Peters and Buhlmann, 2015), computed by gadjid.

    The number of ordered pairs (i, j) whose effect of i on j comes out wrong when the estimated parents of i are
    adjusted for.
    """
    true_dag, estimated = aligned(truth, estimate)
    if true_dag.n_nodes < 2:
        return 0  # there is no pair, and gadjid panics
    try:
        import gadjid
    except ImportError:
        raise FitError("SID needs the package gadjid; install it with 'pip install gadjid'.") from None
    true_edges, estimated_edges = (np.array(dag.adjacency, dtype=np.int8) for dag in (true_dag, estimated))
    _, mistakes = gadjid.sid(true_edges, estimated_edges, edge_direction="from row to column")
    return int(mistakes)


def order_divergence(truth: GraphLike, order: Sequence[str] | Sequence[int] | npt.NDArray) -> int:
    """D_top of the paper: how many true edges run against `order` (names, or column indices; causes first).

    No pruning can recover these edges, so it bounds the SHD from below.
    """
    dag, _ = as_dag(truth)
    place = np.empty(dag.n_nodes, dtype=np.int64)
    place[_order_indices(dag, order)] = np.arange(dag.n_nodes)
    causes, effects = np.nonzero(dag.adjacency)
    return int(np.sum(place[causes] > place[effects]))


def edge_errors(truth: GraphLike, estimate: GraphLike) -> EdgeErrors:
    """Missing, extra and reversed edges; their sum is the SHD."""
    true_edges, estimated = _edges(truth, estimate)
    true_pairs, estimated_pairs = true_edges | true_edges.T, estimated | estimated.T
    return EdgeErrors(
        missing=int(np.sum(true_pairs & ~estimated_pairs)) // 2,
        extra=int(np.sum(estimated_pairs & ~true_pairs)) // 2,
        reversed=int(np.sum(true_edges & estimated.T)),
    )


def edge_scores(truth: GraphLike, estimate: GraphLike) -> EdgeScores:
    """Precision, recall and F1 of the directed edges."""
    return _scores(*_edges(truth, estimate))


def skeleton_scores(truth: GraphLike, estimate: GraphLike) -> EdgeScores:
    """Precision, recall and F1 of the joined pairs, whichever way they point."""
    true_edges, estimated = _edges(truth, estimate)
    return _scores(np.triu(true_edges | true_edges.T), np.triu(estimated | estimated.T))


def evaluate(
    truth: GraphLike,
    estimate: GraphLike,
    order: Sequence[str] | Sequence[int] | npt.NDArray | None = None,
    *,
    include_sid: bool = True,
) -> dict[str, int | float]:
    """Every metric at once; `order_divergence` only when an order is given, `sid` unless told to leave it."""
    true_dag, estimated = aligned(truth, estimate)
    errors = edge_errors(true_dag, estimated)
    edges, skeleton = edge_scores(true_dag, estimated), skeleton_scores(true_dag, estimated)
    report: dict[str, int | float] = {"shd": sum(errors)}
    if include_sid:
        report["sid"] = sid(true_dag, estimated)
    if order is not None:
        report["order_divergence"] = order_divergence(true_dag, order)
    report |= errors._asdict() | edges._asdict()
    report |= {f"skeleton_{name}": value for name, value in skeleton._asdict().items()}
    return report | {"true_edges": true_dag.n_edges, "estimated_edges": estimated.n_edges}


def aligned(truth: GraphLike, estimate: GraphLike) -> tuple[Dag, Dag]:
    """Both graphs with their nodes in the truth's order; refused when they are not over the same nodes."""
    (true_dag, true_named), (estimated, estimate_named) = as_dag(truth), as_dag(estimate)
    if true_dag.n_nodes != estimated.n_nodes:
        raise InputError(
            f"Both graphs must have the same nodes. The truth has {true_dag.n_nodes}, "
            f"the estimate {estimated.n_nodes}."
        )
    if not (true_named and estimate_named) or true_dag.names == estimated.names:
        return true_dag, estimated
    strangers = sorted(set(true_dag.names) ^ set(estimated.names))
    if strangers:
        raise InputError(
            "Both graphs must name the same nodes. In one of them only: "
            f"{', '.join(map(repr, strangers[:6]))}{', ...' if len(strangers) > 6 else ''}."
        )
    return true_dag, estimated.relabelled([estimated.index(name) for name in true_dag.names])


def as_dag(graph: GraphLike) -> tuple[Dag, bool]:
    """Read any accepted form as a Dag, and say whether its names mean anything (an array has none)."""
    if isinstance(graph, Dag):
        return graph, True
    if hasattr(graph, "columns"):
        return Dag.from_frame(cast("pd.DataFrame", graph)), True
    if hasattr(graph, "is_directed"):
        return Dag.from_networkx(cast("nx.DiGraph", graph)), True
    return Dag(graph), False


def _edges(truth: GraphLike, estimate: GraphLike) -> tuple[Edges, Edges]:
    true_dag, estimated = aligned(truth, estimate)
    return true_dag.adjacency.astype(bool), estimated.adjacency.astype(bool)


def _scores(true_edges: Edges, estimated: Edges) -> EdgeScores:
    found = int(np.sum(true_edges & estimated))
    claimed, existing = int(estimated.sum()), int(true_edges.sum())
    return EdgeScores(
        precision=found / claimed if claimed else 1.0,
        recall=found / existing if existing else 1.0,
        f1=2 * found / (claimed + existing) if claimed + existing else 1.0,
    )


def _order_indices(dag: Dag, order: Sequence[str] | Sequence[int] | npt.NDArray) -> list[int]:
    entries = list(order)
    by_position = all(isinstance(entry, (int, np.integer)) for entry in entries)
    indices = (
        [int(entry) for entry in entries] if by_position else [dag.index(str(entry)) for entry in entries]
    )
    if sorted(indices) != list(range(dag.n_nodes)):
        raise InputError(
            f"An order must hold each of the {dag.n_nodes} nodes exactly once, as names or as indices from 0. "
            f"Got {len(indices)} entries, {len(set(indices))} of them distinct."
        )
    return indices
