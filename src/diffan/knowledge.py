"""What the user already knows about the graph: said by name, checked for contradictions, held as a guarantee.

A statement is about the graph, and every one of them is a hard constraint: no method, replicate or cutoff gives a
graph that breaks one. `consequences` turns the statements into tables for one set of columns. Precedences follow from
required edges, required ancestors and tiers. Roots, leaves and forbidden ancestors say nothing certain about the
order, but every graph that obeys them has an order with the roots early, the leaves late and a forbidden ancestor
after the node it must not reach; such a precedence is added where no true graph could be lost by it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from diffan.constraints import Constraints
from diffan.contradictions import refuse_contradictions
from diffan.errors import InputError
from diffan.knowledge_files import parse_statements, read_statements
from diffan.precedence import Pair, constraints_of

PAIRS = ("required", "forbidden", "required_ancestors", "forbidden_ancestors")
NAMES = ("roots", "leaves")
KINDS = ("required", "forbidden", "tiers", "roots", "leaves", "required_ancestors", "forbidden_ancestors")
ARROW = "->"


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Statements about the graph; pairs are (cause, effect), or texts such as "a -> b", and are kept as tuples.

    `required` and `forbidden` are edges; `tiers` lists groups of variables, earlier ones first, where nothing in a
    later tier causes anything in an earlier one, directly or not; `roots` have no causes and `leaves` no effects in the
    table; `required_ancestors` (a, b) asks for a directed path from a to b, `forbidden_ancestors` rules one out.
    """

    required: Sequence[Pair | str] = ()
    forbidden: Sequence[Pair | str] = ()
    tiers: Sequence[Sequence[str]] = ()
    roots: Sequence[str] = ()
    leaves: Sequence[str] = ()
    required_ancestors: Sequence[Pair | str] = ()
    forbidden_ancestors: Sequence[Pair | str] = ()

    def __post_init__(self) -> None:
        for kind in PAIRS:
            object.__setattr__(
                self, kind, _unique(_pair(kind, p) for p in _listed(kind, getattr(self, kind)))
            )
        for kind in NAMES:
            object.__setattr__(
                self, kind, _unique(_name(kind, n) for n in _listed(kind, getattr(self, kind)))
            )
        tiers = [
            _unique(_name("tiers", n) for n in _listed("tiers", t)) for t in _listed("tiers", self.tiers)
        ]
        object.__setattr__(self, "tiers", tuple(tiers))
        refuse_contradictions(self)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Knowledge:
        """From a TOML file whose keys are the fields' names, or a text file with a statement on each line."""
        return cls.from_record(read_statements(file))

    @classmethod
    def parse(cls, text: str) -> Knowledge:
        """From statements such as `require a -> b`, `forbid a -> b`, `tier a, b`, `root a`, one on each line."""
        return cls.from_record(parse_statements(text))

    @classmethod
    def of(cls, given: Any) -> Knowledge:
        """Knowledge itself, a mapping of its fields, the path of a file, or None for nothing."""
        if isinstance(given, Knowledge):
            return given
        if given is None:
            return cls()
        if isinstance(given, Mapping):
            return cls.from_record(given)
        if isinstance(given, (str, os.PathLike)):
            return cls.read(given)
        raise InputError(
            "The 'knowledge' parameter must be a diffan.Knowledge, a mapping of its fields or the path of a file. "
            f"Got {type(given).__name__} instead."
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Knowledge:
        """From plain lists by the fields' names, as in a TOML file or a saved run."""
        for key in record:
            if key not in KINDS:
                raise InputError(f"Knowledge has no {key!r}; {_nearest(key, KINDS)}")
        return cls(**record)

    def record(self) -> dict[str, Any]:
        """Plain lists by the fields' names, empty ones left out."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            kind: [list(s) if isinstance(s, tuple) else s for s in said]
            for kind, said in found.items()
            if said
        }

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in KINDS)

    def __or__(self, other: Knowledge) -> Knowledge:
        """What both say together; tiers can come from one of them only."""
        if self.tiers and other.tiers and self.tiers != other.tiers:
            raise InputError("Tiers were given twice and differently; give one list of tiers.")
        joined = {kind: (*getattr(self, kind), *getattr(other, kind)) for kind in PAIRS + NAMES}
        return Knowledge(tiers=self.tiers or other.tiers, **joined)

    def variables(self) -> list[str]:
        """Every name that is spoken of, in the order of the statements."""
        named: list[str] = []
        for kind in KINDS:
            for said in getattr(self, kind):
                named += [said] if isinstance(said, str) else said
        return list(dict.fromkeys(named))

    def refuse_unknown(self, names: Sequence[str]) -> None:
        """Raise for a name that is no column, with the nearest one."""
        for name in self.variables():
            if name not in names:
                raise InputError(f"The knowledge names {name!r}, which is no column; {_nearest(name, names)}")

    def consequences(self, names: Sequence[str]) -> Constraints:
        """The tables for columns of these names."""
        self.refuse_unknown(names)
        return constraints_of(self, names)


def _listed(kind: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"Knowledge's {kind!r} must be a list. Got {given!r} instead.")
    return list(given)


def _pair(kind: str, given: Any) -> Pair:
    parts = (
        given.split(ARROW) if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    )
    if len(parts) != 2:
        raise InputError(
            f"Knowledge's {kind!r} takes pairs such as ('a', 'b') or 'a -> b'. Got {given!r} instead."
        )
    cause, effect = (_name(kind, part.strip() if isinstance(given, str) else part) for part in parts)
    if cause == effect:
        raise InputError(
            f"Knowledge's {kind!r} joins {cause!r} with itself; a variable is no cause of its own."
        )
    return cause, effect


def _name(kind: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise InputError(f"Knowledge's {kind!r} takes names of columns. Got {given!r} instead.")
    return given


def _unique(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


def _nearest(name: str, known: Sequence[str]) -> str:
    plain = {other.lower(): other for other in reversed(known)}
    near = difflib.get_close_matches(name.lower(), plain, n=1)
    if near:
        return f"did you mean {plain[near[0]]!r}?"
    return f"the names are {', '.join(map(repr, known[:8]))}{' and more' if len(known) > 8 else ''}."
