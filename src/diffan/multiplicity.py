"""p-values adjusted for having tested many edges; the raw ones are kept beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from diffan.evidence import EdgeEvidence

Adjust = Literal["none", "holm", "by"]
LEVEL = 0.05  # choice: the usual error rate, where no cutoff is given
Array = npt.NDArray[np.float64]


def holm(p_values: npt.ArrayLike) -> Array:
    """Holm (1979): keeping those below a level has at most that chance of any false edge, however tests depend."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    return _back(np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1)), order)


def benjamini_yekutieli(p_values: npt.ArrayLike) -> Array:
    """Benjamini and Yekutieli (2001): at most a share `level` of those below it is false, however tests depend."""
    raw = np.asarray(p_values, dtype=np.float64)
    order, rank = np.argsort(raw, kind="stable"), np.arange(1, len(raw) + 1)
    each = raw[order] * len(raw) * (1 / rank).sum() / rank
    return _back(np.minimum.accumulate(each[::-1])[::-1], order)


def adjusted(
    evidence: EdgeEvidence, by: Adjust, cutoff: float, *, apart: npt.NDArray[np.bool_] | None = None
) -> EdgeEvidence:
    """The evidence with both adjusted p-values among its measures and its edges judged by one of them.

    The family is all tested edges but those `apart`: edges known beforehand are no discoveries.
    """
    family = evidence.tested if apart is None else evidence.tested & ~apart
    measures = dict(evidence.measures)
    for name, adjust in (("p_holm", holm), ("p_by", benjamini_yekutieli)):
        measures[name] = np.full(evidence.p_values.shape, np.nan)
        measures[name][family] = adjust(evidence.p_values[family])
    return replace(evidence, measures=measures, judged_by=f"p_{by}").at_cutoff(cutoff)


def _back(ranked: Array, order: npt.NDArray[np.intp]) -> Array:
    """Values by rank, put where they came from, none above 1."""
    found = np.empty_like(ranked)
    found[order] = np.minimum(ranked, 1.0)
    return found
