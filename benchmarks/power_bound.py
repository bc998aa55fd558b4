"""How many edges of dense graphs can be found at all from these rows? A bound from knowing nearly everything.

    python benchmarks/power_bound.py --seeds 1000 1001 1002
    python benchmarks/power_bound.py --seeds 1000 1001 1002 --sets    # all parents of a node at once, every noise

For Gaussian noise: suppose the order, every node's other parents, the kernel that drew its mechanism (joint, bandwidth
1 in the raw units) and its noise were known, and only one edge were in question. The best evidence for it is then the
Bayes factor: twice the difference of the Gaussian-process log marginal likelihoods with and without that parent. The
table counts the true edges whose evidence stays below some nats; a method that reports edges above that level and no
false ones has at least that SHD, however it searches. Nothing here is available to a method, and nothing is tuned.

With --sets, the evidence for all parents of a node together, against that of none: a node whose true set of k among m
candidates stays below 2 log (m over k) + 4 nats cannot be told from the best of as many sets that mean nothing. Counted are
the edges into such nodes. Other noises than Gaussian are treated as if they were.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from diffan.simulate.grid import NOISES, SCALE_RANGES, PaperCase

LEVELS = (0.0, 4.0, 8.0)
NOISE_SD = (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 1.7)  # what the grid draws from; Laplace noise of scale b has 1.4 b
LEAST_OF_A_SET = 4.0  # nats beyond chance
SMALLEST_SET = 5  # smaller ones are always seen


def evidence(values: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> float:
    """Twice the log marginal likelihood of the target given these columns, the noise at its best."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.spatial.distance import pdist, squareform

    n = len(target)
    kernel = (
        np.ones((n, n)) if not values.shape[1] else squareform(np.exp(-0.5 * pdist(values, "sqeuclidean")))
    )
    best = -np.inf
    for sd in NOISE_SD:
        np.fill_diagonal(kernel, 1.0 + sd**2)
        factor = cho_factor(kernel, lower=True, check_finite=False)
        fit = float(target @ cho_solve(factor, target, check_finite=False))
        best = max(best, -fit - 2 * float(np.log(np.diag(factor[0])).sum()))
    return best


def hidden_edges(case: PaperCase) -> tuple[int, list[int]]:
    """How many edges there are, and how many have evidence below each level."""
    frame, truth = case.draw(device="cpu")
    values, adjacency = frame.to_numpy(), truth.adjacency
    found = []
    for node in range(truth.n_nodes):
        parents = np.flatnonzero(adjacency[:, node])
        if len(parents):
            whole = evidence(values[:, parents], values[:, node])
            found += [whole - evidence(values[:, parents[parents != p]], values[:, node]) for p in parents]
    return len(found), [int((np.array(found) < level).sum()) for level in LEVELS]


def edges_into_hidden_sets(case: PaperCase) -> int:
    """How many edges lead to nodes whose whole set of parents stays below what chance would give."""
    frame, truth = case.draw(device="cpu")
    values, adjacency = frame.to_numpy() - frame.to_numpy().mean(axis=0), truth.adjacency
    hidden = 0
    for place, node in enumerate(truth.index(name) for name in truth.topological_order()):
        parents, target = np.flatnonzero(adjacency[:, node]), values[:, node]
        if len(parents) >= SMALLEST_SET:
            alone = -len(target) * (1.0 + math.log(target.var()))
            chance = 2.0 * math.log(math.comb(place, len(parents)))
            if evidence(values[:, parents], target) - alone < chance + LEAST_OF_A_SET:
                hidden += len(parents)
    return hidden


def whole_sets(seeds: list[int], n: int) -> None:
    print("| graph | noise | edges hidden, by noise scale |\n|---|---|---|")
    for graph in ("er", "sf"):
        everything = []
        for noise in NOISES:
            found = [
                np.mean(
                    [edges_into_hidden_sets(PaperCase(graph, 5, noise, scale, seed, 20, n)) for seed in seeds]
                )
                for scale in range(len(SCALE_RANGES))
            ]
            everything += found
            print(
                f"| {graph.upper()}5 | {noise} | {' / '.join(f'{mean:.1f}' for mean in found)} |", flush=True
            )
        print(f"| {graph.upper()}5 | all | {np.mean(everything):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000])
    parser.add_argument("--samples", type=int, nargs="+", default=[1000])
    parser.add_argument("--sets", action="store_true", help="all parents of a node at once")
    args = parser.parse_args()
    if args.sets:
        return whole_sets(args.seeds, args.samples[0])
    print(
        "| graph | rows | noise scale | edges | "
        + " | ".join(f"below {level:g} nats" for level in LEVELS)
        + " |"
    )
    print("|---|" + "---|" * (3 + len(LEVELS)))
    for n in args.samples:
        for graph in ("er", "sf"):
            for scale, span in enumerate(SCALE_RANGES):
                cells = defaultdict(list)
                for seed in args.seeds:
                    edges, hidden = hidden_edges(PaperCase(graph, 5, "gauss", scale, seed, 20, n))
                    cells["edges"].append(edges)
                    cells["hidden"].append(hidden)
                means = np.mean(cells["hidden"], axis=0)
                numbers = " | ".join(f"{mean:.1f}" for mean in means)
                print(
                    f"| {graph.upper()}5 | {n} | {span} | {np.mean(cells['edges']):.0f} | {numbers} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
