"""Cells from the JSON lines that accuracy.py and baselines.py write, checked against the data they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from diffan.dag import Dag
from sweep import data
from sweep.cell import Cell, Record
from sweep.contenders import CONTENDERS
from sweep.work import graph_scores

# What accuracy.py calls start+refinement+edges; baselines.py uses the contenders' own names.
NAMES = {
    "masking+kernel+likelihood": "diffan",
    "masking+none+additive": "masking",
    "score+none+additive": "score",
    "cam+none+additive": "cam",
    "nogam+none+additive": "nogam",
    "das+none+additive": "das",
    "r2-sort+none+additive": "r2-sort",
    "random+none+additive": "random",
}


def import_records(file: Path) -> Iterator[Record]:
    """One record a line that names a contender; others and failures are passed over."""
    drawn: dict[str, Any] = {}
    for line in map(json.loads, file.read_text().splitlines()):
        cell = _cell(line)
        if cell is None or "edges" not in line or data.name(cell.data) != line["case"]:
            continue  # not a contender, failed, or of mechanisms that are not the paper's
        if line["case"] not in drawn:
            frame, truth = data.draw(cell.data)
            drawn = {line["case"]: (truth, data.sortability(frame.to_numpy(), truth))} | drawn
        truth, sortability = drawn[line["case"]]
        yield _record(cell, line, truth, sortability, file)


def _cell(line: dict[str, Any]) -> Cell | None:
    name = line["name"].removesuffix("-raw")
    method = NAMES.get(name, name)
    if method not in CONTENDERS:
        return None
    graph, density = line["kind"][:2].lower(), int(line["kind"][2:])
    (spec,) = data.paper_sets(
        [line["seed"]],
        nodes=line["nodes"],
        samples=line["samples"],
        scales=[line["scale"]],
        kinds=[(graph, density)],
        noises=[line["noise"]],
    )
    return Cell(spec, method, options={"standardize": False} if name != line["name"] else {})


def _record(cell: Cell, line: dict[str, Any], truth: Dag, sortability: Any, file: Path) -> Record:
    true_edges = _dag(line.get("truth", line.get("true_edges")), truth)
    if not np.array_equal(true_edges.adjacency, truth.adjacency):
        raise ValueError(
            f"{file.name}: the true graph of {line['case']} is not what the simulator draws now."
        )
    estimate = _dag(line["edges"], truth)
    order = [truth.index(name) for name in line["order"]] if "order" in line else list(range(truth.n_nodes))
    result = graph_scores(truth, estimate, order)
    if "order" not in line:  # accuracy.py keeps the divergence of the order, not the order
        del result["order"]
    result["order_divergence"] = line["order_divergence"]
    result |= {"sortability": sortability, "seconds": line["seconds"], "timings": line.get("timings", {})}
    made = {"device": line["machine"].split()[-1], "processor": line["machine"].split()[0], "from": file.name}
    return {
        "key": cell.key,
        "settings": cell.settings,
        "machine": made,
        "status": "done",
        "result": result,
        "seconds": line["seconds"],
    }


def _dag(edges: list[list[Any]], truth: Dag) -> Dag:
    adjacency = np.zeros((truth.n_nodes, truth.n_nodes), dtype=int)
    for cause, effect in edges:
        i, j = (end if isinstance(end, int) else truth.index(end) for end in (cause, effect))
        adjacency[i, j] = 1
    return Dag(adjacency, truth.names)
