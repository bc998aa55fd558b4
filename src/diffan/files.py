"""Files in, files out: a table file becomes a DataFrame; a text appears whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diffan.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
LONGEST_HEADER = 2**24  # bytes of the first line
_PARQUET_MAGIC = b"PAR1"
_SEPARATORS = (",", ";", "\t", "|")


def read_frame(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, list[str]]:
    """Read a table of text whole; also what a reader should be told of it, in sentences."""
    found = list(text_frames(path))
    return found[0]


def text_frames(
    path: str | os.PathLike[str], chunk_cells: int | None = None
) -> Iterator[tuple[pd.DataFrame, list[str]]]:
    """A table of text in pieces of about `chunk_cells` (None: all at once), each with what should be told of it."""
    import pandas as pd

    file = _text_file(path)
    separator, header = _look_at_header(file)
    chunk_rows = None if chunk_cells is None else max(1, chunk_cells // len(header))
    options: dict[str, Any] = {
        "sep": separator,
        "encoding": "utf-8-sig",
        "low_memory": False,
        "skipinitialspace": True,
    }
    try:
        if separator == ";":
            start = pd.read_csv(file, nrows=chunk_rows, **options)
            if any(_decimal_commas(start[column]) for column in start):
                options["decimal"] = ","
        checked = False
        for frame in _frames(file, chunk_rows, options):
            if not checked:  # a whole look at the file, so at most one
                checked = _refuse_ragged(frame, file, separator, len(header))
            yield _without_index(frame, header)
    except pd.errors.ParserError as error:
        raise InputError(
            f"{file.name!r} is ragged: {_ragged_line(file, separator, len(header)) or error}."
        ) from None
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever the parser makes of damaged bytes
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"{file.name!r} could not be read as a table of text: {reason}.") from None


def _frames(file: Path, chunk_rows: int | None, options: dict[str, Any]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    if chunk_rows is None:
        yield pd.read_csv(file, **options)
        return
    with pd.read_csv(file, chunksize=chunk_rows, **options) as pieces:
        yield from pieces


def _text_file(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    try:
        if not file.exists():
            raise InputError(f"No file at {str(file)!r}; check the path.")
        if file.is_dir():
            raise InputError(f"{str(file)!r} is a folder; name the table file inside it.")
        if not file.is_file():
            raise InputError(f"{str(file)!r} is neither a file nor a folder; name a table file.")
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {str(file)!r}: {error}.") from None
    if file.suffix.lower() not in TEXT_ENDINGS:
        known = ", ".join((*TEXT_ENDINGS, ".parquet", ".pq", ".npy"))
        raise InputError(f"A table file must end in one of {known}. Got {file.name!r} instead.")
    return file


def _refuse_ragged(frame: pd.DataFrame, file: Path, separator: str, width: int) -> bool:
    """Whether the frame gave reason to count every line's fields; refused when they differ."""
    import pandas as pd

    if not frame.isna().to_numpy().any() and isinstance(frame.index, pd.RangeIndex):
        return False
    ragged = _ragged_line(file, separator, width)
    if ragged:
        raise InputError(f"{file.name!r} is ragged: {ragged}.")
    return True


def _look_at_header(file: Path) -> tuple[str, list[str]]:
    """The separator and the names of the first line, refused when this is no table of text."""
    try:
        with file.open("rb") as stream:
            start = stream.read(1 << 16)
    except OSError as error:
        raise InputError(f"Cannot read {str(file)!r}: {error.strerror}.") from None
    if not start.strip():
        raise InputError(f"{file.name!r} is empty; expected a header line and rows of numbers.")
    if start.startswith(_PARQUET_MAGIC):
        raise InputError(
            f"{file.name!r} is a Parquet file although its name ends in {file.suffix}; rename it."
        )
    if b"\x00" in start:
        raise InputError(f"{file.name!r} holds binary data, not text; export the table as CSV or Parquet.")
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            first_line = stream.readline(LONGEST_HEADER)
            if len(first_line) == LONGEST_HEADER:
                raise InputError(
                    f"The first line of {file.name!r} is endless; add a header line of column names."
                )
            separator = "\t" if file.suffix.lower() == ".tsv" else max(_SEPARATORS, key=first_line.count)
            stream.seek(0)
            header = next(csv.reader(stream, delimiter=separator, skipinitialspace=True))
        if not header:
            raise InputError(
                f"{file.name!r} begins with an empty line; expected a header line of column names."
            )
    except UnicodeDecodeError:
        raise InputError(f"{file.name!r} is not UTF-8 text; save it again with UTF-8 encoding.") from None
    except (csv.Error, OSError, StopIteration) as error:
        raise InputError(f"{file.name!r} could not be read as a table of text: {error}.") from None
    repeated = sorted(name for name, count in Counter(header).items() if count > 1)
    if repeated:
        raise InputError(
            f"Column names must be unique. Repeated: {', '.join(map(repr, repeated[:8]))}; rename them."
        )
    numbers = [name for name in header if _is_number(name)]
    if len(numbers) == len(header) and not _counts_up(header):
        raise InputError(
            f"The first line of {file.name!r} holds numbers, not names; add a header line of column names."
        )
    return separator, header


def _without_index(frame: pd.DataFrame, header: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Drop what pandas users know as the index: a first column without a name."""
    import pandas as pd

    if header[0].strip() == "" and len(header) == frame.shape[1]:
        note = "The first column has no name and was taken as the row index."
        return frame.set_axis(header, axis=1).iloc[:, 1:], [note]
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.reset_index(drop=True), [
            "The rows have one field more than the header; it was taken as the row index."
        ]
    return frame.set_axis(header, axis=1), []


def _ragged_line(file: Path, separator: str, width: int) -> str | None:
    """Where a row has another number of fields than the others, if anywhere."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=separator, skipinitialspace=True)
            next(rows)
            expected: int | None = None
            for row in rows:
                if not row:
                    continue
                if expected is None and len(row) == width + 1 and row[-1] != "":
                    expected = width + 1  # every row carries an unnamed index field
                if len(row) != (expected or width):
                    return (
                        f"line {rows.line_num} has {len(row)} fields where {expected or width} were expected"
                    )
                expected = expected or width
    except (csv.Error, ValueError, OSError) as error:
        return str(error)
    return None


def _decimal_commas(column: pd.Series) -> bool:
    text = column.dropna().astype(str)
    return column.dtype.kind in "OUT" and bool(text.str.fullmatch(r"\s*-?\d+,\d+\s*").any())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _counts_up(header: list[str]) -> bool:
    return header in ([str(i) for i in range(len(header))], [str(i + 1) for i in range(len(header))])


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path` that takes its place only when the block ends well."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(
            f"Cannot write {str(target)!r}: {error.strerror}; choose a folder you can write to."
        ) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text atomically."""
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
