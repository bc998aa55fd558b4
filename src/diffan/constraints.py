"""What an order and a graph must obey, as yes-or-no tables over column positions, and the ways to obey it.

`Knowledge` speaks of names; here are the consequences for one table. Every stage reads them from its context: the
order stage takes leaves only from `leaves_among`, the edge stage considers `permitted` edges and always conditions on
`required` ones, and `settled_edges` has the last word on the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Constraints:
    """All tables are [d, d]; entry [i, j] speaks of i as a cause of j, or of i coming before j."""

    must_precede: BoolArray  # transitively closed, without a cycle
    required: BoolArray  # edges that are in the graph
    forbidden: BoolArray  # edges that are not
    ancestors: BoolArray  # i has a directed path to j
    not_ancestors: BoolArray  # i has none

    @classmethod
    def none(cls, n_nodes: int) -> Constraints:
        """Nothing is known."""
        empty = np.zeros((n_nodes, n_nodes), dtype=np.bool_)
        return cls(empty, empty, empty, empty, empty)

    @cached_property
    def permitted(self) -> BoolArray:
        """Edges that are neither forbidden nor against a precedence."""
        permitted: BoolArray = ~(
            self.forbidden | self.must_precede.T | np.eye(len(self.required), dtype=np.bool_)
        )
        return permitted

    def parents(self, node: int) -> frozenset[int]:
        """The required parents of a node."""
        return frozenset(np.flatnonzero(self.required[:, node]).tolist())

    def leaves_among(self, remaining: Sequence[int]) -> list[int]:
        """The nodes that may be taken as the leaf of those remaining: none of the others has to follow them."""
        nodes = list(remaining)
        free = ~self.must_precede[np.ix_(nodes, nodes)].any(axis=1)
        return [nodes[k] for k in np.flatnonzero(free)]

    def mended(self, order: Sequence[int]) -> list[int]:
        """The order itself where it obeys; else its last free node is put last, then the last free one of the rest."""
        if not self.must_precede.any():
            return list(order)
        remaining, behind = list(order), list[int]()
        while remaining:
            leaf = self.leaves_among(remaining)[-1]
            remaining.remove(leaf)
            behind.append(leaf)
        return behind[::-1]

    def candidates(self, considered: BoolArray, along: Sequence[int]) -> BoolArray:
        """Edges along the order that may be considered: the permitted ones of these, and the required ones always."""
        return ((considered & self.permitted) | self.required) & earlier(along)

    def strongest_dag(self, strength: FloatArray) -> BoolArray:
        """Take edges from the strongest down, required ones first, and leave out each that would close a cycle."""
        d = len(strength)
        dag = self.required.copy()
        reaches = np.eye(d, dtype=np.bool_) | self.must_precede
        for place in np.argsort(-strength, axis=None, kind="stable"):
            cause, effect = divmod(int(place), d)
            if strength[cause, effect] <= 0:
                break
            if self.permitted[cause, effect] and not reaches[effect, cause]:
                dag[cause, effect] = True
                reaches |= np.outer(reaches[:, cause], reaches[effect])
        return dag

    def settled_edges(self, chosen: BoolArray, p_values: FloatArray, order: Sequence[int]) -> BoolArray:
        """The chosen edges, changed as little as the knowledge demands.

        Forbidden edges go and required ones come. Where the order alone does not keep apart two nodes of which one
        may not be an ancestor of the other, edges are taken from the strongest down and one that would join them is
        left out. A required ancestor without a path gets the one edge with the smallest p-value that makes one.
        """
        cells = np.ix_(order, order)  # along the order, so that the columns' own places never matter
        settled = np.zeros_like(chosen)
        settled[cells] = _Settling(
            p_values=p_values[cells],
            permitted=np.triu(~self.forbidden[cells], k=1),
            required=self.required[cells],
            ancestors=self.ancestors[cells],
            not_ancestors=self.not_ancestors[cells],
        ).settle(chosen[cells])
        return settled


@dataclass(frozen=True, eq=False)
class _Settling:
    """The last word on the edges, over nodes numbered along the order."""

    p_values: FloatArray
    permitted: BoolArray
    required: BoolArray
    ancestors: BoolArray
    not_ancestors: BoolArray

    def settle(self, chosen: BoolArray) -> BoolArray:
        edges: BoolArray = (chosen & self.permitted) | self.required
        if self.not_ancestors.any():
            edges = self._kept_apart(edges)
        for ancestor, node in np.argwhere(self.ancestors & self.permitted):  # the others follow from these
            joins = self._joining_edge(int(ancestor), int(node), edges)
            if joins is not None:
                edges[joins] = True
        return edges

    def _kept_apart(self, edges: BoolArray) -> BoolArray:
        """Without the weakest edges that would make a forbidden ancestor; promised paths count as there."""
        kept = self.required.copy()
        reaches = _reach(self.required | self.ancestors)
        for edge in self._strongest_first(edges & ~self.required):
            joined = np.outer(reaches[:, edge[0]], reaches[edge[1]])
            if not (joined & self.not_ancestors).any():
                kept[edge] = True
                reaches |= joined
        return kept

    def _joining_edge(self, ancestor: int, node: int, edges: BoolArray) -> tuple[int, int] | None:
        """The edge with the smallest p-value that makes a path between the two; None when there is one already.

        The direct edge can always be taken: what it joins was promised from the start.
        """
        reaches, promised = _reach(edges), _reach(edges | self.ancestors)
        if reaches[ancestor, node]:
            return None
        joining = self.permitted & np.outer(reaches[ancestor], reaches[:, node])
        return next(
            (i, j)
            for i, j in self._strongest_first(joining, but_first=(ancestor, node))
            if not (np.outer(promised[:, i], promised[j]) & self.not_ancestors).any()
        )

    def _strongest_first(
        self, edges: BoolArray, but_first: tuple[int, int] | None = None
    ) -> list[tuple[int, int]]:
        found = [(int(i), int(j)) for i, j in np.argwhere(edges)]
        return sorted(found, key=lambda edge: (self.p_values[edge], edge != but_first, edge))


def earlier(order: Sequence[int]) -> BoolArray:
    """[i, j] is true when i comes before j in the order."""
    place = np.argsort(np.asarray(order))
    before: BoolArray = place[:, None] < place[None, :]
    return before


def closure(relation: BoolArray) -> BoolArray:
    """The transitive closure of a relation: [i, j] when some chain leads from i to j."""
    reached = relation.copy()
    for middle in range(len(reached)):
        reached |= np.outer(reached[:, middle], reached[middle])
    return reached


def _reach(edges: BoolArray) -> BoolArray:
    """[i, j] when j is i or can be reached from it."""
    return closure(edges) | np.eye(len(edges), dtype=np.bool_)


def pairs_as_table(pairs: Iterable[tuple[int, int]], n_nodes: int) -> BoolArray:
    """The relation that holds for these pairs."""
    table = np.zeros((n_nodes, n_nodes), dtype=np.bool_)
    for i, j in pairs:
        table[i, j] = True
    return table
