"""Plots as SVG, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

COLOURS = ("#3b6ea5", "#d1662f", "#5a9367", "#8a5aa0", "#b8a13a", "#6b6b6b", "#c0504d", "#4aa3a2", "#9b7653")
Series = Sequence[tuple[float, float, float]]  # x, mean, half the height of its error bar


def _figure(panels: int, width: float = 4.2, height: float = 3.4) -> tuple[Any, Any]:
    """Panels side by side, four of them two by two."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "svg.hashsalt": "diffan",
            "svg.fonttype": "none",  # letters stay letters: smaller, and they can be searched
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "axes.axisbelow": True,
            "figure.constrained_layout.use": True,
        }
    )
    columns = 2 if panels == 4 else panels
    lines = -(-panels // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(width * columns, height * lines), squeeze=False)
    return figure, axes.ravel()


def _save(figure: Any, file: Path) -> None:
    from matplotlib import pyplot

    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = file.read_text()
    file.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def violins(
    file: Path, panels: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str, *, log: bool = False
) -> None:
    """A panel each, a violin for each label: its spread, every value as a dot, the median as a bar."""
    most = max(len(groups) for groups in panels.values())
    figure, axes = _figure(len(panels), width=1.2 + 0.45 * most, height=3.6)
    for axis, (title, groups) in zip(axes, panels.items(), strict=True):
        filled = {label: list(found) for label, found in groups.items() if len(found)}
        for place, (label, found) in enumerate(filled.items()):
            colour = COLOURS[list(groups).index(label) % len(COLOURS)]
            if len(found) > 2 and np.ptp(found) > 0 and not log:
                body = axis.violinplot(found, [place], widths=0.8, showextrema=False)["bodies"][0]
                body.set(facecolor=colour, alpha=0.35)
            offsets = np.linspace(-0.16, 0.16, len(found)) if len(found) > 1 else [0.0]
            axis.plot(place + np.asarray(offsets), found, ".", color=colour, markersize=3)
            axis.hlines(np.median(found), place - 0.3, place + 0.3, color=colour, linewidth=2)
        axis.set_xticks(range(len(filled)), list(filled), rotation=60, ha="right")
        axis.set_title(title)
        if log:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
        axis.set_ylabel(ylabel)
    _save(figure, file)


def lines(
    file: Path,
    panels: Mapping[str, Mapping[str, Series]],
    xlabel: str,
    *,
    logx: bool = True,
    logy: Sequence[str] = (),
) -> None:
    """A panel for each quantity, a line for each label; panels named in `logy` have a logarithmic axis."""
    figure, axes = _figure(len(panels))
    labels = list(dict.fromkeys(label for series in panels.values() for label in series))
    for axis, (title, series) in zip(axes, panels.items(), strict=True):
        for label, points in series.items():
            if not points:
                continue
            x, mean, half = (np.asarray(column, dtype=float) for column in zip(*points, strict=True))
            colour = COLOURS[labels.index(label) % len(COLOURS)]
            axis.errorbar(x, mean, half, marker="o", markersize=4, capsize=2, color=colour, label=label)
        axis.set(xlabel=xlabel, ylabel=title)
        if logx:
            axis.set_xscale("log")
        if title in logy:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
    handles = {
        label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
    _save(figure, file)


def jacobian_picture(file: Path, points: Sequence[Sequence[float]]) -> None:
    """Two variables coloured by each entry of the diagonal of the score's Jacobian: A, B, H_AA, H_BB."""
    a, b, first, second = np.asarray(points).T
    figure, axes = _figure(2, width=4.0)
    low, high = np.percentile(np.concatenate([first, second]), [2, 98])
    for axis, colours, title in zip(axes, (first, second), ("cause A", "effect B"), strict=True):
        dots = axis.scatter(a, b, c=colours, s=9, cmap="viridis", vmin=low, vmax=high)
        axis.set(xlabel="A", ylabel="B", title=f"∂s/∂x of the {title}: variance {np.var(colours):.2g}")
    figure.colorbar(dots, ax=list(axes))
    _save(figure, file)
