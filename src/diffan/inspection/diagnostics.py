"""When not to believe a run: every question is answered in a sentence, with what to do."""

from __future__ import annotations

import numpy as np

from diffan.discovery import Discovery
from diffan.explained import linear_r2
from diffan.inspection.effects import Effects
from diffan.inspection.margins import leaf_choices
from diffan.inspection.phrases import arrows, counted, listed, share_of, short
from diffan.inspection.sortability import sortability
from diffan.inspection.values import Diagnostic, Inspection
from diffan.inspection.violations import fits_neither_way, pairs_left_dependent, rows_in_sequence
from diffan.likelihood.dependence import LEAST_SHARE, LEVEL
from diffan.table import Table
from diffan.table_checks import OUTLIER

FEWEST_PAIRS = 5  # ancestor-descendant pairs below which sortability says nothing
SORTABLE = 0.85  # share of pairs from which (or below whose complement) a mere sort would find the order
STRAIGHT = 0.98  # share of a curve's variance on a line from which the effect counts as linear
GAUSSIAN = 0.01  # p-value above which residuals pass as Gaussian
NOT_GAUSSIAN = 1e-3
BENT = (0.5, 1.0)  # |skewness| and |excess kurtosis| from which a departure matters
FEW_VALUES = 20
ROWS_PER_COLUMN = 10
CLOSE_CALL = 0.05  # relative margin between the best and the second leaf
MANY_CLOSE = 0.25  # share of close choices that is a doubt


def diagnose(
    result: Discovery, table: Table, seen: Inspection, effects: Effects, *, rows_in_order: bool
) -> tuple[Diagnostic, ...]:
    """All questions in the order a careful reader would ask them."""
    return (
        _linearity(result, seen),
        _dependence(result, table, seen),
        fits_neither_way(result, table),
        pairs_left_dependent(result, effects),
        rows_in_sequence(table, effects, rows_in_order=rows_in_order),
        _noise_shape(result, table, seen),
        _leaf_margins(result),
        _r2_sorted(result, table),
        _variance_sorted(result, table),
        _discrete(table),
        _outliers(table),
        _row_count(table),
    )


def _linearity(result: Discovery, seen: Inspection) -> Diagnostic:
    topic = "Can the directions be seen?"
    names, gaussian = result.names, seen.normality > GAUSSIAN
    straight = [curve for curve in seen.curves if curve.straightness > STRAIGHT]
    blind = [(names[c.cause], names[c.effect]) for c in straight if gaussian[c.cause] and gaussian[c.effect]]
    if blind:
        return Diagnostic(
            topic,
            "doubt",
            f"{counted(blind, 'effect is', 'effects are')} straight with Gaussian noise at both ends "
            f"({arrows(blind)}): such an edge fits the data as well the other way round.",
            "Treat these as links without a direction, or settle them by knowledge or an experiment.",
            edges=tuple(blind),
        )
    if straight:
        edges = [(names[c.cause], names[c.effect]) for c in straight]
        return Diagnostic(
            topic,
            "note",
            f"{counted(edges, 'effect is', 'effects are')} straight ({arrows(edges)}); their direction shows only in "
            "the shape of the noise.",
            "Check these directions against what is known of the variables.",
            edges=tuple(edges),
        )
    if not seen.curves:
        return Diagnostic(topic, "note", "No edge was kept, so there is no direction to judge.", "")
    return Diagnostic(topic, "fine", "Every fitted effect bends enough for its direction to be seen.", "")


def _dependence(result: Discovery, table: Table, seen: Inspection) -> Diagnostic:
    topic = "Is the noise independent of the causes?"
    tests = max(len(seen.curves), 1)
    left = [
        (result.names[c.cause], result.names[c.effect])
        for c in seen.curves
        if c.spread_p_value * tests < LEVEL and c.spread_share > LEAST_SHARE
    ]
    if not left:
        return Diagnostic(topic, "fine", "No residual was seen to depend on a parent of its variable.", "")
    return Diagnostic(
        topic,
        "doubt" if len(left) > tests / 4 else "note",
        f"The spread of the residual still varies with the cause on {counted(left, 'edge', 'edges')} "
        f"({arrows(left)}), which additive noise rules out.",
        f"Look at their residual plots; {table.other_transform}, and think of a missing common cause.",
        edges=tuple(left),
    )


def _noise_shape(result: Discovery, table: Table, seen: Inspection) -> Diagnostic:
    topic = "Is the noise Gaussian?"
    bent = (np.abs(seen.skewness) > BENT[0]) | (np.abs(seen.kurtosis) > BENT[1])
    odd = [result.names[j] for j in np.flatnonzero(bent & (seen.normality < NOT_GAUSSIAN))]
    if not odd:
        return Diagnostic(topic, "fine", "No residual is far from Gaussian.", "")
    return Diagnostic(
        topic,
        "note",
        f"The residuals of {share_of(odd, result.names)} are far from Gaussian ({listed(odd)}); leaf rules such as "
        "that of DiffAN and SCORE are derived for Gaussian noise.",
        f"Compare with method='nogam', which does not assume it, or {table.other_transform}.",
        variables=tuple(odd),
    )


