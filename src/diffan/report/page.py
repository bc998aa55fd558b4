"""The report: one HTML file that needs nothing else, for the eye first and the numbers after."""

from __future__ import annotations

from html import escape

from diffan.discovery import Discovery
from diffan.report.layout import layered

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --paper: #fff; --line: #b8c4d0; --edge: #0b6fb8; --node: #eef4fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #11161c; --line: #3d4a57; --edge: #6cb8f0; --node: #1d2833; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1100px;
  margin: 2rem auto; padding: 0 1rem; }
svg { display: block; width: 100%; height: auto; margin: 0 auto; border: 1px solid var(--line); border-radius: 8px; }
svg path { fill: none; stroke: var(--edge); stroke-width: 1.5; }
svg marker path { fill: var(--edge); stroke: none; }
svg rect { fill: var(--node); stroke: var(--line); }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.9rem 0.25rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.order { overflow-wrap: anywhere; }
"""


def render(result: Discovery) -> str:
    """The page as text."""
    title = f"{result.method}: {len(result.names)} variables, {result.dag.n_edges} edges"
    sections = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{result.n_samples} rows, seed {result.seed}, {sum(result.timings.values()):.1f} s.</p>",
        _warnings(result),
        "<h2>Graph</h2>",
        draw(result),
        "<h2>Order, causes first</h2>",
        f'<p class="order">{" &lt; ".join(escape(name) for name in result.order)}</p>',
        "<h2>Edges, strongest first</h2>",
        _edges(result),
        "<h2>Run</h2>",
        _facts({**{f"{stage} (s)": f"{seconds:.2f}" for stage, seconds in result.timings.items()}}),
        _facts({str(name): str(value) for name, value in result.settings.items()}),
        _facts(dict(result.versions)),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def draw(result: Discovery) -> str:
    """The DAG as SVG, causes on top."""
    dag = result.dag
    layers = layered(dag)
    labels = [name if len(name) <= 16 else name[:15] + "…" for name in dag.names]
    step_x = 9 * max(map(len, labels)) + 40
    step_y = 90
    width = step_x * max(map(len, layers))
    height = step_y * len(layers)
    spot = {
        node: (width * (k + 0.5) / len(layer), step_y * (level + 0.5))
        for level, layer in enumerate(layers)
        for k, node in enumerate(layer)
    }
    shapes = [
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z"/></marker></defs>'
    ]
    for (cause, effect), facts in result.edge_facts().items():
        (x1, y1), (x2, y2) = spot[dag.index(cause)], spot[dag.index(effect)]
        bend = 0.0 if y2 - y1 <= step_y else 0.35 * step_x * (1 if x1 <= x2 else -1)
        middle = f"{(x1 + x2) / 2 + bend:.0f} {(y1 + y2) / 2:.0f}"
        tip = escape(
            f"{cause} → {effect}: " + ", ".join(f"{key} {value:.3g}" for key, value in facts.items())
        )
        shapes.append(
            f'<path d="M{x1:.0f} {y1 + 14:.0f} Q{middle} {x2:.0f} {y2 - 14:.0f}" marker-end="url(#tip)">'
            f"<title>{tip}</title></path>"
        )
    for node, (x, y) in spot.items():
        half = 4.5 * len(labels[node]) + 8
        shapes.append(
            f'<g><title>{escape(dag.names[node])}</title><rect x="{x - half:.0f}" y="{y - 14:.0f}" '
            f'width="{2 * half:.0f}" height="28" rx="8"/><text x="{x:.0f}" y="{y:.0f}">{escape(labels[node])}</text></g>'
        )
    label = escape(f"Causal graph with {dag.n_nodes} variables and {dag.n_edges} edges")
    body = "\n".join(shapes)
    size = f'style="max-width: {1.25 * width:.0f}px" viewBox="0 0 {width} {height}"'
    return f'<svg role="img" aria-label="{label}" {size}>\n{body}\n</svg>'


def _edges(result: Discovery) -> str:
    facts = result.edge_facts()
    if not facts:
        return "<p>No edge was found.</p>"
    measures = list(next(iter(facts.values())))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in ["cause", "effect", *measures])
    rows = "\n".join(
        f"<tr><td>{escape(cause)}</td><td>{escape(effect)}</td>"
        + "".join(f'<td class="number">{values.get(name, float("nan")):.3g}</td>' for name in measures)
        + "</tr>"
        for (cause, effect), values in facts.items()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _facts(facts: dict[str, str]) -> str:
    rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in facts.items())
    return f"<table>{rows}</table>"


def _warnings(result: Discovery) -> str:
    if not result.warnings:
        return ""
    items = "".join(f"<li>{escape(warning)}</li>" for warning in result.warnings)
    return f"<h2>Before you believe it</h2><ul>{items}</ul>"
