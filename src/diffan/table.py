"""A checked numeric table: named columns, standardised values, what was noticed on the way in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from diffan.errors import FitError, InputError
from diffan.files import read_frame

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
Missing = Literal["error", "drop"]
Transform = Literal["none", "log", "rank"]

MIN_ROWS = 10
COLLINEAR = 1e-10  # smallest eigenvalue of the correlation matrix that still counts as full rank
INFLATION = 1e3  # variance inflation above which columns are called nearly collinear (R^2 > 0.999)
OUTLIER = 12.0  # standard deviations; a Laplace sample of 1e5 rows stays below 10


@dataclass(frozen=True, eq=False)
class Table:
    """Rows are samples, columns are variables; `values` is standardised and read-only.

    Standardised values are rounded to single precision, so that a change of units, which moves only the
    last bits of a double, gives the same table to the last bit.
    """

    values: FloatArray  # [n, d], mean 0 and standard deviation 1 per column
    names: tuple[str, ...]
    center: FloatArray  # [d], column means before standardising
    scale: FloatArray  # [d], column standard deviations before standardising
    transform: Transform = "none"
    standardized: bool = True
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        missing: Missing = "error",
        transform: Transform = "none",
        standardize: bool = True,
    ) -> Table:
        """Check a DataFrame, array, polars / pyarrow table or file and standardise a copy of it.

        `missing="drop"` drops rows with missing cells instead of refusing them; `transform` is applied to
        every column first: "log" for positive heavy-tailed columns, "rank" for normal scores of ranks.
        """
        if isinstance(data, Table):
            return data
        _check_choice("missing", missing, ("error", "drop"))
        _check_choice("transform", transform, ("none", "log", "rank"))
        frame, notes = _as_frame(data)
        names = _checked_names(frame)
        raw = _numeric_values(frame, names)
        raw, dropped = _without_missing(raw, names, missing)
        _check_shape(raw)
        _check_constant(raw, names)
        raw = _transformed(raw, names, transform)
        center, scale = _moments(raw)
        values = (raw - center) / scale
        _check_collinear(values, names)
        notes += dropped + _noticed(values, names, transform)
        if not standardize:
            values = values * scale
        values = values.astype(np.float32).astype(np.float64)
        values.setflags(write=False)
        return cls(values, names, center, scale, transform, standardize, tuple(notes))

    @property
    def n_samples(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_variables(self) -> int:
        return int(self.values.shape[1])

    def select(self, positions: Sequence[int]) -> Table:
        """The table with only these columns, in this order."""
        where = list(positions)
        values = self.values[:, where]
        values.setflags(write=False)
        names = tuple(self.names[i] for i in where)
        return replace(self, values=values, names=names, center=self.center[where], scale=self.scale[where])

    def rows(self, which: npt.NDArray[np.intp]) -> Table:
        """The table with only these rows, which may repeat, standardised again if it was."""
        part = self.values[which]
        center, scale = part.mean(axis=0), part.std(axis=0)
        constant = [self.names[j] for j in np.flatnonzero(scale < 1e-12)]
        if constant:
            raise FitError(f"Constant in a part of the rows: {_listed(constant)}; drop these columns.")
        unit = self.scale if self.standardized else np.ones_like(scale)
        values = (part - center) / scale if self.standardized else part
        values = values.astype(np.float32).astype(np.float64)
        values.setflags(write=False)
        return replace(
            self, values=values, center=self.center + center * unit, scale=scale * unit, warnings=()
        )

    def canonical_positions(self) -> list[int]:
        """Column positions in an order that depends on the columns' contents alone.

        Ranks come first because a change of units leaves them alone; values only break ties.
        """
        head = self.values[:4096]

        def key(j: int) -> tuple[bytes, bytes, bytes]:
            ranks = np.unique(head[:, j], return_inverse=True)[1]
            rounded = np.round(self.values[:, j], 4) + 0.0
            return _digest(ranks.astype(np.int64)), _digest(rounded), _digest(self.values[:, j])

        return sorted(range(self.n_variables), key=key)

    def fingerprint(self) -> str:
        """A digest of names and values, to tell one table from another."""
        digest = hashlib.sha256("\x1f".join(self.names).encode())
        digest.update(np.ascontiguousarray(self.values).tobytes())
        return digest.hexdigest()


def _check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise InputError(f"The {option!r} parameter must be one of {expected}. Got {value!r} instead.")


def _digest(array: npt.NDArray[Any]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


def _as_frame(data: Any) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    if isinstance(data, (str, os.PathLike)):
        return read_frame(data)
    if isinstance(data, pd.DataFrame):
        return data, []
    library = type(data).__module__.partition(".")[0]
    if library == "polars":
        return pd.DataFrame({name: data[name].to_numpy() for name in data.columns}), []
    if library == "pyarrow":
        columns = [data.column(i).to_pandas() for i in range(data.num_columns)]
        return pd.concat(columns, axis=1).set_axis(data.column_names, axis=1), []
    array = data if isinstance(data, np.ndarray) else _as_array(data)
    if array.dtype.names:
        return pd.DataFrame(array), []
    if array.ndim != 2:
        hint = "reshape your data to rows of samples and columns of variables"
        raise InputError(
            f"A table must have two dimensions. Got {array.ndim} with shape {array.shape}; {hint}."
        )
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])], copy=False), []


def _as_array(data: Any) -> npt.NDArray[Any]:
    if not isinstance(data, (list, tuple)) and not hasattr(data, "__array__"):
        kinds = "a DataFrame, a numpy array, a polars or pyarrow table, or the path of a CSV or Parquet file"
        raise InputError(f"A table must be {kinds}. Got {type(data).__name__} instead.")
    try:
        return np.asarray(data)
    except (ValueError, TypeError):
        raise InputError("A table given as lists must have rows of equal length.") from None


def _checked_names(frame: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(name) for name in frame.columns)
    repeated = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if repeated:
        raise InputError(f"Column names must be unique. Repeated: {_listed(repeated)}; rename them.")
    return names


def _numeric_values(frame: pd.DataFrame, names: tuple[str, ...]) -> FloatArray:
    import pandas as pd

    values = np.empty(frame.shape, dtype=np.float64)
    refused: list[str] = []
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if column.dtype.kind == "c":
            raise InputError(
                f"Complex data not supported, but {name!r} holds it; keep the real part or the modulus."
            )
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "buif":
            values[:, j] = column.to_numpy()
        elif pd.api.types.is_numeric_dtype(column.dtype):
            values[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            example = _not_a_number(column)
            if example is None and column.dtype == object:
                values[:, j] = pd.to_numeric(column, errors="coerce").astype(np.float64)
            else:
                refused.append(f"{name!r} (such as {example!r})" if example is not None else repr(name))
    if refused:
        raise InputError(
            f"Every column must hold numbers. Not so: {', '.join(refused[:8])}{_more(refused)}; drop or encode them."
        )
    return values


def _not_a_number(column: pd.Series) -> object:
    """The first cell that is neither a number nor missing."""
    import pandas as pd

    if column.dtype != object and not pd.api.types.is_string_dtype(column.dtype):
        return column.iloc[0] if len(column) else None
    present = column.dropna()
    bad = present[
        pd.to_numeric(present, errors="coerce").isna() | present.map(lambda v: isinstance(v, (str, complex)))
    ]
    return bad.iloc[0] if len(bad) else None


def _without_missing(
    raw: FloatArray, names: tuple[str, ...], missing: Missing
) -> tuple[FloatArray, list[str]]:
    bad = ~np.isfinite(raw)
    if not bad.any():
        return raw, []
    rows = bad.any(axis=1)
    if missing == "drop":
        return raw[~rows], [
            f"{int(rows.sum())} of {len(raw)} rows had missing or infinite cells and were dropped."
        ]
    columns = [names[j] for j in np.flatnonzero(bad.any(axis=0))]
    kinds = {"missing (NaN)": int(np.isnan(raw).sum()), "infinite": int(np.isinf(raw).sum())}
    found = " and ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    raise InputError(
        f"Every cell must be a finite number. Found {found} cells in {_listed(columns)}; fill them, or drop the "
        f"{int(rows.sum())} rows concerned with missing='drop'."
    )


def _check_shape(raw: FloatArray) -> None:
    n, d = raw.shape
    if d < 2:
        found = f"{d} feature(s) (shape={raw.shape})"
        raise InputError(f"Found {found} while a minimum of 2 is required; causes need at least two columns.")
    if n < MIN_ROWS:
        found = f"{n} sample(s) (shape={raw.shape})"
        raise InputError(f"Found {found} while a minimum of {MIN_ROWS} is required; collect more rows.")


def _check_constant(raw: FloatArray, names: tuple[str, ...]) -> None:
    largest = np.abs(raw).max(axis=0)
    spread = raw.max(axis=0) / np.where(largest > 0, largest, 1) - raw.min(axis=0) / np.where(
        largest > 0, largest, 1
    )
    constant = [names[j] for j in np.flatnonzero(spread < 1e-13)]
    if constant:
        raise InputError(f"Every column must vary. Constant: {_listed(constant)}; drop them.")


def _transformed(raw: FloatArray, names: tuple[str, ...], transform: Transform) -> FloatArray:
    if transform == "none":
        return raw
    if transform == "log":
        low = [names[j] for j in np.flatnonzero(raw.min(axis=0) <= 0)]
        if low:
            raise InputError(
                f"transform='log' needs positive columns. Not so: {_listed(low)}; use transform='rank'."
            )
        return np.log(raw)
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores: FloatArray = ndtri(rankdata(raw, axis=0) / (len(raw) + 1))
    return scores


def _moments(raw: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations, safe from overflow for columns of any magnitude."""
    largest = np.abs(raw).max(axis=0)
    unit = raw / largest
    center = unit.mean(axis=0)
    return center * largest, (unit - center).std(axis=0) * largest


