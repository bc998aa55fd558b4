"""The settings of the likelihood stage, checked when they are made; each default says where it comes from.

"measured" is our tuning on the paper's grid, seeds below 1000 (`benchmarks/likelihood_tuning.py`); "choice" is a
matter of taste or safety.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from diffan.checks import one_of, refuse, whole

EntropyKind = Literal["auto", "gauss", "spacing"]
Engine = Literal["auto", "exact", "low_rank"]


@dataclass(frozen=True, kw_only=True)
class LikelihoodSettings:
    """The kernel regression, the entropy, the search, and how much a move or an edge must pay."""

    # measured: from near additive to joint functions of all parents; each node takes its own
    kernel_interactions: tuple[float, ...] = (0.2, 0.5, 0.85)
    kernel_bandwidths: tuple[float, ...] = (0.7, 1.0)  # measured: in standard deviations of a column
    # measured: noise variance over signal variance; each node takes its own
    kernel_ridges: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    # choice: prior variance of a straight line in each parent; 0 is none, 100 is as good as any height; each node takes its own
    kernel_lines: tuple[float, ...] = (0.0, 100.0)
    # measured: what a node's lines must pay; the most of 0 to 20 finds as much where functions are straight, and takes
    # the fewest lines where they are not
    line_nats: float = 20.0
    entropy: EntropyKind = "auto"  # Gaussian unless the residuals' skewness or kurtosis object

    move_nats: float = 4.0  # measured: what moving a variable must pay
    edge_nats: float = 4.0  # measured: the least an edge must pay, whatever the null says
    edge_fdr: float = 0.05  # choice: share of false edges among the chosen, by the null of shuffled columns
    edge_odds: bool = True  # measured: ask more where barely paying edges are more likely false than true
    charge_misfit: bool = (
        True  # measured: where the noise varies with earlier columns, evidence counts for less
    )
    null_fits: int = 200  # choice: fits to shuffled columns, pooled over nodes, that the null is learnt from

    shortlist: int = 2  # measured: candidates fitted at each step, those with the steepest likelihood
    # measured: how many of the heaviest columns of a relaxation are tried at once when none pays alone; then those in between
    leaps: tuple[int, ...] = (3, 5, 8, 12, 18)
    first_rows: int = 500  # measured: rows of the first pass, which makes the large moves cheaply
    first_nats: float = 8.0  # measured: what an edge and a move must pay in the first pass
    max_sweeps: int = 50  # choice: a safeguard; a handful of sweeps is usual

    engine: Engine = "auto"  # by the number of rows
    exact_rows: int = 1500  # choice: beyond it the low-rank engine is faster on a CPU
    exact_rows_gpu: int = 3000  # choice: exact solves are cheap there
    # measured: landmarks for sets of 1, 2, 3 parents, even where larger sets are exact; errors up to 1000 rows are 0.7, 0.8
    # and 2.1 nats (benchmarks/low_rank_error.py)
    kernel_landmarks: tuple[int, ...] = (48, 128, 256)
    max_landmarks: int = 512  # choice: for larger parent sets when the exact engine is out of reach
    scout_rows: int = 1000  # choice: rows that rank the candidates when fits are low-rank
    max_rows: int = 20_000  # choice: more rows are thinned to this many
    # choice: bound on rows times squared columns, as the search asks for about that many fits; 8 times that on a GPU
    row_budget: int = 3_500_000
    least_rows: int = 1000  # choice: that are used however many columns there are
    kernel_memory_mb: int = 1024  # choice: bound on the stored column kernels; 8 times that on a GPU
    batch_memory_mb: int = 512  # choice: bound on the matrices of one batch of fits; 8 times that on a GPU

    def __post_init__(self) -> None:
        one_of(self, "entropy", get_args(EntropyKind))
        one_of(self, "engine", get_args(Engine))
        for name in ("edge_odds", "charge_misfit"):
            if not isinstance(getattr(self, name), bool):
                raise refuse(self, name, "True or False")
        _numbers(self, "kernel_interactions", most=1.0)
        _numbers(self, "kernel_bandwidths", most=1e3)
        _numbers(self, "kernel_ridges", most=1e3)
        _numbers(self, "kernel_lines", most=1e3, zero=True)
        for name in ("leaps", "kernel_landmarks"):
            _numbers(self, name, most=1e6, whole=True)
        for name in ("move_nats", "edge_nats", "first_nats", "line_nats"):
            _positive(self, name, below=math.inf)
        _positive(self, "edge_fdr", below=1.0)
        for name in (
            "shortlist",
            "max_sweeps",
            "null_fits",
            "row_budget",
            "kernel_memory_mb",
            "batch_memory_mb",
        ):
            whole(self, name, least=1)
        for name in (
            "exact_rows",
            "exact_rows_gpu",
            "max_landmarks",
            "scout_rows",
            "max_rows",
            "first_rows",
            "least_rows",
        ):
            whole(self, name, least=10)

    def price(self, last: bool) -> float:
        """What an edge must pay in the last pass, or in the one before it."""
        return self.edge_nats if last else self.first_nats


def _positive(settings: object, name: str, *, below: float) -> None:
    value = getattr(settings, name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0.0 < value < below:
        raise refuse(
            settings, name, "a number above 0" + (f" and below {below:g}" if below < math.inf else "")
        )


def _numbers(settings: object, name: str, *, most: float, whole: bool = False, zero: bool = False) -> None:
    values = getattr(settings, name)
    kinds = int if whole else (int, float)
    fine = isinstance(values, tuple) and all(
        isinstance(v, kinds) and not isinstance(v, bool) and (0.0 < v <= most or (zero and v == 0))
        for v in values
    )
    if not fine or (not values and name != "leaps"):
        what = "whole numbers" if whole else "numbers"
        raise refuse(
            settings, name, f"a tuple of {what} {'from' if zero else 'above'} 0 and at most {most:g}"
        )
