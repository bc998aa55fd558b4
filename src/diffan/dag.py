"""A directed acyclic graph with named nodes, as a value.

A[i, j] = 1 means i -> j: rows are causes, columns are effects. It is said here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Dag:
    """An acyclic graph over named variables; building one with a cycle is refused and the cycle is named."""

    adjacency: npt.NDArray[np.int8]  # [d, d], read-only
    names: tuple[str, ...]

    def __init__(self, adjacency: npt.ArrayLike, names: Iterable[str] | None = None) -> None:
        matrix = _binary_square(adjacency)
        labels = tuple(f"x{i}" for i in range(len(matrix))) if names is None else tuple(names)
        if len(labels) != len(matrix):
            raise InputError(
                f"A graph over {len(matrix)} nodes needs {len(matrix)} names. Got {len(labels)} instead."
            )
        if len(set(labels)) != len(labels):
            repeated = sorted({name for name in labels if labels.count(name) > 1})
            raise InputError(f"Node names must be unique. Repeated: {', '.join(map(repr, repeated))}.")
        cycle = _find_cycle(matrix)
        if cycle:
            path = " -> ".join(repr(labels[i]) for i in [*cycle, cycle[0]])
            raise InputError(f"A DAG must have no cycle. Found {path}; remove one of these edges.")
        matrix.setflags(write=False)
        object.__setattr__(self, "adjacency", matrix)
        object.__setattr__(self, "names", labels)

    # ---- other forms ----------------------------------------------------------------------

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], names: Sequence[str]) -> Dag:
        """Build from (cause, effect) pairs of names."""
        index = {name: i for i, name in enumerate(names)}
        matrix = np.zeros((len(names), len(names)), dtype=np.int8)
        for cause, effect in edges:
            for name in (cause, effect):
                if name not in index:
                    raise InputError(f"Edge {cause!r} -> {effect!r} names {name!r}, which is not a node.")
            matrix[index[cause], index[effect]] = 1
        return cls(matrix, names)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> Dag:
        """Build from a networkx directed graph; its nodes keep their order, as text."""
        import networkx as nx

        if not graph.is_directed():
            raise InputError("A DAG needs a directed graph. Got an undirected networkx graph instead.")
        return cls(nx.to_numpy_array(graph, weight="") != 0, [str(node) for node in graph.nodes])

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Dag:
        """Build from a DataFrame whose rows are causes and columns are effects, both named alike."""
        rows, columns = [str(r) for r in frame.index], [str(c) for c in frame.columns]
        if rows != columns:
            if sorted(rows) != sorted(columns):
                raise InputError(
                    "An adjacency table must name the same variables in its rows and its columns."
                )
            frame = frame.set_axis(rows, axis=0).set_axis(columns, axis=1).loc[columns]
        return cls(frame.to_numpy(), columns)

    def to_networkx(self) -> nx.DiGraph:
        """The graph as networkx knows it, isolated nodes kept."""
        import networkx as nx

        graph: nx.DiGraph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(self.edges)
        return graph

    def to_frame(self) -> pd.DataFrame:
        """The adjacency as a DataFrame: rows are causes, columns are effects."""
        import pandas as pd

        return pd.DataFrame(np.array(self.adjacency), index=list(self.names), columns=list(self.names))

    # ---- questions ------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    def n_edges(self) -> int:
        return int(self.adjacency.sum())

    @property
    def edges(self) -> list[tuple[str, str]]:
        """(cause, effect) pairs of names, in row order."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(self.adjacency)]

    def index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(f"{name!r} is not a node of this graph.") from None

    def parents(self, name: str) -> list[str]:
        return [self.names[i] for i in np.flatnonzero(self.adjacency[:, self.index(name)])]

    def children(self, name: str) -> list[str]:
        return [self.names[j] for j in np.flatnonzero(self.adjacency[self.index(name)])]

    def ancestors(self, name: str) -> set[str]:
        """Every node with a directed path into `name`."""
        return self._reached(self.index(name), self.adjacency.T)

    def descendants(self, name: str) -> set[str]:
        """Every node that a directed path from `name` reaches."""
        return self._reached(self.index(name), self.adjacency)

    def topological_order(self) -> list[str]:
        """One order with causes first; among nodes that are free, the first column goes first."""
        return [self.names[i] for i in topological_indices(self.adjacency)]

    def respects(self, order: Sequence[str]) -> bool:
        """Whether every edge runs from an earlier to a later entry of `order`."""
        if sorted(order) != sorted(self.names):
            raise InputError("An order must name every node of the graph exactly once.")
        place: Mapping[str, int] = {name: k for k, name in enumerate(order)}
        return all(place[cause] < place[effect] for cause, effect in self.edges)

    def relabelled(self, positions: Sequence[int]) -> Dag:
        """The same graph with its nodes listed in another order: node positions[k] comes k-th."""
        where = np.asarray(positions)
        return Dag(self.adjacency[np.ix_(where, where)], [self.names[i] for i in where])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dag):
            return NotImplemented
        return self.names == other.names and bool(np.array_equal(self.adjacency, other.adjacency))

    def __hash__(self) -> int:
        return hash((self.names, self.adjacency.tobytes()))

    def __repr__(self) -> str:
        return f"Dag({self.n_nodes} nodes, {self.n_edges} edges)"

    def _reached(self, start: int, step: npt.NDArray[np.int8]) -> set[str]:
        seen: set[int] = set()
        frontier = [start]
        while frontier:
            for nxt in np.flatnonzero(step[frontier.pop()]).tolist():
                if nxt not in seen:
                    seen.add(nxt)
                    frontier.append(nxt)
        return {self.names[i] for i in seen}


def topological_indices(adjacency: npt.NDArray[np.int8]) -> list[int]:
    """Node indices, causes first; shorter than d exactly when there is a cycle."""
    waiting = adjacency.sum(axis=0, dtype=np.int64)
    ready = sorted(np.flatnonzero(waiting == 0).tolist(), reverse=True)
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        children = np.flatnonzero(adjacency[node])
        waiting[children] -= 1
        ready = sorted([*ready, *children[waiting[children] == 0].tolist()], reverse=True)
    return order


def _find_cycle(adjacency: npt.NDArray[np.int8]) -> list[int]:
    done = set(topological_indices(adjacency))
    left = [i for i in range(len(adjacency)) if i not in done]
    if not left:
        return []
    # Every node left by Kahn's algorithm has a parent that was left too: walk up until a node repeats.
    inside = set(left)
    path = [left[0]]
    while True:
        parent = next(i for i in np.flatnonzero(adjacency[:, path[-1]]).tolist() if i in inside)
        if parent in path:
            return path[path.index(parent) :][::-1]
        path.append(parent)


def _binary_square(adjacency: npt.ArrayLike) -> npt.NDArray[np.int8]:
    matrix = np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"An adjacency matrix must be square. Got shape {matrix.shape} instead.")
    if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
        raise InputError(
            "An adjacency matrix must hold only 0 and 1; threshold weights before building a DAG."
        )
    return matrix.astype(np.int8)
