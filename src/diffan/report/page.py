"""The report: one HTML file that needs nothing else, made from a saved run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.report.content import as_script_text, page_content

SCRIPTS = ("layout.js", "state.js", "charts.js", "graph.js", "panel.js", "sections.js", "main.js")
NOSCRIPT_EDGES = 200


def render(result: Discovery, truth: Dag | None = None) -> str:
    """The page as text; with the true graph, correct, missing, extra and reversed edges are marked.

    The only script the page may run is its own, by its hash: a column name cannot become code.
    """
    script = page_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    edges = list(result.edge_facts())[:NOSCRIPT_EDGES]
    parts = {
        "@@HASH@@": digest,
        "@@TITLE@@": escape(f"{len(result.names)} variables, {result.dag.n_edges} edges"),
        "@@FACTS@@": escape(_facts(result)),
        "@@STYLE@@": _asset("page.css"),
        "@@EDGES@@": "".join(f"<li>{escape(cause)} → {escape(effect)}</li>" for cause, effect in edges),
        "@@RUN@@": as_script_text(page_content(result, truth)),
        "@@SCRIPT@@": script,
    }
    pieces = _asset("page.html").split("@@")
    return "".join(parts.get(f"@@{piece}@@", piece) for piece in pieces).encode("utf-8", "replace").decode()


def page_script() -> str:
    """All of the page's code in one closure."""
    return "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"


def _facts(result: Discovery) -> str:
    facts = [
        f"method {result.method}",
        f"{result.n_samples:,} rows",
        f"seed {result.seed}",
        f"{sum(result.timings.values()):.1f} s",
    ]
    transform = result.settings.get("transform", "none")
    if transform not in ("none", None):
        facts.insert(2, f"{transform} of every column")
    return " · ".join(facts)


@cache
def _asset(name: str) -> str:
    return (files("diffan.report") / "assets" / name).read_text(encoding="utf-8")
