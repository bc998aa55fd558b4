"""Names and numbers as the sentences of diagnostics put them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(items: Sequence[object], one: str, many: str) -> str:
    return f"{len(items)} {one if len(items) == 1 else many}"


def share_of(some: Sequence[str], everything: Sequence[str]) -> str:
    return f"{len(some)} of {len(everything)} variables"


def short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


def listed(names: Sequence[str]) -> str:
    return ", ".join(map(short, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def arrows(edges: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{short(a)} → {short(b)}" for a, b in edges[:4])
    return shown + (f" and {len(edges) - 4} more" if len(edges) > 4 else "")
