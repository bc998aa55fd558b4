"""Static figures with matplotlib, for papers and slides; nothing global is touched."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.files import writing
from diffan.inspection.margins import leaf_choices
from diffan.report.drawing import COLOURS, DASHES, Arrow, drawing
from diffan.report.layout import NODE_HEIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#5b6b79"
PIXELS = 90.0  # of the layout per inch
MOST_LABELS = 60
MOST_INCHES = 40.0  # of a side; larger graphs are drawn smaller
MOST_CURVES = 36
RESOLUTION = 150


def plot(
    result: Discovery,
    kind: str = "graph",
    *,
    path: str | os.PathLike[str] | None = None,
    variable: str | None = None,
    truth: Dag | None = None,
) -> Figure:
    """The figure of this kind; written to `path` too when one is given."""
    kinds = {
        "graph": lambda figure: _graph(figure, result, truth),
        "order": lambda figure: _order(figure, result),
        "loss": lambda figure: _loss(figure, result),
        "effects": lambda figure: _effects(figure, result, variable),
        "adjacency": lambda figure: _adjacency(figure, result),
    }
    if kind not in kinds:
        raise InputError(f"The 'kind' of a plot must be one of {', '.join(kinds)}. Got {kind!r} instead.")
    if variable is not None:
        result.dag.index(variable)  # refuses a name that is not there
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"A plot is written as {', '.join(FORMATS)}. Got {Path(path).name!r} instead.")
    figure = _empty_figure()
    kinds[kind](figure)
    if path is not None:
        with writing(path) as temporary:
            ending = Path(path).suffix.lower()[1:]
            figure.savefig(temporary, format=ending, dpi=RESOLUTION, metadata=_no_date(ending))
    return figure


def _empty_figure() -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("Plots need matplotlib: pip install 'diffan[plot]'.") from None

    class Shown(Figure):
        """A figure that a notebook shows without pyplot."""

        def _repr_png_(self) -> bytes:
            held = io.BytesIO()
            self.savefig(held, format="png", dpi=110)
            return held.getvalue()

    figure = Shown(layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _no_date(ending: str) -> dict[str, None]:
    """The same run gives the same file."""
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending, {})


def _graph(figure: Figure, result: Discovery, truth: Dag | None) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    drawn = drawing(result, truth)
    marks = [
        mark for mark in ("correct", "missing", "extra", "reversed") if mark in {a.mark for a in drawn.arrows}
    ]
    top = 46.0 if marks else 12.0
    width, height = max(drawn.width + 24, 300.0 if marks else 0.0), drawn.height + 12 + top
    shrink = min(1.0, MOST_INCHES * PIXELS / max(width, height))
    figure.set_layout_engine("none")
    figure.set_size_inches(width * shrink / PIXELS, height * shrink / PIXELS)
    axes = figure.add_axes((0, 0, 1, 1))
    middle = drawn.width / 2
    axes.set(xlim=(middle - width / 2, middle + width / 2), ylim=(drawn.height + 12, -top))
    axes.axis("off")
    for arrow in drawn.arrows:
        _draw_arrow(axes, arrow, shrink)
    for box in drawn.boxes:
        axes.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2 + 6, box.y - NODE_HEIGHT / 2 + 6),
                box.width - 12,
                NODE_HEIGHT - 12,
                boxstyle="round,pad=6",
                facecolor="white",
                edgecolor=to_rgba(GREY, 0.8),
                linewidth=0.9 * shrink,
            )
        )
        axes.text(
            box.x,
            box.y,
            box.label,
            ha="center",
            va="center_baseline",
            fontsize=10 * shrink,
            parse_math=False,
        )
    if marks:
        _mark_legend(axes, marks)


def _draw_arrow(axes: Any, arrow: Arrow, shrink: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Curve

    vertices, codes = [arrow.points[0]], [Curve.MOVETO]
    for (x0, y0), (x1, y1) in zip(arrow.points[:-1], arrow.points[1:], strict=True):
        middle = (y0 + y1) / 2
        vertices += [(x0, middle), (x1, middle), (x1, y1)]
        codes += [Curve.CURVE4] * 3
    colour, dash = COLOURS[arrow.mark], [float(part) for part in DASHES[arrow.mark].split()]
    style: Any = (0, dash) if dash else "solid"
    axes.add_patch(
        PathPatch(
            Curve(vertices, codes),
            facecolor="none",
            edgecolor=colour,
            linewidth=1.2 * shrink,
            linestyle=style,
        )
    )
    (x, y), way = arrow.points[0 if arrow.upwards else -1], -1 if arrow.upwards else 1
    axes.add_patch(
        Polygon(
            [(x, y), (x - 4.6, y - way * 9.5), (x + 4.6, y - way * 9.5)], facecolor=colour, edgecolor="none"
        )
    )


def _mark_legend(axes: Any, marks: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    lines = []
    for mark in marks:
        dash = [float(part) for part in DASHES[mark].split()]
        lines.append(
            Line2D([], [], color=COLOURS[mark], linestyle=(0, dash) if dash else "solid", label=mark)
        )
    axes.legend(
        handles=lines, loc="upper center", ncols=len(lines), frameon=False, fontsize=8, handlelength=3.2
    )


def _order(figure: Figure, result: Discovery) -> None:
    choices = leaf_choices(result)
    if not choices:
        raise InputError(
            f"Method {result.method!r} keeps no evidence of its order, so there is none to draw."
        )
    figure.set_size_inches(min(max(4, 0.32 * len(choices) + 1.5), 40), 3.2)
    axes = figure.add_subplot()
    place = np.arange(len(choices))
    axes.semilogy(
        place, [max(choice.value, 1e-300) for choice in choices], "o", color=BLUE, label="the leaf chosen"
    )
    axes.semilogy(
        place,
        [max(choice.next_value, 1e-300) for choice in choices],
        "_",
        color=ORANGE,
        ms=11,
        label="the second best",
    )
    axes.set(xlabel="leaves, effects first", ylabel="leaf criterion")
    _name_ticks(axes.xaxis, [result.names[choice.leaf] for choice in choices], turned=True)
    axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.3)


def _loss(figure: Figure, result: Discovery) -> None:
    curves = {name: curve for name, curve in result.losses.items() if name != "step" and len(curve)}
    if not curves:
        raise InputError(f"Method {result.method!r} keeps no loss, so there is none to draw.")
    figure.set_size_inches(5.2, 3.2)
    axes = figure.add_subplot()
    steps = result.losses.get("step", [])
    for (name, curve), colour, style in zip(
        curves.items(), [BLUE, ORANGE, "#009e73", "#cc79a7"] * len(curves), ["-", "--", ":", "-."] * len(curves),
        strict=False,
    ):  # fmt: skip
        x = steps if len(steps) == len(curve) else np.arange(len(curve))
        axes.plot(x, curve, color=colour, linestyle=style, label=_plain(name))
    axes.set(xlabel="step" if steps else "entry", ylabel="loss")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def _effects(figure: Figure, result: Discovery, variable: str | None) -> None:
    seen = result.inspection
    if seen is None:
        raise InputError("This run kept no effects; discover again with inspect=True.")
    curves = [curve for curve in seen.curves if variable in (None, result.names[curve.effect])][:MOST_CURVES]
    if not curves:
        raise InputError("There is no edge whose effect could be drawn.")
    columns = min(4, len(curves))
    rows = -(-len(curves) // columns)
    figure.set_size_inches(2.9 * columns, 2.3 * rows)
    for k, curve in enumerate(curves):
        axes = figure.add_subplot(rows, columns, k + 1)
        grid, x = curve.grid(), seen.values[:, curve.cause]
        inside = (x >= curve.low) & (x <= curve.high)
        dots = np.interp(x, grid, curve.fit) + seen.residuals[:, curve.effect]
        axes.plot(x[inside], dots[inside], ".", color=GREY, alpha=0.4, ms=3, mew=0)
        axes.fill_between(
            grid, curve.fit - 2 * curve.error, curve.fit + 2 * curve.error, color=BLUE, alpha=0.2, lw=0
        )
        axes.plot(grid, curve.fit, color=BLUE)
        axes.set_xlabel(_plain(result.names[curve.cause]), parse_math=False)
        axes.set_ylabel(f"effect on {_plain(result.names[curve.effect])}", parse_math=False)


def _adjacency(figure: Figure, result: Discovery) -> None:
    place = [result.names.index(name) for name in result.order]
    cells = np.ix_(place, place)
    strength = np.where(
        result.evidence.tested, -np.log10(np.maximum(result.evidence.p_values, 1e-30)) / 30, np.nan
    )
    shown = np.where(result.evidence.chosen, 1.0, 0.06 + 0.55 * strength)[cells]
    side = min(max(3.2, 0.24 * len(place) + 1), 14)
    figure.set_size_inches(side, side)
    axes = figure.add_subplot()
    axes.imshow(np.ma.masked_invalid(shown), cmap="Blues", vmin=0, vmax=1.1, interpolation="nearest")
    axes.set(xlabel="effect", ylabel="cause")
    _name_ticks(axes.xaxis, result.order, turned=True)
    _name_ticks(axes.yaxis, result.order, turned=False)


def _name_ticks(axis: Any, names: list[str], *, turned: bool) -> None:
    if len(names) > MOST_LABELS:
        return
    axis.set_ticks(range(len(names)), [_plain(name) for name in names], parse_math=False, fontsize=8)
    if turned:
        axis.set_tick_params(rotation=90)


def _plain(name: str) -> str:
    text = " ".join(name.split()) or "(unnamed)"
    return text if len(text) <= 24 else text[:23] + "…"
