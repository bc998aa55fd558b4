"""What is asked of a table before it is used: the refusals, the notices, and which columns and rows are wanted."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.rows import MOST_COLUMNS

FloatArray = npt.NDArray[np.float64]
Transform = Literal["none", "log", "rank"]
Transforming = Literal["auto", "none", "log", "rank"]
"""What may be asked for; "auto" becomes "log" or "none" by the columns."""
TRANSFORMS = ("auto", "none", "log", "rank")

MIN_ROWS = 10
COLLINEAR = 1e-10  # smallest eigenvalue of the correlation matrix that still counts as full rank
INFLATION = 1e3  # variance inflation above which columns are called nearly collinear (R^2 > 0.999)
OUTLIER = 12.0  # standard deviations; a Laplace sample of 1e5 rows stays below 10


def check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not among those an option knows."""
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise InputError(f"The {option!r} parameter must be one of {expected}. Got {value!r} instead.")


def selected_columns(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where the wanted names are; refused with the nearest name when one is not there."""
    if isinstance(wanted, str) or not all(isinstance(name, str) for name in wanted):
        raise InputError(f"The 'columns' parameter must be a list of column names. Got {wanted!r} instead.")
    place = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in place:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {listed(names)}."
            raise InputError(f"The table has no column {name!r}; {hint}")
    if len(set(wanted)) < len(wanted):
        raise InputError("The 'columns' parameter names a column twice; name each once.")
    return [place[name] for name in wanted]


def sampled_rows(n_rows: int, wanted: int | None, seed: int) -> npt.NDArray[np.int64] | None:
    """Sorted positions of a random sample of rows; None when all are wanted.

    It depends on the seed and the number of rows alone, so that it is the same whatever the columns.
    """
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)) or wanted < 1:
        raise InputError(f"The 'rows' parameter must be a whole number of 1 or more. Got {wanted!r} instead.")
    if wanted >= n_rows:
        return None
    rng = np.random.default_rng([seed, zlib.crc32(b"rows")])
    return np.sort(rng.choice(n_rows, wanted, replace=False, shuffle=False))


def farthest(low: FloatArray, high: FloatArray, center: FloatArray, scale: FloatArray) -> FloatArray:
    """How many standard deviations from its mean each column goes at the most."""
    middle = 0.5 * center  # in halves: a difference of two finite numbers may overflow
    return np.asarray(np.maximum(0.5 * high - middle, middle - 0.5 * low) / (0.5 * scale))


def may_need_logarithms(low: FloatArray, largest: FloatArray) -> bool:
    """Whether all columns are positive and some have extreme outliers, as concentrations and incomes do."""
    return bool((low > 0).all() and (largest > OUTLIER).any())


def logarithms_taken(largest: FloatArray, names: tuple[str, ...]) -> str:
    """The sentence on what "auto" has done, for columns that went so far before."""
    wild = [names[j] for j in np.flatnonzero(largest > OUTLIER)]
    return (
        f"Logarithms were taken of every column: all are positive, and {listed(wild)} had extreme outliers (over "
        f"{OUTLIER:g} standard deviations); transform='none' keeps the columns as they are."
    )


def check_shape(n: int, d: int) -> None:
    """Refuse a table that is too small for causes, or wider than anything here can be."""
    if d > MOST_COLUMNS:
        raise InputError(f"A table may have at most {MOST_COLUMNS:,} columns. Got {d:,}; select some.")
    if d < 2:
        found = f"{d} feature(s) (shape={(n, d)})"
        raise InputError(f"Found {found} while a minimum of 2 is required; causes need at least two columns.")
    if n < MIN_ROWS:
        found = f"{n} sample(s) (shape={(n, d)})"
        raise InputError(f"Found {found} while a minimum of {MIN_ROWS} is required; collect more rows.")


def check_constant(low: FloatArray, high: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse columns whose least and greatest values are the same but for rounding."""
    largest = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(largest > 0, largest, 1)
    spread = high / unit - low / unit
    constant = [names[j] for j in np.flatnonzero(spread < 1e-13)]
    if constant:
        raise InputError(f"Every column must vary. Constant: {listed(constant)}; drop them.")


def check_collinear(correlation: FloatArray, n_rows: int, names: tuple[str, ...]) -> None:
    """Refuse columns that repeat one another, or sums of others."""
    pairs = np.argwhere(np.triu(np.abs(correlation) > 1 - COLLINEAR, k=1))
    if len(pairs):
        named = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in pairs[:8])
        raise InputError(
            f"No column may repeat another. Exactly proportional: {named}; drop one of each pair."
        )
    if n_rows <= len(names) + 1:
        return  # with so few rows every table is collinear, and the columns are not to blame
    eigenvalues, vectors = np.linalg.eigh(correlation)
    if eigenvalues[0] < COLLINEAR:
        weight = np.abs(vectors[:, 0])
        involved = [names[j] for j in np.flatnonzero(weight > 0.01 * weight.max())]
        raise InputError(
            f"No column may be an exact linear combination of others. Collinear: {listed(involved)}; drop one of them."
        )


def noticed(
    values: npt.NDArray[np.floating],
    n: int,
    correlation: FloatArray,
    largest: FloatArray,
    names: tuple[str, ...],
    transform: Transform,
    untried_logarithms: bool,
) -> list[str]:
    """What does not forbid a run but weakens it, one sentence each.

    `values` may be a sample of the n rows; `largest` are the columns' largest absolute values over all of them.
    """
    d = len(names)
    notes: list[str] = []
    few = min(20, len(values) // 5)
    discrete = [
        names[j]
        for j in range(d)
        if len(np.unique(values[:1000, j])) < few and len(np.unique(values[:, j])) < few
    ]
    if discrete:
        notes.append(
            f"Few distinct values in {listed(discrete)}: discrete columns break the additive-noise model; "
            "trust their edges less."
        )
    if n > d + 1:
        inflation = np.diag(np.linalg.inv(correlation))
        close = [names[j] for j in np.flatnonzero(inflation > INFLATION)]
        if close:
            notes.append(
                f"Nearly collinear: {listed(close)}; their edges are hard to tell apart, consider dropping one."
            )
    if n < 10 * d:
        notes.append(
            f"Only {n} rows for {d} columns; expect missed and reversed edges below 10 rows per column."
        )
    wild = [names[j] for j in np.flatnonzero(largest > OUTLIER)]
    if wild:
        advice = (
            ""
            if transform == "rank"
            else f"; check them, or {other_transform(transform, untried_logarithms)}"
        )
        notes.append(f"Extreme outliers (over {OUTLIER:g} standard deviations) in {listed(wild)}{advice}.")
    return notes


def other_transform(used: Transform, untried_logarithms: bool) -> str:
    """Advice to try one that was not."""
    if used == "rank":
        return "try transform='log' if all columns are positive"
    return "try transform='log' or 'rank'" if untried_logarithms else "try transform='rank'"


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(map(repr, names[:8])) + more(names)


def more(items: Sequence[object]) -> str:
    """How many items a list of eight leaves out."""
    return f" and {len(items) - 8} more" if len(items) > 8 else ""
