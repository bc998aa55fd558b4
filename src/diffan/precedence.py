"""From statements by name to tables over columns: which nodes come first, which edges are ruled out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from diffan.constraints import BoolArray, Constraints, closure, pairs_as_table

Pair = tuple[str, str]


class Statements(Protocol):
    """What was said, by name, pairs as (cause, effect); `Knowledge` is this once it has been checked."""

    @property
    def required(self) -> Sequence[Any]: ...
    @property
    def forbidden(self) -> Sequence[Any]: ...
    @property
    def tiers(self) -> Sequence[Sequence[str]]: ...
    @property
    def roots(self) -> Sequence[str]: ...
    @property
    def leaves(self) -> Sequence[str]: ...
    @property
    def required_ancestors(self) -> Sequence[Any]: ...
    @property
    def forbidden_ancestors(self) -> Sequence[Any]: ...


def constraints_of(knowledge: Statements, names: Sequence[str]) -> Constraints:
    """The tables of knowledge that is free of contradictions and names only these columns."""
    d = len(names)
    at = {name: i for i, name in enumerate(names)}

    def table(pairs: Iterable[Pair]) -> BoolArray:
        return pairs_as_table(((at[cause], at[effect]) for cause, effect in pairs), d)

    required, ancestors = table(knowledge.required), table(knowledge.required_ancestors)
    not_ancestors = table(knowledge.forbidden_ancestors)
    roots, leaves = [at[name] for name in knowledge.roots], [at[name] for name in knowledge.leaves]
    forbidden = table(knowledge.forbidden) | not_ancestors
    forbidden[:, roots] = True
    forbidden[leaves] = True
    certain = closure(required | ancestors | table(tier_pairs(knowledge.tiers)))
    precede = with_non_ancestors_first(certain, ~forbidden, not_ancestors)
    precede = with_roots_early(precede, roots)
    precede = with_roots_early(precede.T, leaves).T  # a leaf is a root of the reversed order
    return Constraints(precede, required, forbidden, ancestors, not_ancestors)


def tier_pairs(tiers: Sequence[Sequence[str]]) -> list[Pair]:
    """(earlier, later) for neighbouring tiers that are not empty; the rest follows."""
    filled = [tier for tier in tiers if tier]
    return [(first, second) for early, late in pairwise(filled) for first in early for second in late]


def with_roots_early(precede: BoolArray, roots: Sequence[int]) -> BoolArray:
    """A root comes before every other node, except those that come after less than the root itself must.

    Of a graph in which r is a root, r can be moved up in any order as far as the nodes that have to precede it. So r
    may be put before j when all of these have to precede j too; otherwise j may have to come before one of them.
    """
    others = np.ones(len(precede), dtype=np.bool_)
    others[roots] = False
    found = precede.copy()
    for root in roots:
        bound_by_as_much = ~(precede[:, [root]] & ~precede).any(axis=0)
        found[root] |= bound_by_as_much & others
    return closure(found)


def with_non_ancestors_first(precede: BoolArray, permitted: BoolArray, not_ancestors: BoolArray) -> BoolArray:
    """Where a may not be an ancestor of b, b comes first, unless that could contradict a graph that obeys all.

    Not being an ancestor is not transitive: with a no ancestor of b and b none of c, a may still cause c, and then
    b before a and c before b cannot both be asked for. Asking b before a closes a loop with a graph, what precedes
    in it, and other such demands only if a could come before b through them; each demand is added only if no such
    loop is possible.
    """
    itself = np.eye(len(precede), dtype=np.bool_)
    ancestry = closure(permitted & ~precede.T & ~itself) & ~precede.T & ~not_ancestors & ~itself
    after_certain = closure(_joined(precede, ancestry | itself))
    before = ancestry | _joined(ancestry | itself, after_certain)  # [i, j]: i may have to come before j
    demands: list[tuple[int, int]] = []
    for late, early in np.argwhere(not_ancestors):
        if not _loops([*demands, (int(early), int(late))], before | itself):
            demands.append((int(early), int(late)))
    return closure(precede | pairs_as_table(demands, len(precede)))


def _loops(demands: Sequence[tuple[int, int]], before: BoolArray) -> bool:
    """Whether a chain of demands could come back to its start: one ends where the next may have to begin."""
    first, second = np.array(demands).T
    follows = before[np.ix_(second, first)]
    return bool(np.diag(closure(follows)).any())


def _joined(one: BoolArray, other: BoolArray) -> BoolArray:
    """i is related to j when some middle is related to both."""
    joined: BoolArray = (one.astype(np.float32) @ other.astype(np.float32)) > 0
    return joined
