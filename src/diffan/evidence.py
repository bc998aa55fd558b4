"""The evidence for every tested edge, and the edges it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from diffan.constraints import Constraints


@dataclass(frozen=True, eq=False)
class EdgeEvidence:
    """All arrays are [d, d] with entry [i, j] speaking of the edge i -> j."""

    p_values: npt.NDArray[np.float64]  # in [0, 1]; 1.0 where not tested
    tested: npt.NDArray[np.bool_]
    chosen: npt.NDArray[np.bool_]  # the edges kept
    cutoff: float  # edges with p_values < cutoff were kept
    measures: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)  # NaN where not tested
    warnings: tuple[str, ...] = ()

    def at_cutoff(self, cutoff: float) -> EdgeEvidence:
        """The same evidence with the edges kept at another p-value cutoff."""
        return replace(self, chosen=self.tested & (self.p_values < cutoff), cutoff=cutoff)

    def settled(self, rules: Constraints, order: Sequence[int]) -> EdgeEvidence:
        """The same evidence with its edges brought into agreement with what is known."""
        return replace(self, chosen=rules.settled_edges(self.chosen, self.p_values, order))
