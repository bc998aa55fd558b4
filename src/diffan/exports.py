"""The graph in the languages of other tools."""

from __future__ import annotations

import re

from diffan.discovery import Discovery

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_dot(result: Discovery) -> str:
    """Graphviz DOT; names are quoted, the p-value is the edge's tooltip."""
    lines = ["digraph causes {", "  node [shape=box, style=rounded];"]
    lines += [f"  {_dot_quoted(name)};" for name in result.names]
    for (cause, effect), facts in result.edge_facts().items():
        tip = f'tooltip="p = {facts["p_value"]:.3g}"' if "p_value" in facts else ""
        lines.append(f"  {_dot_quoted(cause)} -> {_dot_quoted(effect)} [{tip}];")
    return "\n".join([*lines, "}", ""])


def to_graphml(result: Discovery) -> str:
    """GraphML with every measure of an edge's evidence; characters XML cannot hold become U+FFFD."""
    import networkx as nx

    safe = {name: _NOT_XML.sub("\ufffd", name) for name in result.names}
    if len(set(safe.values())) < len(safe):
        safe = {name: f"{text} ({i})" for i, (name, text) in enumerate(safe.items())}
    graph = nx.relabel_nodes(result.graph, safe)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _dot_quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