def _check_collinear(values: FloatArray, names: tuple[str, ...]) -> None:
    correlation = values.T @ values / len(values)
    pairs = np.argwhere(np.triu(np.abs(correlation) > 1 - COLLINEAR, k=1))
    if len(pairs):
        named = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in pairs[:8])
        raise InputError(
            f"No column may repeat another. Exactly proportional: {named}; drop one of each pair."
        )
    if len(values) <= len(names) + 1:
        return  # with so few rows every table is collinear, and the columns are not to blame
    eigenvalues, vectors = np.linalg.eigh(correlation)
    if eigenvalues[0] < COLLINEAR:
        weight = np.abs(vectors[:, 0])
        involved = [names[j] for j in np.flatnonzero(weight > 0.01 * weight.max())]
        raise InputError(
            f"No column may be an exact linear combination of others. Collinear: {_listed(involved)}; drop one of them."
        )


def _noticed(values: FloatArray, names: tuple[str, ...], transform: Transform) -> list[str]:
    """What does not forbid a run but weakens it, one sentence each."""
    n, d = values.shape
    notes: list[str] = []
    few = min(20, n // 5)
    discrete = [
        names[j]
        for j in range(d)
        if len(np.unique(values[:1000, j])) < few and len(np.unique(values[:, j])) < few
    ]
    if discrete:
        notes.append(
            f"Few distinct values in {_listed(discrete)}: discrete columns break the additive-noise model; "
            "trust their edges less."
        )
    if n > d + 1:
        inflation = np.diag(np.linalg.inv(values.T @ values / n))
        close = [names[j] for j in np.flatnonzero(inflation > INFLATION)]
        if close:
            notes.append(
                f"Nearly collinear: {_listed(close)}; their edges are hard to tell apart, consider dropping one."
            )
    if n < 10 * d:
        notes.append(
            f"Only {n} rows for {d} columns; expect missed and reversed edges below 10 rows per column."
        )
    wild = [names[j] for j in np.flatnonzero(np.abs(values).max(axis=0) > OUTLIER)]
    if wild:
        advice = "" if transform == "rank" else "; check them, or try transform='log' or transform='rank'"
        notes.append(f"Extreme outliers (over {OUTLIER:g} standard deviations) in {_listed(wild)}{advice}.")
    return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + _more(names)


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - 8} more" if len(items) > 8 else ""
