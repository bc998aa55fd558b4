"""How sure the answer is: what the replicates found, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from diffan.constraints import BoolArray, Constraints, earlier
from diffan.dag import Dag, topological_indices
from diffan.stability import Threshold, stability_threshold

Scheme = Literal["subsample", "bootstrap"]
FloatArray = npt.NDArray[np.float64]
BOOTSTRAP_THRESHOLD = 0.9  # choice: no bound holds for a bootstrap


@dataclass(frozen=True)
class Replicate:
    """The order and the edges that one replicate found, by column positions."""

    order: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Confidence:
    """Shares of replicates; arrays are [d, d] in the order of the discovery's names."""

    scheme: Scheme
    n_replicates: int
    frequency: FloatArray  # [i, j]: share with the edge i -> j
    precedence: FloatArray  # [i, j]: share whose order has i before j
    threshold: float  # edges at least as frequent are called stable
    expected_false: float  # bound on how many of them are there by chance; NaN where none is known
    worst_case: float  # the same bound without any assumption
    consensus: Dag  # edges in more than half of the replicates, the more frequent first where they clash

    @property
    def adjacency(self) -> FloatArray:
        """The share of replicates that join i and j, either way."""
        return self.frequency + self.frequency.T

    @property
    def direction(self) -> FloatArray:
        """Of the replicates that join i and j, the share with i -> j; NaN where none does."""
        joined = self.adjacency
        return np.divide(self.frequency, joined, out=np.full_like(joined, np.nan), where=joined > 0)

    @property
    def stable(self) -> BoolArray:
        """The edges that reach the threshold."""
        return np.asarray(self.frequency >= self.threshold)

    def agreement(self, order: Sequence[int]) -> float:
        """The mean share of replicates that agree with an order of positions about who comes first."""
        before = earlier(order)
        return float(self.precedence[before].mean()) if before.any() else 1.0

    def rearranged(self, positions: npt.NDArray[np.intp]) -> Confidence:
        """The same with the columns in another order: column positions[k] comes k-th."""
        cells = np.ix_(positions, positions)
        return Confidence(
            self.scheme,
            self.n_replicates,
            self.frequency[cells],
            self.precedence[cells],
            self.threshold,
            self.expected_false,
            self.worst_case,
            self.consensus.relabelled([int(k) for k in positions]),
        )

    def record(self) -> dict[str, Any]:
        """Plain values for a saved run."""
        return {
            "scheme": self.scheme,
            "n_replicates": self.n_replicates,
            "frequency": self.frequency.tolist(),
            "precedence": self.precedence.tolist(),
            "threshold": self.threshold,
            "expected_false": self.expected_false if np.isfinite(self.expected_false) else None,
            "worst_case": self.worst_case if np.isfinite(self.worst_case) else None,
            "consensus": np.argwhere(self.consensus.adjacency).tolist(),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any], names: Sequence[str]) -> Confidence:
        """The inverse of `record`; a ValueError says what is wrong with it."""
        d = len(names)
        frequency, precedence = (_shares(record[key], d) for key in ("frequency", "precedence"))
        edges = [(names[i], names[j]) for i, j in record["consensus"] if min(i, j) >= 0]
        if record["scheme"] not in get_args(Scheme):
            raise ValueError("its replicates are of an unknown kind")
        return cls(
            record["scheme"],
            int(record["n_replicates"]),
            frequency,
            precedence,
            float(record["threshold"]),
            _number(record["expected_false"]),
            _number(record["worst_case"]),
            Dag.from_edges(edges, names),
        )


def count(
    replicates: Sequence[Replicate],
    names: Sequence[str],
    rules: Constraints,
    *,
    scheme: Scheme,
    expected_false: float,
) -> Confidence:
    """Count edges and precedences; the consensus obeys what is known, as every replicate does."""
    d, n = len(names), len(replicates)
    frequency, precedence = np.zeros((d, d)), np.zeros((d, d))
    for replicate in replicates:
        for edge in replicate.edges:
            frequency[edge] += 1 / n
        precedence += earlier(replicate.order) / n
    frequency, precedence = np.round(frequency, 12), np.round(precedence, 12)
    threshold = _threshold(frequency, rules, n, scheme, expected_false)
    return Confidence(
        scheme,
        n,
        frequency,
        precedence,
        threshold.frequency,
        threshold.expected_false,
        threshold.worst_case,
        Dag(_consensus(frequency, rules), names),
    )


def _threshold(
    frequency: FloatArray, rules: Constraints, n: int, scheme: Scheme, expected_false: float
) -> Threshold:
    if scheme == "bootstrap":
        return Threshold(BOOTSTRAP_THRESHOLD, np.nan, np.nan)
    in_question = rules.permitted & ~rules.required
    return stability_threshold(
        float(frequency[in_question].sum()), int(in_question.sum()), n // 2, expected_false
    )


def _consensus(frequency: FloatArray, rules: Constraints) -> BoolArray:
    dag = rules.strongest_dag(np.where(frequency > 0.5, frequency, 0.0))
    order = topological_indices((dag | rules.must_precede).astype(np.int8))
    return rules.settled_edges(dag, 1.0 - frequency, order)


def _shares(values: Any, d: int) -> FloatArray:
    table = np.asarray(values, dtype=np.float64).reshape(d, d)
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError("a frequency is not between 0 and 1")
    return table


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
