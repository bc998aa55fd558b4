"""Orders that cost nothing: by raw variance, by R^2, by chance.

A method that does not beat these on a benchmark has learnt what the benchmark gives away: variances that grow
along the causal order (Reisach et al. 2021), or explained shares of variance that do, which survive
standardising (Reisach et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from diffan.context import Context
from diffan.errors import InputError
from diffan.explained import linear_r2
from diffan.ordering.result import Ordering
from diffan.table import Table

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class VarSortOptions:
    """Sorting by raw variance has no options."""


@dataclass(frozen=True, kw_only=True)
class R2SortOptions:
    """Sorting by R^2 has no options."""


@dataclass(frozen=True, kw_only=True)
class RandomOptions:
    """A random order has no options beyond the seed."""


SortOptions: TypeAlias = VarSortOptions | R2SortOptions | RandomOptions


def find_order(table: Table, options: SortOptions, context: Context) -> Ordering:
    """Order the columns by the criterion the options stand for, least first, as far as knowledge allows."""
    return Ordering(order=context.rules(table.n_variables).mended(_sorted(table, options, context)))


def _sorted(table: Table, options: SortOptions, context: Context) -> list[int]:
    if isinstance(options, VarSortOptions):
        return _ascending(table.scale)
    if isinstance(options, R2SortOptions):
        return _ascending(linear_r2(table.values))
    if isinstance(options, RandomOptions):
        return [int(node) for node in context.rng("random order").permutation(table.n_variables)]
    raise InputError(f"A sort needs VarSortOptions, R2SortOptions or RandomOptions. Got {options!r} instead.")


def _ascending(criterion: FloatArray) -> list[int]:
    return [int(node) for node in np.argsort(criterion, kind="stable")]
