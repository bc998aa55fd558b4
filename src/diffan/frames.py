"""Whatever a user calls a table, as a frame, the names of its columns and its numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.files import read_frame
from diffan.rows import CHUNK_CELLS, collected, open_rows
from diffan.table_checks import listed, more

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]


def as_frame(data: Any) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    if isinstance(data, (str, os.PathLike)):
        source = open_rows(data)
        if source is None:
            return read_frame(data)
        width = len(source.names)
        values = collected(source, range(width), max(1, CHUNK_CELLS // max(width, 1)))
        return pd.DataFrame(values, columns=list(source.names), copy=False), []
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


def checked_names(frame: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(name) for name in frame.columns)
    repeated = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if repeated:
        raise InputError(f"Column names must be unique. Repeated: {listed(repeated)}; rename them.")
    return names


def numeric_values(frame: pd.DataFrame, names: tuple[str, ...]) -> FloatArray:
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
                refused.append(f"{name!r} (such as {_short(example)})" if example is not None else repr(name))
    if refused:
        raise InputError(
            f"Every column must hold numbers. Not so: {', '.join(refused[:8])}{more(refused)}; drop or encode them."
        )
    return values


def _short(cell: object) -> str:
    shown = repr(cell)
    return shown if len(shown) <= 60 else f"{shown[:50]}... of {len(shown)} characters"


def _not_a_number(column: pd.Series) -> object:
    """The first cell that does not even read as a number; else the first that is text all the same."""
    import pandas as pd

    if column.dtype != object and not pd.api.types.is_string_dtype(column.dtype):
        return column.iloc[0] if len(column) else None
    present = column.dropna()
    for bad in (
        pd.to_numeric(present, errors="coerce").isna(),
        present.map(lambda v: isinstance(v, (str, complex))),
    ):
        if bad.any():
            return present[bad.astype(bool)].iloc[0]
    return None
