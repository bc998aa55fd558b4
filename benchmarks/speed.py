"""Seconds to train and to order, and how they grow with rows and variables.

    python benchmarks/speed.py --device cpu                 # d = 20 and growth
    python benchmarks/speed.py --device cuda --large        # also 500 variables, ordering alone
    python benchmarks/speed.py --device cuda --whole        # train, order, refine and select
    python benchmarks/speed.py --device cuda --profile      # where a whole run and a replicate spend their time

Data are independent normals: times do not depend on what the columns hold, but for where early stopping ends, so the
number of training steps is printed beside the seconds. Each case is run twice and the second time is printed: the
first one pays for loading libraries and, on a GPU, for its context.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from diffan.context import Context
from diffan.ordering.diffan_order import find_order
from diffan.settings import DiffanSettings
from diffan.simulate.grid import PaperCase
from diffan.table import Table


def table_of(d: int, n: int) -> Table:
    if d <= 50 and n <= 2500:
        return Table.read(PaperCase("er", 1, "gauss", 0, 0, d, n).draw(device="cpu")[0])
    return Table.read(np.random.default_rng(0).normal(size=(n, d)))


def timed(d: int, n: int, device: str, settings: DiffanSettings, repeats: int = 2) -> None:
    table = table_of(d, n)
    for _ in range(repeats):
        found = find_order(table, settings, Context(device=device))
    if device == "cuda":
        peak = f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB"
        torch.cuda.reset_peak_memory_stats()
    else:
        peak = "-"
    train, order = found.timings["train"], found.timings["order"]
    steps = int(found.losses["step"][-1])
    print(
        f"| {settings.variant} | {d} | {n} | {steps} | {train:.2f} | {order:.2f} | {train + order:.2f} | {peak} |",
        flush=True,
    )


def whole(d: int, n: int, density: int, device: str) -> None:
    """Train, order, refine and select on a set of the paper's grid; the second of two runs counts."""
    import diffan

    data = PaperCase("er", density, "gauss", 0, 0, d, n).draw(device="cpu")[0]
    for _ in range(2):
        started = time.perf_counter()
        found = diffan.discover(data, device=device)
        seconds = time.perf_counter() - started
    stages = ", ".join(f"{stage} {value:.2f}" for stage, value in found.timings.items())
    print(f"| whole run, ER{density} | {d} | {n} | | | | {seconds:.2f} | {stages} |", flush=True)


def profile(device: str, density: int = 5) -> None:
    """The functions that take longest, in a whole run and in two replicates of it, d = 20, n = 1000."""
    import cProfile
    import pstats

    import diffan

    data = PaperCase("er", density, "gauss", 0, 0, 20, 1000).draw(device="cpu")[0]
    diffan.discover(data, device=device)
    for what, confidence in (("whole run", 0), ("whole run and 4 replicates", 4)):
        recorder = cProfile.Profile()
        recorder.enable()
        found = diffan.discover(data, device=device, confidence=confidence)
        recorder.disable()
        print(what, {stage: round(value, 3) for stage, value in found.timings.items()})
        pstats.Stats(recorder).sort_stats("tottime").print_stats(28)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--large", action="store_true", help="500 variables as well")
    parser.add_argument(
        "--whole", action="store_true", help="table to graph at 20 and 50 variables, nothing else"
    )
    parser.add_argument("--profile", action="store_true", help="where the time goes, nothing else")
    parser.add_argument("--only-large", action="store_true", help="500 variables alone")
    parser.add_argument("--brief", action="store_true", help="d = 20, n = 1000 and the large case alone")
    args = parser.parse_args()
    if args.profile:
        return profile(args.device)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, device {args.device}")
    print("| variant | d | n | steps | train s | order s | both s | peak |")
    print("|---|---|---|---|---|---|---|---|")
    default = DiffanSettings(variant="masking")
    if args.whole:
        for d, n in ((20, 1000), (50, 2000)):
            for density in (1, 5):
                whole(d, n, density, args.device)
        return
    for variant in () if args.only_large else ("masking", "deciduous", "greedy"):
        timed(20, 1000, args.device, replace(default, variant=variant))
    if not args.brief and not args.only_large:
        for n in (300, 3000, 10_000):
            timed(20, n, args.device, default, repeats=1)
        for d in (10, 50, 100):
            timed(d, 1000, args.device, default, repeats=1)
    if args.large or args.only_large:
        short = replace(default, score=replace(default.score, max_steps=50))
        for variant in ("masking", "deciduous"):
            timed(500, 10_000, args.device, replace(short, variant=variant), repeats=1)


if __name__ == "__main__":
    main()
