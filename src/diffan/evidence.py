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
    cutoff: float  # edges with a smaller p-value were kept
    measures: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)  # NaN where not tested
    warnings: tuple[str, ...] = ()
    judged_by: str = (
        "p_value"  # what the cutoff is held against: these, or an adjusted p-value among the measures
    )

    def at_cutoff(self, cutoff: float) -> EdgeEvidence:
        """The same evidence with the edges kept at another cutoff."""
        judged = self.p_values if self.judged_by == "p_value" else self.measures[self.judged_by]
        return replace(self, chosen=self.tested & (judged < cutoff), cutoff=cutoff)  # NaN is never below

    def settled(self, rules: Constraints, order: Sequence[int]) -> EdgeEvidence:
        """The same evidence with its edges brought into agreement with what is known."""
        return replace(self, chosen=rules.settled_edges(self.chosen, self.p_values, order))

    def rearranged(self, positions: npt.NDArray[np.intp]) -> EdgeEvidence:
        """The same evidence with the columns in another order: column positions[k] comes k-th."""
        cells = np.ix_(positions, positions)
        return replace(
            self,
            p_values=self.p_values[cells],
            tested=self.tested[cells],
            chosen=self.chosen[cells],
            measures={name: values[cells] for name, values in self.measures.items()},
        )
