"""How clearly each leaf was chosen: the best against the second best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diffan.discovery import Discovery


@dataclass(frozen=True)
class LeafChoice:
    """One step of the peeling; variables by their position in the run's `names`."""

    leaf: int
    second: int
    value: float  # the leaf's criterion, least for a leaf
    next_value: float
    margin: float  # 0 is a tie, 1 no contest


def leaf_choices(result: Discovery) -> list[LeafChoice]:
    """Every leaf choice, the first removed first; empty when the method keeps no evidence."""
    found: list[LeafChoice] = []
    for step in [] if result.leaf_evidence is None else result.leaf_evidence:
        there = np.flatnonzero(np.isfinite(step))
        if len(there) < 2:
            continue
        best, second = (int(k) for k in there[np.argsort(step[there], kind="stable")[:2]])
        value, following = float(step[best]), float(step[second])
        margin = min(max(1 - value / following, 0.0), 1.0) if following > 0 else 0.0
        found.append(LeafChoice(best, second, value, following, margin))
    return found
