"""Where to put the nodes: layers by depth, neighbours near each other."""

from __future__ import annotations

import numpy as np

from diffan.dag import Dag, topological_indices


def layered(dag: Dag, sweeps: int = 8) -> list[list[int]]:
    """Nodes by layers, causes on top, each layer sorted by the mean place of its neighbours."""
    adjacency = dag.adjacency
    depth = np.zeros(dag.n_nodes, dtype=int)
    for node in topological_indices(adjacency):
        parents = np.flatnonzero(adjacency[:, node])
        depth[node] = 0 if len(parents) == 0 else depth[parents].max() + 1
    layers = [np.flatnonzero(depth == level).tolist() for level in range(depth.max() + 1)]
    linked = (adjacency + adjacency.T) > 0
    place = np.zeros(dag.n_nodes)
    for layer in layers:
        place[layer] = _spread(len(layer))
    for sweep in range(sweeps):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            layer.sort(
                key=lambda node: (
                    float(place[linked[node]].mean()) if linked[node].any() else place[node],
                    node,
                )
            )
            place[layer] = _spread(len(layer))
    return layers


def _spread(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / count
