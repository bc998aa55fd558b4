"""Peak memory and throughput of every stage on tables that lie on disk, and their growth with the rows.

    python benchmarks/streaming.py --rows 100000 1000000            # growth, a few minutes
    python benchmarks/streaming.py --rows 10000000                  # the large one: 2 GB of float32 .npy, 2 GB of map
    python benchmarks/streaming.py --rows 1000000 --form parquet    # or csv, or parts (a folder of Parquet files)

The table is written in chunks into a temporary folder (--folder) that is removed at the end: a random sparse graph,
each variable a sum of tanh functions of its parents plus noise. Every stage runs in a process of its own, so that
its peak is its own; "base" is a process that only imports. Rows a second are those of the table, except for training,
where they are the rows of all mini-batches; both are taken by CPU seconds, because the machine may be shared. The peak is the kernel's VmHWM of the process, mapped pages included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

CHUNK = 100_000
STAGES = ("base", "convert", "train", "order", "gram", "discover")


def write_chunks(n: int, d: int, seed: int):
    """Rows of an additive-noise model with at most two parents a node, a chunk at a time."""
    rng = np.random.default_rng(seed)
    parents = [rng.choice(j, min(j, 2), replace=False) if j else np.empty(0, int) for j in range(d)]
    weights = [rng.uniform(0.8, 1.5, len(p)) for p in parents]
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        block = np.empty((rows, d), dtype=np.float32)
        for j in range(d):
            block[:, j] = np.tanh(2 * block[:, parents[j]]) @ weights[j] + 0.6 * rng.normal(size=rows)
        yield block


def write_table(folder: Path, form: str, n: int, d: int) -> Path:
    names = [f"x{j}" for j in range(d)]
    if form == "npy":
        path = folder / "table.npy"
        with path.open("wb") as stream:
            np.lib.format.write_array_header_1_0(
                stream, {"descr": "<f4", "fortran_order": False, "shape": (n, d)}
            )
            for block in write_chunks(n, d, 0):
                stream.write(block.data)
        return path
    if form == "csv":
        path = folder / "table.csv"
        with path.open("w") as stream:
            stream.write(",".join(names) + "\n")
            for block in write_chunks(n, d, 0):
                np.savetxt(stream, block, delimiter=",", fmt="%.6g")
        return path
    import pyarrow
    import pyarrow.parquet as parquet

    path = folder / ("table" if form == "parts" else "table.parquet")
    if form == "parts":
        path.mkdir()
    writer = None
    for k, block in enumerate(write_chunks(n, d, 0)):
        piece = pyarrow.table({name: block[:, j] for j, name in enumerate(names)})
        if form == "parts":
            parquet.write_table(piece, path / f"{k:05}.parquet")
        else:
            writer = writer or parquet.ParquetWriter(path, piece.schema)
            writer.write_table(piece)
    if writer:
        writer.close()
    return path


def peak_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status")


def run_stage(stage: str, path: Path, cache: Path, steps: int) -> dict[str, float]:
    """One stage on a table that was converted before; seconds are those of the stage alone."""
    import torch

    import diffan
    from diffan.additive.gram import SplineGram
    from diffan.ordering.points import OrderingPoints
    from diffan.score.holdout import held_out_count
    from diffan.score.training import auto_batch_size, train
    from diffan.settings import OrderSettings, ScoreSettings
    from diffan.streaming import read_table

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if stage == "base":
        return {"seconds": 0.0, "rows": 0}
    if stage == "discover":
        start = process_time()
        result = diffan.discover(path, stream=True, cache=cache, max_steps=steps, device="cpu")
        return {
            "seconds": process_time() - start,
            "rows": result.n_samples,
            **{f"{k} s": round(v, 1) for k, v in result.timings.items()},
            "edges": int(result.dag.n_edges),
        }
    if stage == "convert":
        start = process_time()
        table = read_table(path, stream=True, cache=cache)
        return {"seconds": process_time() - start, "rows": table.n_samples}
    table = read_table(path, stream=True, cache=cache)
    table = table.select(table.canonical_positions())
    start = process_time()
    rows = table.n_samples
    if stage == "train":
        settings = ScoreSettings(max_steps=steps, patience=steps)
        train(table.values, settings, np.random.default_rng(0), torch.device("cpu"))
        rows = steps * auto_batch_size(table.n_samples - held_out_count(table.n_samples, settings))
    elif stage == "order":
        points = OrderingPoints(table.values, OrderSettings(), 0, torch.device("cpu"))
        for step in range(table.n_variables - 1):
            points.at(0.3, step)
    elif stage == "gram":
        SplineGram.from_values(table.values, n_basis=10)
    return {"seconds": process_time() - start, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--form", choices=("npy", "parquet", "parts", "csv"), default="npy")
    parser.add_argument("--stages", nargs="+", default=list(STAGES[:-1]), choices=STAGES)
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--inner", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inner:
        stage, path, cache = args.inner
        start = perf_counter()
        found = run_stage(stage, Path(path), Path(cache), args.steps)
        print(json.dumps(found | {"peak": peak_mib(), "wall s": round(perf_counter() - start, 1)}))
        return
    print("| rows | columns | form | stage | CPU s | rows/s | peak MiB | |")
    print("|---|---|---|---|---|---|---|---|")
    for n in args.rows:
        folder = Path(tempfile.mkdtemp(dir=args.folder))
        needed = n * args.columns * 4 * 4
        if shutil.disk_usage(folder).free < needed:
            sys.exit(f"{needed / 1e9:.1f} GB of disk are needed for {n} rows")
        try:
            path = write_table(folder, args.form, n, args.columns)
            for stage in args.stages:
                command = [sys.executable, __file__, "--steps", str(args.steps)]
                inner = ["--inner", stage, str(path), str(folder / "cache")]
                done = subprocess.run(command + inner, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                found = json.loads(done.stdout.splitlines()[-1])
                seconds, rows, peak = found.pop("seconds"), found.pop("rows"), found.pop("peak")
                speed = f"{rows / seconds:,.0f}" if seconds else "-"
                more = ", ".join(f"{k} {v}" for k, v in found.items())
                print(
                    f"| {n:,} | {args.columns} | {args.form} | {stage} | {seconds:.1f} | {speed} | {peak:,.0f} | {more} |",
                    flush=True,
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
