"""A graph on the plane: components side by side, each in layers with causes on top, long edges led past the boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diffan.report.coordinates import NODE_GAP, horizontal
from diffan.report.crossings import reduce_crossings
from diffan.report.layers import Edge, Layered, layered

NODE_HEIGHT = 30.0
LAYER_GAP = 46.0  # the least free height between layers
MOST_GAP = 300.0
ASPECT = 1.7  # wanted width over height
PART_GAP = 44.0  # between components
ALONE_GAP = 16.0  # between rows of nodes without edges
PORT_GAP = 13.0  # between arrows that end on one box
PORT_MARGIN = 9.0  # of a box that no arrow touches, on either side

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes and, per edge, the points its curve passes, from box to box."""

    x: list[float]
    y: list[float]
    routes: list[list[Point]]
    width: float
    height: float


@dataclass(frozen=True)
class _Part:
    nodes: list[int]
    edges: list[int]  # positions in the list of all edges
    places: list[Point]  # of `nodes`
    routes: list[list[Point]]
    width: float
    height: float


def place(widths: Sequence[float], edges: Sequence[Edge]) -> Layout:
    """Lay out nodes 0..n-1, numbered so that every edge runs from a lower to a higher number."""
    found = _components(len(widths), edges)
    parts = [_lay_out(nodes, members, widths, edges) for nodes, members in found if members]
    parts.sort(key=lambda part: (-part.height, -part.width, part.nodes[0]))
    alone = [nodes[0] for nodes, members in found if not members]
    area = sum((part.width + PART_GAP) * (part.height + PART_GAP) for part in parts)
    area += sum((widths[node] + NODE_GAP) * (NODE_HEIGHT + ALONE_GAP) for node in alone)
    row_width = max([part.width for part in parts] + [math.sqrt(area * ASPECT)])
    x, y = [0.0] * len(widths), [0.0] * len(widths)
    routes: list[list[Point]] = [[] for _ in edges]
    left = top = row_height = full_width = 0.0
    for part in parts:
        if left > 0 and left + part.width > row_width:
            left, top, row_height = 0.0, top + row_height + PART_GAP, 0.0
        for node, (px, py) in zip(part.nodes, part.places, strict=True):
            x[node], y[node] = left + px, top + py
        for edge, route in zip(part.edges, part.routes, strict=True):
            routes[edge] = [(left + px, top + py) for px, py in route]
        full_width = max(full_width, left + part.width)
        left, row_height = left + part.width + PART_GAP, max(row_height, part.height)
    top, left, height = top + row_height + (PART_GAP if parts else 0.0), 0.0, top + row_height
    for node in alone:  # in rows below everything that is joined
        if left > 0 and left + widths[node] > row_width:
            left, top = 0.0, top + NODE_HEIGHT + ALONE_GAP
        x[node], y[node] = left + widths[node] / 2, top + NODE_HEIGHT / 2
        full_width, height = max(full_width, left + widths[node]), top + NODE_HEIGHT
        left += widths[node] + NODE_GAP
    return Layout(x, y, routes, full_width, height)


def _components(n_nodes: int, edges: Sequence[Edge]) -> list[tuple[list[int], list[int]]]:
    root = list(range(n_nodes))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for source, target in edges:
        a, b = find(source), find(target)
        root[max(a, b)] = min(a, b)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for node in range(n_nodes):
        parts.setdefault(find(node), ([], []))[0].append(node)
    for k, (source, _) in enumerate(edges):
        parts[find(source)][1].append(k)
    return list(parts.values())


def _lay_out(nodes: list[int], members: list[int], widths: Sequence[float], edges: Sequence[Edge]) -> _Part:
    local = {node: k for k, node in enumerate(nodes)}
    found = layered(len(nodes), [(local[edges[e][0]], local[edges[e][1]]) for e in members])
    reduce_crossings(found)
    own = [widths[node] for node in nodes]
    x = horizontal(found, own)
    left = min((x[v] - _half(found, own, v) for v in range(len(x))), default=0.0)
    width = max((x[v] + _half(found, own, v) for v in range(len(x))), default=0.0) - left
    x = [one - left for one in x]
    n_layers = len(found.layers)
    gap = 0.0
    if n_layers > 1:
        wanted = (width / ASPECT - n_layers * NODE_HEIGHT) / (n_layers - 1)
        gap = min(max(wanted, LAYER_GAP), MOST_GAP)
    y = [NODE_HEIGHT / 2 + level * (NODE_HEIGHT + gap) for level in found.level]
    return _Part(
        nodes,
        members,
        [(x[k], y[k]) for k in range(len(nodes))],
        _routes(found, own, x, y),
        width,
        n_layers * NODE_HEIGHT + (n_layers - 1) * gap,
    )


def _routes(found: Layered, widths: Sequence[float], x: list[float], y: list[float]) -> list[list[Point]]:
    leaving = _ports(found, widths, x, end=0)
    arriving = _ports(found, widths, x, end=-1)
    routes = []
    for k, chain in enumerate(found.chains):
        route = [(leaving[k], y[chain[0]] + NODE_HEIGHT / 2)]
        for bend in chain[1:-1]:
            route += [(x[bend], y[bend] - NODE_HEIGHT / 2), (x[bend], y[bend] + NODE_HEIGHT / 2)]
        route.append((arriving[k], y[chain[-1]] - NODE_HEIGHT / 2))
        routes.append(route)
    return routes


def _ports(found: Layered, widths: Sequence[float], x: list[float], *, end: int) -> list[float]:
    """Where each edge touches its box (end 0: the cause's, -1: the effect's), spread in the order of the other ends."""
    touching: dict[int, list[int]] = {}
    for k, chain in enumerate(found.chains):
        touching.setdefault(chain[end], []).append(k)
    ports = [0.0] * len(found.chains)
    next_on = 1 if end == 0 else -2
    for node, members in touching.items():
        members.sort(key=lambda k: (x[found.chains[k][next_on]], k))
        room = max(widths[node] - 2 * PORT_MARGIN, 0.0)
        step = min(PORT_GAP, room / max(len(members) - 1, 1))
        for place, k in enumerate(members):
            ports[k] = x[node] + (place - (len(members) - 1) / 2) * step
    return ports


def _half(found: Layered, widths: Sequence[float], vertex: int) -> float:
    return 4.0 if found.is_bend(vertex) else widths[vertex] / 2
