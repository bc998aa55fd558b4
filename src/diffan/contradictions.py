"""Statements that cannot all be true are refused, with the chain of those that clash."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from diffan.errors import InputError
from diffan.precedence import Pair, Statements, tier_pairs

Links = dict[str, dict[str, str]]
"""From a name to those that come after it, each with the statement that says so."""


def refuse_contradictions(knowledge: Statements) -> None:
    """Raise for a name in two tiers, a cycle, and any statement ruled out by others."""
    _refuse_two_tiers(knowledge)
    paths = _links(_path_statements(knowledge))
    tiers = _links((pair, _tier_sentence(knowledge, pair)) for pair in tier_pairs(knowledge.tiers))
    _refuse_cycle({name: {**tiers.get(name, {}), **paths.get(name, {})} for name in [*paths, *tiers]})
    barred = _barred(knowledge)
    for pair in knowledge.required:
        if pair in barred:
            raise _clash([f"{_arrow(pair)} is required", barred[pair]])
        for end, side in ((pair[1], "roots"), (pair[0], "leaves")):
            if end in getattr(knowledge, side):
                raise _clash([f"{_arrow(pair)} is required", _end_sentence(end, side)])
    for pair in knowledge.forbidden_ancestors:
        chain = _chain(paths, *pair)
        if chain:
            raise _clash([*chain, f"{pair[0]!r} may not be an ancestor of {pair[1]!r}"])
    _refuse_ancestor_without_a_way(knowledge, barred)


def _refuse_ancestor_without_a_way(knowledge: Statements, barred: dict[Pair, str]) -> None:
    """A required ancestor needs its direct edge as the last resort, or a chain of other required pairs."""
    open_ways = [pair for pair in knowledge.required_ancestors if pair not in barred]
    steps = _links((pair, "") for pair in [*knowledge.required, *open_ways])
    for pair in knowledge.required_ancestors:
        said = f"{pair[0]!r} is a required ancestor of {pair[1]!r}"
        for end, side in ((pair[1], "roots"), (pair[0], "leaves")):
            if end in getattr(knowledge, side):
                raise _clash([said, _end_sentence(end, side)])
        if pair in barred and not _chain(steps, *pair):
            raise InputError(
                f"{said}, but {barred[pair]}: say through which variables it acts, by required edges or ancestors "
                f"that lead from {pair[0]!r} to {pair[1]!r}."
            )


def _path_statements(knowledge: Statements) -> list[tuple[Pair, str]]:
    edges = [(pair, f"{_arrow(pair)} is required") for pair in knowledge.required]
    return [
        (pair, f"{pair[0]!r} is a required ancestor of {pair[1]!r}") for pair in knowledge.required_ancestors
    ] + edges


def _barred(knowledge: Statements) -> dict[Pair, str]:
    return {pair: f"{_arrow(pair)} is forbidden" for pair in knowledge.forbidden}


def _refuse_two_tiers(knowledge: Statements) -> None:
    home: dict[str, int] = {}
    for number, tier in enumerate(knowledge.tiers, 1):
        for name in tier:
            if name in home:
                raise _clash([f"{name!r} is in tier {home[name]}", f"{name!r} is in tier {number}"])
            home[name] = number


def _tier_sentence(knowledge: Statements, pair: Pair) -> str:
    home = {name: number for number, tier in enumerate(knowledge.tiers, 1) for name in tier}
    return f"{pair[0]!r} is in tier {home[pair[0]]} and {pair[1]!r} in tier {home[pair[1]]}"


def _end_sentence(name: str, side: str) -> str:
    return f"{name!r} is a {'root' if side == 'roots' else 'leaf'}"


def _links(statements: Iterable[tuple[Pair, str]]) -> Links:
    found: Links = {}
    for (first, second), sentence in statements:
        found.setdefault(first, {})[second] = sentence
    return found


def _refuse_cycle(links: Links) -> None:
    for name in links:
        chain = _chain(links, name, name)
        if chain:
            raise _clash(chain)


def _chain(links: Links, start: str, end: str) -> list[str]:
    """The statements of a shortest chain from one name to another, empty when there is none."""
    waiting: deque[tuple[str, list[str]]] = deque([(start, [])])
    seen: set[str] = set()
    while waiting:
        name, said = waiting.popleft()
        for following, sentence in links.get(name, {}).items():
            if following == end:
                return [*said, sentence]
            if following not in seen:
                seen.add(following)
                waiting.append((following, [*said, sentence]))
    return []


def _arrow(pair: Pair) -> str:
    return f"{pair[0]!r} -> {pair[1]!r}"


def _clash(statements: list[str]) -> InputError:
    return InputError(f"The knowledge contradicts itself: {'; '.join(statements)}. Drop one of these.")
