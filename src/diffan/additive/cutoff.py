"""Which p-values are small enough: false-discovery control, or the best guess for this graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SMALLEST_P = 1e-15  # a smaller p-value says no more about how p-values of true edges spread
MOST_SPREAD = 0.4  # true edges' p-values are taken as a * p^(a - 1) with a at most this
LOOSEST = 0.05  # the loosest cutoff anyone prunes at
TRUE_BEFORE, FALSE_BEFORE = (
    1.0,
    4.0,
)  # pseudo-counts: one edge in five, where there are few p-values to learn from
SPREAD_BEFORE = 0.15  # and how p-values of true edges spread


def fdr_cutoff(p_values: Array, level: float) -> float:
    """Benjamini and Hochberg: the cutoff at which at most a share `level` of the kept edges is expected to be false."""
    ranked = np.sort(p_values)
    passed = np.flatnonzero(ranked <= level * np.arange(1, len(ranked) + 1) / max(len(ranked), 1))
    return float(np.nextafter(ranked[passed[-1]], np.inf)) if len(passed) else 0.0


def adaptive_cutoff(p_values: Array, posterior: float) -> float:
    """The p-value at which an edge is true with the given probability, judged by all tested edges together.

    p-values of absent edges are uniform and those of true edges have density a * p^(a - 1); EM finds a and the share
    of true edges. A dense graph gets a loose cutoff, a sparse one a strict one. Keeping what is more likely true than
    not (`posterior` 0.5) minimises the expected number of wrong edges if the mixture holds.
    """
    if not len(p_values):
        return 0.0
    log_p = np.log(np.maximum(p_values, SMALLEST_P))
    share, spread = 0.2, SPREAD_BEFORE
    for _ in range(300):
        density = share * spread * np.exp((spread - 1) * log_p)
        true = density / (density + 1 - share)
        share = (true.sum() + TRUE_BEFORE) / (len(log_p) + TRUE_BEFORE + FALSE_BEFORE)
        spread = min((true.sum() + 1) / (1 / SPREAD_BEFORE - true @ log_p), MOST_SPREAD)
    odds = posterior / (1 - posterior) * (1 - share) / share
    return float(min((odds / spread) ** (1 / (spread - 1)), LOOSEST))
