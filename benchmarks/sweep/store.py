"""Cells on disk: a file each while they are computed, one compact file to keep.

The packed file is JSON lines: a header with every machine, data set and code version once, then a line a cell, whose
`finished` counts seconds from the header's `since`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from diffan.files import write_text
from sweep import bits, data
from sweep.cell import MOMENT, Cell, Record
from sweep.machine import code_digest
from sweep.work import sid_if_possible

FORMAT = 3
USUALLY_NONE = ("extra", "warnings")  # counts of a graph that are left out where they are 0
SETTINGS = ("data", "method", "work", "options", "seed")
USUAL: dict[str, Any] = {"work": "discover", "options": {}, "seed": 0}  # settings that are left out
LARGEST_PACKED = 1_000_000  # bytes that may be committed


def write_cell(folder: Path, record: Record) -> None:
    """One file named by the cell's hash; it appears whole or not at all."""
    write_text(folder / f"{record['key']}.json", json.dumps(record, indent=1) + "\n")


def read_cells(folder: Path) -> list[Record]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def state(folder: Path, cell: Cell, redo: Sequence[str] = ()) -> str:
    """ "done", "failed", "missing", or "stale": of a method to redo, and not computed by the present code."""
    file = folder / f"{cell.key}.json"
    if not file.exists():
        return "missing"
    record = json.loads(file.read_text())
    stale = cell.method in redo and record["machine"].get("code") != code_digest()
    return "stale" if stale else str(record["status"])


def merge(records: Iterable[Record], folder: Path) -> int:
    """Take in cells from elsewhere: done before failed, then the newer one; returns how many were taken."""
    present = {record["key"]: _preference(record) for record in read_cells(folder)}
    taken = 0
    for record in records:
        if _preference(record) > present.get(record["key"], (False, "")):
            write_cell(folder, record)
            present[record["key"]] = _preference(record)
            taken += 1
    return taken


def _preference(record: Record) -> tuple[bool, str]:
    return record["status"] == "done", record.get("finished", "")


def add_sid(records: Iterable[Record]) -> Iterator[Record]:
    """Those records that lacked their SID and have it now."""
    for record in records:
        result = record.get("result", {})
        if "graph" in result and result["sid"] is None:
            graphs = [bits.from_text(result[key], result["nodes"]) for key in ("truth", "graph")]
            result["sid"] = sid_if_possible(*graphs)
            if result["sid"] is not None:
                yield record


def pack(records: Iterable[Record], file: Path) -> int:
    """Write the compact file; returns how many bytes it takes."""
    machines: list[Any] = []
    sets: dict[str, Any] = {}
    lines: list[str] = []
    records = sorted(records, key=_reading_order)
    since = min(
        (record["finished"] for record in records if "finished" in record), default="1970-01-01T00:00:00Z"
    )
    for record in records:
        if record["machine"] not in machines:
            machines.append(record["machine"])
        line = _line(record, machines.index(record["machine"]), sets)
        if "finished" in line:
            line["finished"] = round((_moment(line["finished"]) - _moment(since)).total_seconds())
        lines.append(_dump(line))
    header = _dump({"format": FORMAT, "since": since, "machines": machines, "data": sets})
    text = "\n".join([header, *lines]) + "\n"
    write_text(file, text)
    return len(text.encode())


def unpack(file: Path) -> list[Record]:
    """The records of a packed file, as they were but for the text of long errors."""
    header, *lines = map(json.loads, file.read_text().splitlines())
    if header["format"] != FORMAT:
        raise ValueError(f"{file.name} has format {header['format']}; this version reads {FORMAT}.")
    return [_record(line, header) for line in lines]


def _reading_order(record: Record) -> tuple[str, ...]:
    settings = record["settings"]
    return settings["work"], settings["method"], data.name(settings["data"]), record["key"]


def _line(record: Record, machine: int, sets: dict[str, Any]) -> Record:
    settings, result = dict(record["settings"]), dict(record.get("result", {}))
    name = data.name(settings["data"])
    shared = sets.setdefault(name, {"spec": settings["data"]})
    settings["data"] = name
    for once in ("truth", "sortability", "nodes", "edges"):
        if once in result:
            shared[once] = result.pop(once)
    if "order" in result:
        order = result["order"]
        result["order"] = bits.order_to_text(order)
        if "graph" in result:
            graph = bits.from_text(result["graph"], len(order))
            along = bits.to_text_along(order, graph)
            if along is not None:
                result = {
                    ("along" if k == "graph" else k): (along if k == "graph" else v)
                    for k, v in result.items()
                }
    for count in USUALLY_NONE:
        if result.get(count) == 0:
            result.pop(count)
    unusual = {k: v for k, v in settings.items() if v != USUAL.get(k)}
    line = {**unusual, **{k: v for k, v in record.items() if k != "settings"}, "machine": machine}
    if result:
        line["result"] = result
    if "error" in line:
        line["error"] = line["error"].split("\n")[0][:200]
    line.pop("key")
    if line["status"] == "done":
        line.pop("status")
    return line


def _record(line: dict[str, Any], header: dict[str, Any]) -> Record:
    shared = header["data"][line["data"]]
    given = {name: line.pop(name) for name in SETTINGS if name in line}
    cell = Cell(**(USUAL | given | {"data": shared["spec"]}))
    record = {
        "key": cell.key,
        "status": "done",
        **line,
        "settings": cell.settings,
        "machine": header["machines"][line["machine"]],
    }
    if "finished" in line:
        record["finished"] = f"{_moment(header['since']) + timedelta(seconds=line['finished']):{MOMENT}}"
    if "result" in line:
        result = dict(line["result"])
        if "order" in result:
            result["order"] = order = bits.order_from_text(result["order"], shared["nodes"])
            if "along" in result:
                graph = bits.to_text(bits.from_text_along(order, result["along"]))
                result = {
                    ("graph" if k == "along" else k): (graph if k == "along" else v)
                    for k, v in result.items()
                }
        result |= {size: shared[size] for size in ("nodes", "edges") if size in shared}
        if "graph" in result:
            result["truth"] = shared["truth"]
            known = () if "from" in record["machine"] else USUALLY_NONE  # older scripts counted no warnings
            result = dict.fromkeys(known, 0) | {"extra": 0} | result
        if "sortability" in shared and ("graph" in result or "order" in result):
            result["sortability"] = shared["sortability"]
        record["result"] = result
    return record


def _moment(text: str) -> datetime:
    return datetime.strptime(text, MOMENT)


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
