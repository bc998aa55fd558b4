"""The result of a run: the order, the graph and the evidence, ready to look at, move on and keep."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from diffan.confidence import Confidence
from diffan.dag import Dag
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.inspection.values import Diagnostic, Inspection
from diffan.knowledge import Knowledge

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Discovery:
    """A causal graph over the table's columns, under their names, and what speaks for it."""

    order: list[str]  # causes first
    names: tuple[str, ...]  # the table's columns, in its order
    evidence: EdgeEvidence  # arrays in the order of `names`
    method: str
    settings: Mapping[str, Any]
    seed: int
    n_samples: int
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds per stage
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    leaf_evidence: npt.NDArray[np.float64] | None = None  # [steps, d], columns in the order of `names`
    screened: Mapping[str, float] = field(default_factory=dict)  # what the screen of a wide table left
    losses: Mapping[str, list[float]] = field(default_factory=dict)
    model: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    knowledge: Knowledge = field(default_factory=Knowledge)  # what was known beforehand, and holds
    confidence: Confidence | None = None  # of the edges as they were chosen at first, when asked for
    inspection: Inspection | None = None  # effects, residuals and doubts; about the edges as first chosen

    @cached_property
    def dag(self) -> Dag:
        """The graph as a value of its own."""
        return Dag(self.evidence.chosen, self.names)

    @property
    def adjacency(self) -> pd.DataFrame:
        """0/1, rows are causes, columns are effects."""
        return self.dag.to_frame()

    @property
    def p_values(self) -> pd.DataFrame:
        """The p-value of every edge that was tested, 1.0 elsewhere."""
        import pandas as pd

        return pd.DataFrame(self.evidence.p_values, index=list(self.names), columns=list(self.names))

    @property
    def graph(self) -> nx.DiGraph:
        """A networkx graph whose edges carry `p_value` and every other measure of their evidence."""
        graph = self.dag.to_networkx()
        for (cause, effect), facts in self.edge_facts().items():
            graph.edges[cause, effect].update(facts)
        return graph

    def edge_facts(self) -> dict[tuple[str, str], dict[str, float]]:
        """For each kept edge its p-value and measures, strongest first."""
        kept = [(int(i), int(j)) for i, j in np.argwhere(self.evidence.chosen)]
        kept.sort(key=lambda edge: (self.evidence.p_values[edge], edge))
        return {(self.names[i], self.names[j]): self._facts(i, j) for i, j in kept}

    def at_cutoff(self, cutoff: float) -> Discovery:
        """The same run with the edges kept at another p-value cutoff; nothing is fitted again, knowledge holds."""
        if not 0 < cutoff <= 1:
            raise InputError(f"The 'cutoff' parameter must be over 0 and at most 1. Got {cutoff!r} instead.")
        settings = {**self.settings, "cutoff": cutoff}
        order = [self.names.index(name) for name in self.order]
        rules = self.knowledge.consequences(self.names)
        return replace(
            self, evidence=self.evidence.at_cutoff(cutoff).settled(rules, order), settings=settings
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder: graph.json, adjacency.csv, order.txt, GraphML, DOT and the report."""
        from diffan.runfolder import save

        save(self, folder)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Reasons to believe or to doubt the run, a sentence each with what to do."""
        return () if self.inspection is None else self.inspection.diagnostics

    def report(self, path: str | os.PathLike[str], *, truth: Dag | None = None) -> None:
        """Write the self-contained HTML page of this run; with the true graph, its edges are marked."""
        from diffan.files import write_text
        from diffan.report.page import render

        write_text(path, render(self, truth))

    def plot(
        self,
        kind: str = "graph",
        *,
        path: str | os.PathLike[str] | None = None,
        variable: str | None = None,
        truth: Dag | None = None,
    ) -> Figure:
        """A matplotlib figure: "graph", "order", "loss", "effects" or "adjacency"; with `path`, also a PNG, SVG or PDF.

        `variable` says whose effects are drawn (all of them without it); `truth` marks the edges of a graph.
        """
        from diffan.report.plots import plot

        return plot(self, kind, path=path, variable=variable, truth=truth)

    def export(self, tool: str) -> Any:
        """The graph as another tool wants it: "networkx", "dot", "graphml", "dagitty", "pgmpy" or "dowhy"."""
        from diffan.exports import export

        return export(self, tool)

    def summary(self) -> str:
        """A few lines for a terminal."""
        lines = [
            f"{self.method}: {len(self.names)} variables, {self.n_samples} rows, {self.dag.n_edges} edges, "
            f"{sum(self.timings.values()):.1f} s",
            "order: " + " < ".join(self.order[:20]) + (" < ..." if len(self.order) > 20 else ""),
        ]
        lines += [
            f"  {cause} -> {effect}  ({self._told(cause, effect, facts)})"
            for (cause, effect), facts in list(self.edge_facts().items())[:20]
        ]
        if self.dag.n_edges > 20:
            lines.append(f"  ... and {self.dag.n_edges - 20} more edges")
        lines += self._confidence_lines()
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += [f"doubt: {one.text} {one.advice}" for one in self.diagnostics if one.level == "doubt"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Discovery({self.method}: {len(self.names)} variables, {self.dag.n_edges} edges)"

    def _told(self, cause: str, effect: str, facts: Mapping[str, float]) -> str:
        """The evidence of an edge in a few words."""
        told = [f"p = {facts['p_value']:.1e}"]
        told += [
            f"{label} {facts[key]:.1e}"
            for key, label in (("p_holm", "Holm"), ("p_by", "Benjamini-Yekutieli"))
            if key in facts
        ]
        if "frequency" in facts:
            told.append(f"in {facts['frequency']:.0%} of replicates")
        if (cause, effect) in self.knowledge.required:
            told.append("required")
        return ", ".join(told)

    def _confidence_lines(self) -> list[str]:
        sure = self.confidence
        if sure is None:
            return []
        bound = f", by chance at most {sure.expected_false:.2g} of them" if sure.expected_false >= 0 else ""
        agreement = sure.agreement([self.names.index(name) for name in self.order])
        return [
            f"confidence: {sure.n_replicates} replicates ({sure.scheme}) agree with {agreement:.0%} of the order; "
            f"{int(sure.stable.sum())} stable edges (in {sure.threshold:.0%} or more{bound})",
            "consensus: "
            + (", ".join(f"{a} -> {b}" for a, b in sure.consensus.edges[:20]) or "no edge")
            + (", ..." if sure.consensus.n_edges > 20 else ""),
        ]

    def _repr_html_(self) -> str:
        from diffan.report.notebook import notebook_html

        return notebook_html(self)

    def _facts(self, i: int, j: int) -> dict[str, float]:
        facts = {"p_value": float(self.evidence.p_values[i, j])}
        facts.update({name: float(values[i, j]) for name, values in self.evidence.measures.items()})
        return {name: value for name, value in facts.items() if np.isfinite(value)}
