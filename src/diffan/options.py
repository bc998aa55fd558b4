"""From keyword options to checked settings: a misspelt or misplaced option is an error that helps."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from diffan.errors import InputError

S = TypeVar("S")


def apply(options: Mapping[str, Any], *bases: Any, what: str) -> list[Any]:
    """Replace fields of the settings `bases` (nested ones too) by the options that bear their names."""
    known = {name for base in bases for name in field_names(base)}
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, sorted(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}."
            raise InputError(f"{what} has no option {option!r}; {hint}")
    return [_replaced(base, options) for base in bases]


def field_names(settings: Any) -> list[str]:
    """The names of all leaf fields, nested settings opened."""
    names: list[str] = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        names += field_names(value) if dataclasses.is_dataclass(value) else [field.name]
    return names


def as_record(*settings: Any) -> dict[str, Any]:
    """All leaf fields as plain values, for the saved result."""
    record: dict[str, Any] = {}
    for one in settings:
        for field in dataclasses.fields(one):
            value = getattr(one, field.name)
            if dataclasses.is_dataclass(value):
                record.update(as_record(value))
            else:
                record[field.name] = list(value) if isinstance(value, tuple) else value
    return record


def _replaced(base: S, options: Mapping[str, Any]) -> S:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(base):  # type: ignore[arg-type]
        value = getattr(base, field.name)
        if dataclasses.is_dataclass(value):
            changes[field.name] = _replaced(value, options)
        elif field.name in options:
            given = options[field.name]
            changes[field.name] = tuple(given) if isinstance(given, list) else given
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]
