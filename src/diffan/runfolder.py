"""A run on disk: written whole or not at all, read back with every surprise put into a sentence."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from diffan.confidence import Confidence
from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.exports import to_dot, to_graphml
from diffan.inspection import stored
from diffan.inspection.values import Inspection
from diffan.knowledge import Knowledge

SCHEMA = 1
INSPECTION = "inspection.json"
LARGEST_FILE = 2**30  # bytes of JSON that are read at all
MOST_CELLS = 2**29  # of all [d, d] arrays of a run together: 4 GiB


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


def to_json(result: Discovery) -> dict[str, Any]:
    """The run as plain JSON; edges are given by name, tests by column number."""
    evidence = result.evidence
    causes, effects = np.nonzero(evidence.tested)
    return {
        "format": "diffan-run",
        "schema": SCHEMA,
        "method": result.method,
        "names": list(result.names),
        "order": list(result.order),
        "edges": [
            {"source": cause, "target": effect, **facts}
            for (cause, effect), facts in result.edge_facts().items()
        ],
        "tests": {
            "cutoff": evidence.cutoff,
            "judged_by": evidence.judged_by,
            "source": causes.tolist(),
            "target": effects.tolist(),
            "p_value": _numbers(evidence.p_values[causes, effects]),
            "measures": {name: _numbers(array[causes, effects]) for name, array in evidence.measures.items()},
            "warnings": list(evidence.warnings),
        },
        "leaf_evidence": None
        if result.leaf_evidence is None
        else [_numbers(row) for row in result.leaf_evidence],
        "losses": {name: _numbers(np.asarray(curve, dtype=float)) for name, curve in result.losses.items()},
        "n_samples": result.n_samples,
        "seed": result.seed,
        "settings": dict(result.settings),
        "knowledge": result.knowledge.record(),
        "confidence": None if result.confidence is None else result.confidence.record(),
        "versions": dict(result.versions),
        "timings": dict(result.timings),
        "screened": dict(result.screened),
        "warnings": list(result.warnings),
    }


def from_json(content: dict[str, Any]) -> Discovery:
    """The inverse of `to_json`, checking what a hand or a disk may have changed."""
    names = tuple(_texts(content["names"]))
    order = _texts(content["order"])
    if sorted(order) != sorted(names):
        raise ValueError("its order does not list every name once")
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    d, tests = len(names), content["tests"]
    where = np.asarray(tests["source"], dtype=np.int64), np.asarray(tests["target"], dtype=np.int64)
    if d * d * (len(tests["measures"]) + 4) > MOST_CELLS:
        raise ValueError(f"it names {d:,} variables and {len(tests['measures'])} measures, more than fit")
    if any(((side < 0) | (side >= d)).any() for side in where):
        raise ValueError("a test names a column that is not there")
    tested = np.zeros((d, d), dtype=bool)
    tested[where] = True
    index = {name: i for i, name in enumerate(names)}
    chosen = np.zeros((d, d), dtype=bool)
    for edge in content["edges"]:
        chosen[index[edge["source"]], index[edge["target"]]] = True
    measures = {name: _filled(d, where, values, np.nan) for name, values in tests["measures"].items()}
    p_values = _filled(d, where, tests["p_value"], 1.0)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("a p-value is not between 0 and 1")
    evidence = EdgeEvidence(
        p_values=p_values,
        tested=tested,
        chosen=chosen,
        cutoff=float(tests["cutoff"]),
        measures=measures,
        warnings=tuple(_texts(tests["warnings"])),
        judged_by=str(tests.get("judged_by", "p_value")),
    )
    if evidence.judged_by != "p_value" and evidence.judged_by not in measures:
        raise ValueError("the p-values its edges were judged by are missing")
    steps = content["leaf_evidence"]
    leaf_evidence = None if steps is None else np.array([_floats(row) for row in steps]).reshape(-1, d)
    known, sure = Knowledge.from_record(content.get("knowledge", {})), content.get("confidence")
    known.refuse_unknown(names)
    result = Discovery(
        order=order,
        names=names,
        evidence=evidence,
        method=str(content["method"]),
        settings=dict(content["settings"]),
        seed=int(content["seed"]),
        n_samples=int(content["n_samples"]),
        timings={name: float(seconds) for name, seconds in content["timings"].items()},
        screened={name: float(value) for name, value in content.get("screened", {}).items()},
        warnings=tuple(_texts(content["warnings"])),
        versions={name: str(version) for name, version in content["versions"].items()},
        leaf_evidence=leaf_evidence,
        losses={name: _floats(curve) for name, curve in content["losses"].items()},
        knowledge=known,
        confidence=None if sure is None else Confidence.from_record(sure, names),
    )
    if not result.dag.respects(order):
        raise ValueError("an edge runs against the order")
    return result


def dag_csv(dag: Dag) -> str:
    """0/1 with named rows (causes) and columns (effects)."""
    text = io.StringIO()
    if any("\r" in name for name in dag.names):  # which the writer would leave bare
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    else:
        writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *dag.names])
    for name, row in zip(dag.names, dag.adjacency.tolist(), strict=True):
        writer.writerow([name, *row])
    return text.getvalue()


def load_dag(path: str | os.PathLike[str]) -> Dag:
    """The graph of a run folder, of its graph.json, or of an adjacency CSV."""
    file = Path(path)
    if file.is_dir() or file.suffix == ".json":
        return load(file).dag
    if not file.is_file():
        raise InputError(f"No graph at {str(file)!r}: expected a run folder or an adjacency CSV.")
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            header, *rows = [row for row in csv.reader(stream) if row]
        names, causes = header[1:], [row[0] for row in rows]
        cells = [[float(cell) for cell in row[1:]] for row in rows]
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise InputError(
            f"{str(file)!r} is not an adjacency table ({error}); expected named rows (causes) and columns (effects) "
            "of 0 and 1."
        ) from None
    if sorted(causes) != sorted(names) or any(len(row) != len(names) for row in cells):
        raise InputError(f"{str(file)!r} must name the same variables in its first row and its first column.")
    place = [causes.index(name) for name in names]
    return Dag(np.array(cells).reshape(len(names), len(names))[place], names)


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


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _floats(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _texts(values: list[str]) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of texts was expected")
    return values


def _filled(
    d: int,
    where: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: list[float | None],
    empty: float,
) -> npt.NDArray[np.float64]:
    array = np.full((d, d), empty)
    array[where] = _floats(values)
    return array
