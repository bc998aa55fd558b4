"""How long pruning takes and how that grows: with the columns, and with the rows (the Gram pass alone).

    python benchmarks/pruning.py                     # this machine's CPU, a few minutes
    python benchmarks/pruning.py --device cuda       # a GPU
    python benchmarks/pruning.py --small             # the first rows only

Tables are additive-noise models in which every node has up to three earlier causes. Timed is `prune`: basis, Gram
matrix, screening where there are more than 50 columns and no candidates, all regressions and tests; the Gram matrix and
the fits are timed once more by themselves. CPU time tells how long it would take on a machine with nothing else to do.
mgcv's times are those of CAM's own pruning in R on 2 cores.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

from diffan.additive import SplineGram, fit_nodes
from diffan.context import Context
from diffan.pruning import PruneSettings, prune, term_tests
from diffan.table import Table


@dataclass(frozen=True)
class Case:
    n_columns: int
    n_rows: int
    n_candidates: int | None = None  # per node; None for all predecessors, screened above 50 columns
    limit: str = ""  # seconds it may take
    mgcv: str = ""  # seconds mgcv takes


SMALL = [
    Case(20, 1000, limit="0.5", mgcv="16-21"),
    Case(20, 2000),
    Case(20, 4000),
    Case(40, 2000, limit="2", mgcv="505"),
    Case(50, 2000),
    Case(100, 10_000, limit="10"),
    Case(100, 20_000),
    Case(200, 10_000),
]
LARGE = [
    Case(500, 25_000, 20),
    Case(500, 50_000, 20),
    Case(500, 100_000, 20, limit="60 CPU, 10 GPU"),
]


def simulate(case: Case, seed: int) -> tuple[Table, np.ndarray, np.ndarray]:
    """The table, the true graph and candidates that hold the true causes and others, for the order 0, 1, 2, ..."""
    rng = np.random.default_rng(seed)
    d = case.n_columns
    values = rng.standard_normal((case.n_rows, d))
    truth = np.zeros((d, d), dtype=bool)
    candidates = np.zeros((d, d), dtype=bool)
    shapes = (np.sin, np.tanh, np.cos, np.arctan)
    for j in range(1, d):
        for cause in rng.choice(j, min(j, int(rng.integers(0, 4))), replace=False):
            values[:, j] += shapes[rng.integers(len(shapes))](1.5 * values[:, cause])
            truth[cause, j] = True
        values[:, j] /= values[:, j].std()
        candidates[rng.choice(j, min(j, case.n_candidates or 0), replace=False), j] = True
    center, scale = values.mean(axis=0), values.std(axis=0)
    values -= center
    values /= scale
    return Table(values, tuple(f"x{j}" for j in range(d)), center, scale), truth, candidates | truth


def measure(case: Case, device: str, repeats: int) -> str:
    table, truth, candidates = simulate(case, seed=1)
    context, settings = Context(device=device), PruneSettings()
    order = range(case.n_columns)
    asked = None if case.n_candidates is None else candidates
    totals, busy, grams, fits = [], [], [], []
    for _ in range(repeats):
        start, start_busy = perf_counter(), process_time()
        evidence = prune(order, table, asked, settings=settings, context=context)
        totals.append(perf_counter() - start)
        busy.append(process_time() - start_busy)
        start = perf_counter()
        gram = SplineGram.from_values(table.values, device=device)
        grams.append(perf_counter() - start)
        start = perf_counter()
        regressions = [(j, tuple(np.flatnonzero(evidence.tested[:, j]).tolist())) for j in order]
        for fit in fit_nodes(gram, regressions, device=device):
            term_tests(fit)
        fits.append(perf_counter() - start)
    found, true = int(evidence.chosen.sum()), int((evidence.chosen & truth).sum())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {case.n_columns} | {case.n_rows} | {case.n_candidates or 'all'} | {int(evidence.tested.sum())} "
        f"| {min(grams):.2f} | {min(fits):.2f} | {min(totals):.2f} | {min(busy):.2f} "
        f"| {case.limit} | {case.mgcv} | {true} of {int(truth.sum())} ({found - true} false) | {table.values.nbytes / 2**30:.2f} | {memory:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--small", action="store_true", help="leave out the tables of 500 columns")
    parser.add_argument("--largest", action="store_true", help="the last case alone")
    parser.add_argument("--repeats", type=int, default=3, help="of the small cases; the best is printed")
    given = parser.parse_args()
    print(f"device {given.device}; seconds, best of {given.repeats} (once for 500 columns); memory in GiB\n")
    print(
        "| columns | rows | candidates | tests | Gram | fits | total | CPU time | limit | mgcv | edges found "
        "| table | peak so far |"
    )
    print("|" + "---|" * 13)
    measure(Case(8, 200), given.device, 1)  # imports and kernels
    for case in [] if given.largest else SMALL:
        print(measure(case, given.device, given.repeats), flush=True)
    for case in [] if given.small else LARGE[-1:] if given.largest else LARGE:
        print(measure(case, given.device, 1), flush=True)


if __name__ == "__main__":
    main()
