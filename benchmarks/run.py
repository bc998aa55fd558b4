"""Every study of the paper as a sweep of cells that can be stopped, killed and taken up again.

    python benchmarks/run.py plan                                             # how many cells, in which order
    python benchmarks/run.py sweep cells/ --workers 2                         # all of it, or what is still missing
    python benchmarks/run.py sweep cells/ --studies tables --ranks 0 --limit-seconds 480
    python benchmarks/run.py sweep cells/ --lane gpu --device cuda --workers 8
    python benchmarks/run.py sweep cells/ --scheduler tcp://host:8786         # an existing Dask cluster
    python benchmarks/run.py import benchmarks/results/baselines.jsonl cells/ # cells of the older scripts
    python benchmarks/run.py score cells/                                     # add SID where gadjid was missing
    python benchmarks/run.py pack cells/ benchmarks/results/reproduction.jsonl
    python benchmarks/run.py unpack benchmarks/results/reproduction.jsonl cells/  # to go on from it

A cell is one JSON file named by a hash of its settings. A failed cell is kept with its error and does not stop the
rest; `--retry-failed` tries it again, `--redo diffan` computes anew what older code has computed. The workers of a Dask cluster need `src` and `benchmarks` on their PYTHONPATH.
Then `python benchmarks/compare.py` writes docs/reproduction.md from the packed file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from diffan.executors import run_tasks
from studies import STUDIES, Size
from sweep import store
from sweep.cell import Cell, failure, run_cell
from sweep.contenders import CONTENDERS
from sweep.importing import import_records


def planned(
    names: Sequence[str],
    size: Size,
    ranks: Sequence[int] | None,
    lane: str,
    methods: Sequence[str] | None = None,
) -> list[Cell]:
    """The cells of the studies, each once, the most valuable first."""
    cells: dict[str, Cell] = {}
    for name in names:
        for cell in STUDIES[name].cells(size):
            if cell.key not in cells or cell.rank < cells[cell.key].rank:
                cells[cell.key] = cell
    chosen = [cell for cell in cells.values() if ranks is None or cell.rank in ranks]
    chosen = [cell for cell in chosen if lane in ("all", cell.lane)]
    chosen = [cell for cell in chosen if methods is None or cell.method in methods]
    return sorted(chosen, key=lambda cell: cell.rank)  # stable: within a rank, the order of the studies


def sweep(
    cells: Sequence[Cell],
    folder: Path,
    *,
    workers: int = 0,
    scheduler: str | None = None,
    device: str = "cpu",
    limit_seconds: float = float("inf"),
    retry_failed: bool = False,
    redo: Sequence[str] = (),
) -> Counter[str]:
    """Compute the cells that are missing; returns how many were done, failed, kept and left."""
    folder.mkdir(parents=True, exist_ok=True)
    states = {cell.key: store.state(folder, cell, redo) for cell in cells}
    settled = ("done",) if retry_failed else ("done", "failed")
    todo = [cell for cell in cells if states[cell.key] not in settled]
    counts = Counter(kept=len(cells) - len(todo))
    progress = Progress(todo, max(workers, 1))
    deadline = time.monotonic() + limit_seconds

    def until_the_deadline() -> Iterator[tuple[Cell, str]]:
        for cell in todo:
            if time.monotonic() > deadline:
                return
            yield cell, device

    for index, outcome in run_tasks(run_cell, until_the_deadline(), workers=workers, scheduler=scheduler):
        cell = todo[index]
        record = failure(cell, outcome) if isinstance(outcome, Exception) else outcome
        store.write_cell(folder, record)
        counts[record["status"]] += 1
        progress.show(cell, record)
    counts["left"] = len(todo) - counts["done"] - counts["failed"]
    return counts


class Progress:
    """A line a cell, with the time left: what each contender has taken so far on tables of that size."""

    def __init__(self, todo: Sequence[Cell], lanes: int) -> None:
        self._left = Counter(map(self._class, todo))
        self._total, self._lanes = len(todo), lanes
        self._taken: dict[tuple[str, ...], list[float]] = defaultdict(list)

    @staticmethod
    def _class(cell: Cell) -> tuple[str, ...]:
        size = cell.data.get("nodes", 0), cell.data.get("samples", 0)
        return cell.work, cell.method, *map(str, size)

    def show(self, cell: Cell, record: dict) -> None:
        self._left[self._class(cell)] -= 1
        self._taken[self._class(cell)].append(record.get("seconds", 0.0))
        done = self._total - self._left.total()
        outcome = record.get("error", "done")[:90]
        print(
            f"[{done}/{self._total}, {self.time_left()} left] {cell.label}: {outcome}, {record.get('seconds', 0):.1f} s",
            flush=True,
        )

    def time_left(self) -> str:
        every = [seconds for taken in self._taken.values() for seconds in taken]
        usual = sum(every) / len(every)
        means = {kind: sum(taken) / len(taken) for kind, taken in self._taken.items()}
        seconds = sum(count * means.get(kind, usual) for kind, count in self._left.items()) / self._lanes
        return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def show_plan(args: argparse.Namespace) -> None:
    cells = _planned(args)
    table = Counter((cell.rank, cell.lane, cell.work, cell.method) for cell in cells)
    for (rank, lane, work, method), count in sorted(table.items()):
        print(f"rank {rank}  {lane}  {work:<9} {method:<16} {count:>5} cells")
    print(f"{len(cells)} cells in all")


def run_sweep(args: argparse.Namespace) -> None:
    counts = sweep(
        _planned(args),
        args.cells,
        workers=args.workers,
        scheduler=args.scheduler,
        device=args.device,
        limit_seconds=args.limit_seconds,
        retry_failed=args.retry_failed,
        redo=args.redo,
    )
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


def take_in(args: argparse.Namespace) -> None:
    read = import_records if args.command == "import" else store.unpack
    print(f"{store.merge(read(args.file), args.cells)} cells from {args.file}")


def score(args: argparse.Namespace) -> None:
    scored = list(store.add_sid(store.read_cells(args.cells)))
    for record in scored:
        store.write_cell(args.cells, record)
    print(f"{len(scored)} cells have their SID now")


def pack(args: argparse.Namespace) -> None:
    records = store.read_cells(args.cells)
    size = store.pack(records, args.file)
    print(f"{len(records)} cells in {size:,} bytes")
    if size > store.LARGEST_PACKED:
        print(f"Too large to commit: at most {store.LARGEST_PACKED:,} bytes; leave out some cells.")


def _planned(args: argparse.Namespace) -> list[Cell]:
    return planned(args.studies, "small" if args.small else "full", args.ranks, args.lane, args.methods)


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(dest="command", required=True)

    def command(
        name: str, function: Callable[[argparse.Namespace], None], help: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help)
        added.set_defaults(function=function)
        return added

    running = command("sweep", run_sweep, "compute what is missing")
    running.add_argument("cells", type=Path, help="the folder of cells")
    planning = command("plan", show_plan, "count the cells")
    for one in (running, planning):
        one.add_argument("--studies", nargs="+", choices=list(STUDIES), default=list(STUDIES))
        one.add_argument("--small", action="store_true", help="the small version that the tests run")
        one.add_argument("--ranks", type=int, nargs="+", help="0: first of all, up to 4: if time is left")
        one.add_argument("--lane", choices=["all", "cpu", "gpu"], default="all", help="cells that want this")
        one.add_argument("--methods", nargs="+", choices=list(CONTENDERS), help="of these alone")
    running.add_argument("--workers", type=int, default=0, help="local processes; 0 computes in this one")
    running.add_argument("--scheduler", help="address of a Dask scheduler, tcp://host:port")
    running.add_argument("--device", default="cpu", help="for the cells of the gpu lane")
    running.add_argument("--limit-seconds", type=float, default=float("inf"), help="then begin no new cell")
    running.add_argument("--retry-failed", action="store_true")
    running.add_argument(
        "--redo", nargs="+", default=[], choices=list(CONTENDERS), help="if the code has changed"
    )
    for name, help in (
        ("import", "turn JSON lines of the older scripts into cells"),
        ("unpack", "cells again from a packed file; of two that differ the newer is kept"),
    ):
        added = command(name, take_in, help)
        added.add_argument("file", type=Path)
        added.add_argument("cells", type=Path)
    command("score", score, "add SID to cells from a machine without gadjid").add_argument("cells", type=Path)
    packing = command("pack", pack, "one compact file of all cells")
    packing.add_argument("cells", type=Path)
    packing.add_argument("file", type=Path)
    return whole


if __name__ == "__main__":
    arguments = parser().parse_args()
    try:
        arguments.function(arguments)
    except KeyboardInterrupt:
        sys.exit("Stopped; the same command goes on from here.")
