"""How far the low-rank engine is from the exact one, in nats, and what that does to the chosen edges.

    python benchmarks/low_rank_error.py                                 # error of L(j | P): a minute on one core
    python benchmarks/low_rank_error.py --edges                         # orders and edges found with and without it

Tuning seeds only (below 1000), sets of the paper's grid. A fit's error is L from m landmarks minus L from all rows, where L is
2n times the Gaussian entropy of the leave-one-out residuals: what the search compares with an edge's price of 4 nats. The parents
are true ones as far as a node has them, the rest drawn from the other columns; the kernel is the middle of the grid.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from diffan.context import Context
from diffan.dag import Dag
from diffan.errors import InputError
from diffan.likelihood.engine import Wanted, solve
from diffan.likelihood.fits import Fit
from diffan.likelihood.objective import Objective
from diffan.likelihood.settings import LikelihoodSettings
from diffan.simulate.grid import PaperCase
from diffan.table import Table

KINDS = (("er", 5), ("sf", 5), ("er", 2))
NEVER = 10**6  # landmarks that no table has rows for: the exact engine is taken


def sets_of(dag: Dag, size: int, count: int, rng: np.random.Generator) -> list[tuple[int, frozenset[int]]]:
    """Nodes with parent sets of that size, true parents first."""
    truth = np.asarray(dag.adjacency, dtype=bool)
    rich = np.argsort(-truth.sum(axis=0), kind="stable")[:count]
    found = []
    for node in rich.tolist():
        parents = rng.permutation(np.flatnonzero(truth[:, node]))[:size].tolist()
        others = [k for k in rng.permutation(len(truth)).tolist() if k != node and k not in parents]
        found.append((node, frozenset([*parents, *others[: size - len(parents)]])))
    return found


def errors(n: int, sizes: Sequence[int], landmarks: Sequence[int], seeds: Sequence[int], count: int) -> None:
    """Mean absolute error and its 90 % quantile over fits, for each number of parents and of landmarks."""
    found: dict[tuple[int, int], list[float]] = {}
    settings = LikelihoodSettings(engine="exact")
    for seed in seeds:
        for graph, density in KINDS:
            frame, dag = PaperCase(graph, density, "gauss", 0, seed, 20, n).draw(device="cpu")
            rng = np.random.default_rng(seed)
            values = Table.read(frame).values
            objective = Objective(values, settings=settings, device=torch.device("cpu"), rng=rng)
            for size in sizes:
                fits = [
                    Fit(node, objective.kernels[node], own) for node, own in sets_of(dag, size, count, rng)
                ]

                def values_at(
                    m: int | None, fits: Sequence[Fit] = fits, objective: Objective = objective
                ) -> np.ndarray:
                    wanted = [Wanted(objective.columns, fit, m, True, False) for fit in fits]
                    return np.asarray(2 * n * solve(wanted)[0][:, 0])

                exact = values_at(None)
                for m in landmarks:
                    if m <= n:
                        found.setdefault((size, m), []).extend((values_at(m) - exact).tolist())
    for size in sizes:
        cells = []
        for m in landmarks:
            apart = np.abs(found.get((size, m), []))
            cells.append(f"{apart.mean():.1f} ({np.quantile(apart, 0.9):.1f})" if len(apart) else "-")
        print(f"| {n} | {size} | " + " | ".join(cells) + " |", flush=True)


def edges(n: int, nodes: int, seeds: Sequence[int]) -> None:
    """Orders and edges by the default engine and from landmarks alone, against those of exact fits alone."""
    from diffan.likelihood.refine import refine
    from diffan.likelihood.select import select
    from diffan.metrics import order_divergence, shd

    ways = {
        "exact": LikelihoodSettings(engine="exact", kernel_landmarks=(NEVER,)),
        "default": LikelihoodSettings(),
        "256 landmarks": LikelihoodSettings(engine="low_rank", max_landmarks=256),
    }
    print(
        "| set | engine | order divergence | SHD | edges | edges that exact fits do not choose, or alone choose |"
    )
    print("|---|---|---|---|---|---|")
    for seed in seeds:
        for graph, density in KINDS:
            frame, dag = PaperCase(graph, density, "gauss", 0, seed, nodes, n).draw(device="cpu")
            table, context = Table.read(frame), Context(seed=0, device="cpu")
            start = np.random.default_rng(seed).permutation(nodes).tolist()
            exact = None
            for way, settings in ways.items():
                mended = refine(start, table, settings=settings, context=context)
                chosen = select(
                    mended.order, table, settings=settings, context=context, refined=mended
                ).chosen
                exact = chosen if exact is None else exact
                apart = int((chosen != exact).sum())
                print(
                    f"| {graph.upper()}{density}, seed {seed} | {way} | {order_divergence(dag, mended.order)} | "
                    f"{shd(dag, Dag(chosen, table.names))} | {int(chosen.sum())} | {apart} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--edges", action="store_true", help="what is found, instead of the error of single fits"
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--parents", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--landmarks", type=int, nargs="+", default=[48, 128, 256, 512])
    parser.add_argument("--count", type=int, default=4, help="nodes of each table")
    parser.add_argument("--nodes", type=int, default=10, help="of the tables for --edges")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    args = parser.parse_args()
    if max(args.seeds) >= 1000:
        raise InputError(
            f"Seeds of 1000 and above are for evaluation. Got {max(args.seeds)}; take smaller ones."
        )
    if args.edges:
        edges(args.rows[0], args.nodes, args.seeds)
        return
    print("mean absolute error in nats (90 % quantile)")
    print("| rows | parents | " + " | ".join(f"{m} landmarks" for m in args.landmarks) + " |")
    print("|---|---|" + "---|" * len(args.landmarks))
    for n in args.rows:
        errors(n, args.parents, args.landmarks, args.seeds, args.count)


if __name__ == "__main__":
    main()
