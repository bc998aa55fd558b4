"""Lets the reference show the comments behind fields: `width: int = 256  # measured: ...` documents `width`.

A griffe extension, named in mkdocs.yml and used by `make docs` alone.
"""

from __future__ import annotations

import io
import tokenize
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """The comment on a field's own lines, or on the lines right above it, becomes its docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        in_class = isinstance(attr.parent, griffe.Class)
        if attr.docstring is not None or not in_class or attr.lineno is None or attr.endlineno is None:
            return
        lines = list(attr.lines_collection[attr.filepath])
        first = attr.lineno - 1
        while first > 0 and lines[first - 1].strip().startswith("#"):
            first -= 1
        told = comments("\n".join(line.strip() for line in lines[first : attr.endlineno]))
        if told:
            attr.docstring = griffe.Docstring(told, parent=attr)


def comments(source: str) -> str:
    """All comments of a few lines of Python, joined."""
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return " ".join(token.string.lstrip("# ").strip() for token in found if token.type == tokenize.COMMENT)
