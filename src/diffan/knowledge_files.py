"""Knowledge on disk: a TOML file whose keys are the kinds of statements, or a text file with one on each line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diffan.errors import InputError

WORDS = {
    "require": "required",
    "forbid": "forbidden",
    "ancestor": "required_ancestors",
    "not-ancestor": "forbidden_ancestors",
    "tier": "tiers",
    "root": "roots",
    "leaf": "leaves",
}
_BY_COMMAS = ("tiers", "roots", "leaves")


def read_statements(file: str | os.PathLike[str]) -> dict[str, Any]:
    """The statements of a file by their kinds; a name ending in .toml is read as TOML, any other as lines."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(
            f"The knowledge in {str(path)!r} cannot be read: {reason}; check the path."
        ) from None
    read: Callable[[str], dict[str, Any]] = (
        _parse_toml if path.suffix.lower() == ".toml" else parse_statements
    )
    try:
        return read(text)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from None


def parse_statements(text: str) -> dict[str, Any]:
    """Lines such as `require a -> b` or `tier a, b`; everything after a # is a remark."""
    found: dict[str, list[Any]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition("#")[0].strip()
        if not said:
            continue
        word, _, rest = said.partition(" ")
        if word not in WORDS or not rest.strip():
            expected = ", ".join(WORDS)
            raise InputError(
                f"Line {number} must begin with one of {expected} and name variables after it. Got {said!r} instead."
            )
        kind = WORDS[word]
        names = [name.strip() for name in rest.split(",")]
        if kind == "tiers":
            found.setdefault(kind, []).append(names)
        else:
            found.setdefault(kind, []).extend(names if kind in _BY_COMMAS else [rest.strip()])
    return found


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"This is not TOML ({error}); see the TOML form in docs/knowledge.md.") from None
