"""A run's progress on disk: each stage in two generations, so that a damaged one falls back to the one before.

A generation is a safetensors file of arrays and a JSON file that names its digest, carries one of its own, and is
written last. Both appear by renaming, so a process that is killed leaves whole files only. Every generation says which
data and settings it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from time import monotonic
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from diffan.errors import InputError
from diffan.files import writing
from diffan.keeping import Arrays, Saved

FORMAT = "diffan-checkpoint"
SCHEMA = 1
SLOTS = ("a", "b")
ENDINGS = ("json", "safetensors")
LARGEST_RECORD = 2**26  # bytes of JSON that are read at all


class Checkpoint:
    """A folder that keeps the stages of one run."""

    def __init__(
        self, folder: str | os.PathLike[str], identity: Mapping[str, Any], *, every: float = 30.0
    ) -> None:
        """`identity` is what the run depends on; `every` are the seconds between saves of a stage under way."""
        if isinstance(every, bool) or not isinstance(every, (int, float)) or not every >= 0:
            raise InputError(
                f"The 'checkpoint_every' parameter must be seconds, 0 or more. Got {every!r} instead."
            )
        self.folder, self.every = Path(folder), float(every)
        self.identity: dict[str, Any] = json.loads(json.dumps(dict(identity), default=str))
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"A checkpoint is a folder, but {str(folder)!r} is a file; choose another name.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / "lock")
        except OSError as error:
            raise InputError(
                f"Cannot write {str(folder)!r}: {error.strerror}; choose a folder you can write to."
            ) from None
        try:
            self._refuse_another_run()
        except InputError:
            self.close()
            raise
        self._sweep()

    def stage(self, name: str) -> StageFiles:
        return StageFiles(self, name)

    def close(self) -> None:
        """Let other processes use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_another_run(self) -> None:
        for file in sorted(self.folder.glob("*.json")):
            content = read_record(file)
            if content is None:
                continue
            if content["schema"] > SCHEMA:
                raise InputError(
                    f"The checkpoint in {str(self.folder)!r} was written by a newer diffan; upgrade, or choose "
                    "another folder."
                )
            if content["identity"] != self.identity:
                raise InputError(
                    f"The checkpoint in {str(self.folder)!r} belongs to {_difference(content['identity'], self.identity)}"
                    "; choose another folder, or delete this one to start anew."
                )

    def _sweep(self) -> None:
        """Remove what a killed process was writing; nobody else writes here while the lock is held."""
        if self._lock is None:
            return
        for slot, ending in product(SLOTS, ENDINGS):
            for file in self.folder.glob(f".*.{slot}.{ending}.*"):
                with suppress(OSError):
                    file.unlink()


class StageFiles:
    """The two generations of one stage."""

    keeps = True

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self._checkpoint, self._name = checkpoint, name
        self._saved_at = monotonic()

    def due(self) -> bool:
        """Whether the last save is long enough ago."""
        return monotonic() - self._saved_at >= self._checkpoint.every

    def load(self) -> Saved | None:
        """The newest generation that is whole; None when there is none."""
        found = [(content["number"], slot, content) for slot, content in self._records().items()]
        for _, slot, content in sorted(found, key=lambda one: one[0], reverse=True):
            arrays = read_arrays(self._path(slot, "safetensors"), content["arrays_sha256"])
            if arrays is not None:
                return Saved(content["record"], arrays)
        return None

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Write over the older generation; the newer one stays until this one is whole."""
        from safetensors.numpy import save

        numbers = {slot: content["number"] for slot, content in self._records().items()}
        slot = min(SLOTS, key=lambda one: numbers.get(one, -1))
        payload = save({name: np.asarray(value, order="C") for name, value in arrays.items()})
        content = {
            "format": FORMAT,
            "schema": SCHEMA,
            "stage": self._name,
            "number": max(numbers.values(), default=0) + 1,
            "identity": self._checkpoint.identity,
            "record": dict(record),
            "arrays_sha256": hashlib.sha256(payload).hexdigest(),
        }
        _write(self._path(slot, "safetensors"), payload)
        _write(
            self._path(slot, "json"), json.dumps(content | {"checksum": checksum(content)}, indent=1).encode()
        )
        self._saved_at = monotonic()

    def _records(self) -> dict[str, dict[str, Any]]:
        found = {slot: read_record(self._path(slot, "json")) for slot in SLOTS}
        return {slot: content for slot, content in found.items() if content is not None}

    def _path(self, slot: str, ending: str) -> Path:
        return self._checkpoint.folder / f"{self._name}.{slot}.{ending}"


def checksum(content: Mapping[str, Any]) -> str:
    """The digest of a record, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_record(file: Path) -> dict[str, Any] | None:
    """A generation's JSON; None when it is not there, damaged or something else."""
    try:
        if file.stat().st_size > LARGEST_RECORD:
            return None
        content = json.loads(file.read_bytes())
        claimed = content.pop("checksum")
        whole = content["format"] == FORMAT and claimed == checksum(content)
        kinds = {"schema": int, "number": int, "identity": dict, "record": dict, "arrays_sha256": str}
        return content if whole and all(isinstance(content[k], kind) for k, kind in kinds.items()) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def read_arrays(file: Path, sha256: str) -> Arrays | None:
    """A generation's arrays; None when they are not those that were written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        payload = file.read_bytes()
        if hashlib.sha256(payload).hexdigest() != sha256:
            return None
        arrays: Arrays = load(payload)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
    return arrays


def _write(path: Path, payload: bytes) -> None:
    with writing(path) as temporary, temporary.open("wb") as stream:
        stream.write(payload)
        stream.flush()
        os.fsync(stream.fileno())


def _locked(path: Path) -> IO[bytes] | None:
    """Hold the folder for this process; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows: whole files and digests still keep two writers from harm
        return None
    stream = path.open("ab")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise InputError(
            f"Another process is using the checkpoint in {str(path.parent)!r}; wait for it, or choose another folder."
        ) from None
    return stream


def _difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Data or settings, and which."""
    if theirs.get("table") != ours.get("table"):
        return "other data"
    there, here = ({**one, **one.get("settings", {})} for one in (theirs, ours))
    keys = sorted(key for key in there.keys() | here.keys() if key != "settings")
    different = [
        f"{key} was {there.get(key)!r} and is {here.get(key)!r}"
        for key in keys
        if there.get(key) != here.get(key)
    ]
    return "other settings (" + ", ".join(different[:4]) + ")"
