"""A graph as a CSV of 0 and 1, with named rows (causes) and columns (effects)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from diffan.dag import Dag
from diffan.errors import InputError


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


def read_dag_csv(file: Path) -> Dag:
    """The inverse of `dag_csv`, also for a table that someone else made."""
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
