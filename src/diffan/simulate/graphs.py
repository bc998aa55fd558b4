"""Random DAGs: Erdos-Renyi with an exact number of edges, and scale-free."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from diffan.context import Context
from diffan.dag import Dag
from diffan.errors import InputError

GraphKind = Literal["er", "sf"]


def random_dag(n_nodes: int, n_edges: int, graph: GraphKind = "er", seed: int = 0) -> Dag:
    """Draw a DAG over the nodes x0, x1, ..., whose labels say nothing about its order.

    "er" has exactly `n_edges` edges, drawn uniformly among the pairs that a random order allows; at most
    d(d-1)/2 for d nodes.

    "sf" is the benchmark's Barabasi-Albert graph: nodes arrive one by one and each joins k = n_edges / d
    earlier ones, chosen with probability proportional to their degree; a random order, unrelated to
    the arrivals, then directs every edge. The first k arrivals find fewer than k nodes to join, so k d
    edges asked for give k d - k(k+1)/2: 19 for d = 20 and k = 1, 85 for k = 5. When d does not divide
    `n_edges`, every node joins floor(n_edges / d) others and the remainder falls, one edge each, on random
    nodes; fewer edges than nodes give a forest with exactly `n_edges` edges.
    """
    kind = graph.lower() if isinstance(graph, str) else graph
    _check_counts(n_nodes, n_edges)
    rng = Context(seed=seed).rng(f"graph {kind}")
    if kind == "er":
        skeleton = _uniform_pairs(n_nodes, n_edges, rng)
    elif kind == "sf":
        grown = grow_scale_free(n_nodes, n_edges, rng)
        shuffled = rng.permutation(n_nodes)
        undirected = (grown | grown.T)[np.ix_(shuffled, shuffled)]
        skeleton = np.triu(undirected, k=1)
    else:
        raise InputError(f"The 'graph' parameter must be 'er' or 'sf'. Got {graph!r} instead.")
    labels = rng.permutation(n_nodes)
    return Dag(skeleton[np.ix_(labels, labels)])


def grow_scale_free(n_nodes: int, n_edges: int, rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """Grow a graph by preferential attachment; [i, j] = 1 when the later node j joined the earlier node i."""
    most = n_nodes * (n_nodes - 1)
    if n_edges > most:
        raise InputError(
            f"A scale-free graph over {n_nodes} nodes is complete with 'n_edges' at {most}, the most it takes. "
            f"Got {n_edges} instead."
        )
    joined = np.zeros((n_nodes, n_nodes), dtype=np.int8)
    degree = np.zeros(n_nodes, dtype=np.int64)
    for node, quota in enumerate(_attachments(n_nodes, n_edges, rng)):
        if quota == 0:
            continue
        appeal = np.maximum(degree[:node], 1).astype(float)  # a node without edges yet can still be found
        targets = rng.choice(node, size=quota, replace=False, p=appeal / appeal.sum())
        joined[targets, node] = 1
        degree[targets] += 1
        degree[node] = quota
    return joined


def _attachments(n_nodes: int, n_edges: int, rng: np.random.Generator) -> list[int]:
    """How many earlier nodes each arrival joins."""
    each, remainder = divmod(n_edges, n_nodes)
    quotas = np.minimum(np.arange(n_nodes), each)
    with_room = np.arange(each + 1, n_nodes)  # arrivals that find more than `each` nodes
    extra = rng.choice(with_room, size=min(remainder, len(with_room)), replace=False)
    quotas[extra] += 1
    return [int(quota) for quota in quotas]


def _uniform_pairs(n_nodes: int, n_edges: int, rng: np.random.Generator) -> npt.NDArray[np.int8]:
    rows, columns = np.triu_indices(n_nodes, k=1)
    if n_edges > len(rows):
        raise InputError(
            f"A DAG over {n_nodes} nodes has at most {len(rows)} edges. Got {n_edges} for 'n_edges' instead."
        )
    chosen = rng.choice(len(rows), size=n_edges, replace=False)
    upper = np.zeros((n_nodes, n_nodes), dtype=np.int8)
    upper[rows[chosen], columns[chosen]] = 1
    return upper


def _check_counts(n_nodes: int, n_edges: int) -> None:
    for name, value, least in (("n_nodes", n_nodes, 1), ("n_edges", n_edges, 0)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < least:
            raise InputError(
                f"The '{name}' parameter must be a whole number of {least} or more. Got {value!r} instead."
            )
