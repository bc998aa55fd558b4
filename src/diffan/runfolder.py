"""A run on disk: written whole or not at all, read back with every surprise put into a sentence."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from diffan.dag import Dag
from diffan.dag_files import dag_csv, read_dag_csv
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.exports import to_dot, to_graphml
from diffan.inspection import stored
from diffan.inspection.values import Inspection
from diffan.runjson import SCHEMA, from_json, to_json

INSPECTION = "inspection.json"
LARGEST_FILE = 2**30  # bytes of JSON that are read at all


def save(result: Discovery, folder: str | os.PathLike[str]) -> None:
    """Write every file under a temporary name, then move them into place, graph.json last."""
    from diffan.report.page import render

    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"A run is saved as a folder, but {str(target)!r} is a file; choose another name.")
    texts = {
        "adjacency.csv": dag_csv(result.dag),
        "order.txt": "".join(_one_line(name) + "\n" for name in result.order),
        "graph.graphml": to_graphml(result),
        "graph.dot": to_dot(result),
        "report.html": render(result),
        "graph.json": json.dumps(to_json(result), indent=1, allow_nan=False) + "\n",
    }
    if result.inspection is not None:
        seen = stored.to_json(result.inspection, result.names)
        texts = {INSPECTION: json.dumps(seen, allow_nan=False) + "\n", **texts}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(
            f"Cannot write {str(target)!r}: {error.strerror}; choose a folder you can write to."
        ) from None
    try:
        for name, text in texts.items():
            (building / name).write_text(text, encoding="utf-8", newline="")
        names = list(texts)
        if result.model:
            _save_arrays(building / "model.safetensors", dict(result.model))
            names.insert(0, "model.safetensors")
        _move_into_place(building, target, names)
    except OSError as error:
        raise InputError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def load(folder: str | os.PathLike[str]) -> Discovery:
    """Read a run folder, or its graph.json, back into a Discovery."""
    path = Path(folder)
    file = path / "graph.json" if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"No saved run at {str(path)!r}: expected a folder with a graph.json in it.")
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it has over {LARGEST_FILE:,} bytes")
        content = json.loads(file.read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(
            f"{str(file)!r} is damaged and cannot be read ({error}); save the run again."
        ) from None
    if not isinstance(content, dict) or content.get("format") != "diffan-run":
        raise InputError(f"{str(file)!r} is not a run of diffan; expected the graph.json that a run writes.")
    schema = content.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{str(file)!r} was written by a newer diffan (schema {schema}, this one reads up to {SCHEMA}); upgrade."
        )
    try:
        result = from_json(content)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        detail = f"no {error} in it" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{str(file)!r} is damaged ({detail}); save the run again.") from None
    model = file.parent / "model.safetensors"
    seen = file.parent / INSPECTION
    return replace(
        result,
        model=_load_arrays(model) if model.is_file() else {},
        inspection=_load_inspection(seen, result.names) if seen.is_file() else None,
    )


def load_dag(path: str | os.PathLike[str]) -> Dag:
    """The graph of a run folder, of its graph.json, or of an adjacency CSV."""
    file = Path(path)
    if file.is_dir() or file.suffix == ".json":
        return load(file).dag
    return read_dag_csv(file)


def _move_into_place(building: Path, target: Path, names: list[str]) -> None:
    """Rename the folder, or its files one by one into a folder that is there, one process at a time."""
    if not target.exists():
        building.chmod(0o755)
        try:
            os.rename(building, target)
            return
        except OSError:
            if not target.is_dir():  # else another process has just made it
                raise
    with _held(target):
        for name in names:
            os.replace(building / name, target / name)
        for name in {"model.safetensors", INSPECTION} - set(names):
            (target / name).unlink(missing_ok=True)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep other processes that save here waiting, so that no folder mixes the files of two runs."""
    try:
        import fcntl
    except ImportError:  # Windows: graph.json still comes last and whole
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _save_arrays(path: Path, arrays: dict[str, npt.NDArray[np.float32]]) -> None:
    from safetensors.numpy import save as as_bytes

    # written by us, so that a full disk is an OSError like any other
    path.write_bytes(as_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def _load_arrays(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays: dict[str, npt.NDArray[np.float32]] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} is damaged and cannot be read ({error}); save the run again."
        ) from None
    return arrays


def _load_inspection(path: Path, names: tuple[str, ...]) -> Inspection:
    try:
        return stored.from_json(json.loads(path.read_text(encoding="utf-8")), names)
    except (ValueError, RecursionError, OverflowError, OSError) as error:
        raise InputError(
            f"{str(path)!r} is damaged ({error}); delete it to see the run without effects, or run again."
        ) from None


def _one_line(name: str) -> str:
    """The name itself, or its JSON form where a plain line could be misread."""
    plain = name == name.strip() and name.isprintable() and name and not name.startswith('"')
    return name if plain else json.dumps(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a number that a run holds")
    return value
