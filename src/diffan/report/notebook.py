"""How a Discovery shows in a notebook: its graph as a drawing, its strongest edges, its warnings; no script."""

from __future__ import annotations

import itertools
from html import escape

from diffan.discovery import Discovery
from diffan.report.drawing import COLOURS, Arrow, Drawing, drawing
from diffan.report.layout import NODE_HEIGHT

MOST_NODES = 100  # above, a drawing without zoom says nothing
MOST_EDGES = 10
MARGIN = 8.0


def notebook_html(result: Discovery) -> str:
    """Self-contained HTML; names are escaped."""
    head = (
        f"<b>{escape(result.method)}</b>: {len(result.names)} variables, {result.dag.n_edges} edges, "
        f"{result.n_samples} rows, {sum(result.timings.values()):.1f} s"
    )
    parts = [f"<div>{head}</div>"]
    if len(result.names) <= MOST_NODES:
        parts.append(graph_svg(drawing(result)))
    parts += [_edges(result), _remarks(result)]
    return f'<div style="font-family: system-ui, sans-serif">{"".join(parts)}</div>'


def graph_svg(drawn: Drawing) -> str:
    """The graph as SVG that takes its ink from the page around it."""
    shapes = [_arrow(arrow) for arrow in drawn.arrows]
    for box in drawn.boxes:
        shapes.append(
            f'<g transform="translate({box.x:.1f} {box.y:.1f})"><title>{escape(box.name)}</title>'
            f'<rect x="{-box.width / 2:.1f}" y="{-NODE_HEIGHT / 2}" width="{box.width:.1f}" height="{NODE_HEIGHT}" rx="8" '
            'fill="#8fa3b5" fill-opacity="0.12" stroke="#8fa3b5"/>'
            '<text text-anchor="middle" dominant-baseline="central" font-size="13" fill="currentColor">'
            f"{escape(box.label)}</text></g>"
        )
    width, height = drawn.width + 2 * MARGIN, drawn.height + 2 * MARGIN
    return (
        f'<svg role="img" aria-label="Causal graph" viewBox="{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}" '
        f'style="display: block; width: 100%; max-width: {min(width, 1100):.0f}px; height: auto; margin: 8px 0">'
        f"{''.join(shapes)}</svg>"
    )


def _arrow(arrow: Arrow) -> str:
    (x, y), way = arrow.points[0 if arrow.upwards else -1], -1 if arrow.upwards else 1
    tip = f"M{x:.1f} {y:.1f}l-4.6 {-way * 9.5}h9.2z"
    colour = COLOURS[arrow.mark]
    strength = "" if arrow.p_value is None else f": p = {arrow.p_value:.2g}"
    return (
        f"<g><title>{escape(f'{arrow.cause} → {arrow.effect}{strength}')}</title>"
        f'<path d="{_path(arrow)}" fill="none" stroke="{colour}" stroke-width="1.6"/><path d="{tip}" fill="{colour}"/></g>'
    )


def _path(arrow: Arrow) -> str:
    points = list(arrow.points)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return path


def _edges(result: Discovery) -> str:
    facts = list(result.edge_facts().items())
    if not facts:
        return "<div>No edge was found.</div>"
    rows = "".join(
        f"<tr><td>{escape(cause)}</td><td>→</td><td>{escape(effect)}</td><td>p = {known['p_value']:.2g}</td></tr>"
        for (cause, effect), known in facts[:MOST_EDGES]
    )
    more = (
        f"<div>and {len(facts) - MOST_EDGES} more; see result.graph</div>" if len(facts) > MOST_EDGES else ""
    )
    return f"<table>{rows}</table>{more}"


def _remarks(result: Discovery) -> str:
    remarks = [
        *result.warnings,
        *(f"{one.text} {one.advice}" for one in result.diagnostics if one.level == "doubt"),
    ]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in remarks)}</ul>" if remarks else ""
