"""The graph in the languages of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from diffan.discovery import Discovery
from diffan.errors import InputError

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def export(result: Discovery, tool: str) -> Any:
    """The graph in the form the named tool takes."""
    forms: dict[str, Callable[[Discovery], Any]] = {
        "networkx": lambda found: found.graph,
        "dot": to_dot,
        "graphml": to_graphml,
        "dagitty": to_dagitty,
        "pgmpy": to_pgmpy,
        "dowhy": to_dowhy,
    }
    if tool not in forms:
        raise InputError(f"A graph can be exported to {', '.join(forms)}. Got {tool!r} instead.")
    return forms[tool](result)


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


def to_dagitty(result: Discovery) -> str:
    """The text that dagitty.net and R's dagitty read."""
    nodes = "\n".join(_dot_quoted(name) for name in result.names)
    edges = "\n".join(f"{_dot_quoted(a)} -> {_dot_quoted(b)}" for a, b in result.edge_facts())
    return f"dag {{\n{nodes}\n{edges}\n}}\n"


def to_pgmpy(result: Discovery) -> Any:
    """A pgmpy DAG over the variables, ready to be fitted."""
    try:
        from pgmpy.base import DAG
    except ImportError:
        raise InputError(
            "Exporting to pgmpy needs it: pip install pgmpy, or export to networkx instead."
        ) from None
    dag = DAG()
    dag.add_nodes_from(result.names)
    dag.add_edges_from(result.dag.edges)
    return dag


def to_dowhy(result: Discovery) -> Any:
    """A `dowhy.gcm` structural causal model without mechanisms; assign and fit them on the table."""
    try:
        from dowhy import gcm
    except ImportError:
        raise InputError(
            "Exporting to DoWhy needs it: pip install dowhy, or export to networkx instead."
        ) from None
    return gcm.StructuralCausalModel(result.dag.to_networkx())


def _dot_quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
