"""Questions about what the model leaves out: hidden causes, feedback, selection, and rows that depend on each other.

Each asks for a mark that the violation sometimes leaves. A mark is a reason to doubt; no mark proves nothing, and the
sentences say so. The levels were measured on simulated tables without any violation (docs/assumptions.md).
"""

from __future__ import annotations

import numpy as np

from diffan.discovery import Discovery
from diffan.inspection.directions import FEWEST_ROWS, LEVEL, neither_way
from diffan.inspection.effects import MOST_ROWS, Effects
from diffan.inspection.leftovers import autocorrelation, left_dependent
from diffan.inspection.phrases import arrows, counted, listed, short
from diffan.inspection.values import Diagnostic, FloatArray
from diffan.table import Table

LEAST_CORRELATION = (
    0.3  # measured: of unconnected residuals; at most 0.23 in 72 simulated tables at their true graphs
)
LEAST_AUTOCORRELATION = 0.1  # choice: less does little harm
LAGS = (1, 2, 3, 4, 5)


def fits_neither_way(result: Discovery, table: Table) -> Diagnostic:
    """Whether some pair is joined by an edge that additive noise explains in neither direction."""
    topic = "Does each edge fit one way round?"
    evidence = result.evidence
    found, looked_at = neither_way(table.values, evidence.chosen, evidence.p_values)
    if not looked_at:
        reason = "no edge" if not evidence.chosen.any() else f"fewer than {FEWEST_ROWS} rows"
        return Diagnostic(topic, "fine", f"Not looked at: there is {reason}.", "")
    if not found:
        return Diagnostic(
            topic,
            "fine",
            f"Of {counted(range(looked_at), 'edge', 'edges')} looked at, none was seen to leave dependent noise both "
            "ways round. Hidden common causes and feedback that are weak or nearly linear leave no such mark.",
            "",
        )
    edges = [(result.names[i], result.names[j]) for i, j in found]
    return Diagnostic(
        topic,
        "doubt",
        f"{counted(edges, 'edge leaves', 'edges leave')} noise that depends on the cause whichever way round it is "
        f"drawn ({arrows(edges)}).",
        "Think of a common cause that is not in the table, of feedback, of rows chosen by these variables, of a badly "
        "measured cause, or of noise that is not added; read such an edge as a link without a direction.",
        edges=tuple(edges),
    )


def pairs_left_dependent(result: Discovery, effects: Effects) -> Diagnostic:
    """Whether the noise of variables that the graph does not join still goes together."""
    topic = "Is the noise of unconnected variables independent?"
    n, d = effects.standardized.shape
    if n < FEWEST_ROWS or d < 2:
        return Diagnostic(
            topic, "fine", f"Not looked at: it takes two columns and {FEWEST_ROWS} rows or more.", ""
        )
    found = left_dependent(effects.standardized, result.evidence.chosen, least=LEAST_CORRELATION, level=LEVEL)
    if not found:
        return Diagnostic(topic, "fine", "No unconnected pair was left with noise that goes together.", "")
    pairs = [(result.names[i], result.names[j]) for i, j in found]
    shown = ", ".join(f"{short(a)} and {short(b)}" for a, b in pairs[:4])
    return Diagnostic(
        topic,
        "doubt",
        f"{counted(pairs, 'unconnected pair has', 'unconnected pairs have')} noise that goes together ({shown}"
        f"{f' and {len(pairs) - 4} more' if len(pairs) > 4 else ''}), which the graph cannot explain.",
        "An edge is missing there (knowledge or the cutoff may have kept it out), or a common cause is not in the table, "
        "or the rows were chosen by these variables.",
        variables=tuple(dict.fromkeys(name for pair in pairs for name in pair)),
    )


def rows_in_sequence(table: Table, effects: Effects, *, rows_in_order: bool) -> Diagnostic:
    """Whether a row can be foreseen from the rows before it."""
    topic = "Are the rows independent of each other?"
    if not rows_in_order:
        return Diagnostic(
            topic,
            "note",
            "Not looked at: the rows were sampled or lie in random order.",
            "If they were recorded in time or in groups, look at a stretch of consecutive rows.",
        )
    series = _consecutive(table, effects)
    if len(series) < FEWEST_ROWS:
        return Diagnostic(topic, "fine", f"Not looked at: it takes {FEWEST_ROWS} rows or more.", "")
    steps = np.diff(table.values[: len(series)], axis=0)
    ordered = [table.names[j] for j in np.flatnonzero((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0))]
    if ordered:
        return Diagnostic(
            topic,
            "note",
            f"The rows are sorted by {listed(ordered)}, so their sequence says nothing about how they came about.",
            "If they were recorded in time, give them in that order; if that column is the time, leave it out and "
            "put lagged columns in.",
            variables=tuple(ordered),
        )
    furthest, p_values = autocorrelation(series, LAGS)
    felt = (p_values * len(p_values) < LEVEL) & (np.abs(furthest) > LEAST_AUTOCORRELATION)
    if not felt.any():
        return Diagnostic(topic, "fine", "No variable was seen to follow from the rows before.", "")
    subject = "The noise" if len(effects.rows) == table.n_samples else "What is seen"
    worst = int(np.argmax(np.where(felt, np.abs(furthest), 0.0)))
    names = [table.names[j] for j in np.flatnonzero(felt)]
    return Diagnostic(
        topic,
        "doubt",
        f"{subject} of {counted(names, 'variable', 'variables')} ({listed(names)}) goes with that of the rows just before, "
        f"for {short(table.names[worst])} with a correlation of {furthest[worst]:.2f}: the rows look like a time series "
        "or come in groups, p-values are too small and causes of yesterday are missing.",
        "Put lagged columns and tiers into the table, or keep only rows far apart or one of each group; see "
        "docs/assumptions.md.",
        variables=tuple(names),
    )


def _consecutive(table: Table, effects: Effects) -> FloatArray:
    """Residuals row after row; of a table too long for that, its first rows as they are."""
    if len(effects.rows) == table.n_samples:
        return effects.standardized
    return np.asarray(table.values[:MOST_ROWS], dtype=np.float64)