def _leaf_margins(result: Discovery) -> Diagnostic:
    topic = "Was the order a close call?"
    choices = leaf_choices(result)
    if not choices:
        return Diagnostic(topic, "note", "This method keeps no evidence of how clear its order was.", "")
    close = [(result.names[c.leaf], result.names[c.second]) for c in choices if c.margin < CLOSE_CALL]
    last = " and ".join(f"{100 * choice.margin:.0f} %" for choice in choices[-2:])
    if not close:
        return Diagnostic(
            topic,
            "fine",
            f"Every leaf beat the second best by 5 % or more; the last choices, nearest the causes, by {last}.",
            "",
        )
    mended = result.settings.get("refine") not in (None, False)
    return Diagnostic(
        topic,
        "doubt" if len(close) > MANY_CLOSE * len(choices) and not mended else "note",
        f"{len(close)} of {len(choices)} leaf choices were won by less than 5 % "
        f"({', '.join(f'{short(a)} over {short(b)}' for a, b in close[:4])}{', ...' if len(close) > 4 else ''}); "
        f"the last choices, nearest the causes, by {last}.",
        "The order was mended by likelihood afterwards; compare several seeds before relying on these places."
        if mended
        else "Compare several seeds, or mend the order with refine='kernel'.",
        variables=tuple(dict.fromkeys(leaf for leaf, _ in close)),
    )


def _r2_sorted(result: Discovery, table: Table) -> Diagnostic:
    topic = "Would a sort by R² give this order?"
    share, pairs = sortability(result.dag, linear_r2(table.values))
    if pairs < FEWEST_PAIRS:
        return Diagnostic(topic, "fine", "Too few paths to say whether R² grows along the order.", "")
    if 1 - SORTABLE < share < SORTABLE:
        return Diagnostic(
            topic, "fine", f"No: R² grows along {100 * share:.0f} % of the paths, 50 % is chance.", ""
        )
    grows = "grows" if share > 0.5 else "falls"
    return Diagnostic(
        topic,
        "note",
        f"R² {grows} along {100 * max(share, 1 - share):.0f} % of the paths: sorting by it alone gives nearly this order.",
        "Simulated tables often leak their order so; on real data it adds nothing. Compare with method='r2-sort'.",
    )


def _variance_sorted(result: Discovery, table: Table) -> Diagnostic:
    topic = "Would a sort by variance give this order?"
    share, pairs = sortability(result.dag, table.scale)
    if pairs < FEWEST_PAIRS:
        return Diagnostic(
            topic, "fine", "Too few paths to say whether the variance grows along the order.", ""
        )
    if 1 - SORTABLE < share < SORTABLE:
        return Diagnostic(
            topic,
            "fine",
            f"No: the variance grows along {100 * share:.0f} % of the paths, 50 % is chance.",
            "",
        )
    used = "" if table.standardized else " and the columns were not standardised, so it may have been used"
    return Diagnostic(
        topic,
        "note" if table.standardized else "doubt",
        f"The raw variance {'grows' if share > 0.5 else 'falls'} along {100 * max(share, 1 - share):.0f} % of the "
        f"paths{used}.",
        "Units carry no causal information; the columns were standardised, so nothing was read from them."
        if table.standardized
        else "Run again with standardize=True and compare.",
    )


def _discrete(table: Table) -> Diagnostic:
    topic = "Are the columns continuous?"
    few = min(FEW_VALUES, table.n_samples // 5)
    head = table.values[:1000]
    coarse = [
        name
        for j, name in enumerate(table.names)
        if len(np.unique(head[:, j])) < few and len(np.unique(table.values[:, j])) < few
    ]
    if not coarse:
        return Diagnostic(topic, "fine", "Every column takes many values.", "")
    return Diagnostic(
        topic,
        "doubt",
        f"{listed(coarse)} {'takes' if len(coarse) == 1 else 'take'} few distinct values; a discrete variable is no "
        "smooth function plus noise.",
        "Distrust the direction of their edges, or leave these columns out.",
        variables=tuple(coarse),
    )


def _outliers(table: Table) -> Diagnostic:
    topic = "Are there outliers?"
    spread = table.values.std(axis=0)
    far = np.abs(table.values - table.values.mean(axis=0)).max(axis=0) / np.where(spread > 0, spread, 1)
    wild = [table.names[j] for j in np.flatnonzero(far > OUTLIER)]
    if not wild:
        return Diagnostic(topic, "fine", f"No value lies over {OUTLIER:g} standard deviations out.", "")
    return Diagnostic(
        topic,
        "doubt",
        f"{listed(wild)} {'has' if len(wild) == 1 else 'have'} values over {OUTLIER:g} standard deviations out; a few "
        "rows may carry the result.",
        f"Check these rows for errors, or {table.other_transform}.",
        variables=tuple(wild),
    )


def _row_count(table: Table) -> Diagnostic:
    topic = "Are there enough rows?"
    n, d = table.n_samples, table.n_variables
    if n >= ROWS_PER_COLUMN * d:
        return Diagnostic(topic, "fine", f"{n} rows for {d} columns.", "")
    return Diagnostic(
        topic,
        "doubt",
        f"Only {n} rows for {d} columns; below {ROWS_PER_COLUMN} rows a column expect missed and reversed edges.",
        "Collect more rows, or leave out columns that matter least.",
    )
