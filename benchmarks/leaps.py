"""Does a relaxation rank parents that hide behind one another, and what do leaps find where there is nothing?

    python benchmarks/leaps.py ranks --graph sf --noise laplace --scale 1     # by steps and first weights; tuning seeds
    python benchmarks/leaps.py null --nodes 50 --density 1 --samples 1000     # shuffled columns as targets

"ranks": at the true order, every node with four parents or more; how many of its k parents are among the k heaviest columns.
"null": every column's shuffled copy among some of the columns: nothing can be found. Listed are the leaps that would be
accepted if every parent had to pay its price alone: their size, the number of candidates, by how much the objective falls, and
by how much that exceeds 2 log (candidates over size), what choosing the best of so many sets is worth by chance.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import torch

from diffan.dag import topological_indices
from diffan.likelihood.fits import NOBODY, Kernel, Parents
from diffan.likelihood.objective import Objective
from diffan.likelihood.parents import Choice
from diffan.likelihood.relaxation import relaxed_weights
from diffan.likelihood.search import in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import finish
from diffan.simulate.grid import PaperCase
from diffan.table import Table

STEPS_AND_STARTS = [(1, 0.5), (2, 0.5), (3, 0.5), (5, 0.5), (7, 0.5), (3, 0.1), (3, 0.25)]
LEAST_PARENTS = 4


class Unguarded(Choice):
    """A leap needs to pay its parents' prices alone."""

    def price_of_leap(self, current: Parents, landed: Parents) -> float:
        return self.price * (len(landed) - len(current))


def ranks(case: PaperCase) -> None:
    frame, truth = case.draw(device="cpu")
    values = torch.tensor(Table.read(frame).values, dtype=torch.float32)
    order = topological_indices(truth.adjacency)
    found, everyone = dict.fromkeys(STEPS_AND_STARTS, 0), 0
    for place, node in enumerate(order):
        parents = set(np.flatnonzero(truth.adjacency[:, node]).tolist())
        if len(parents) < LEAST_PARENTS:
            continue
        everyone += len(parents)
        points = values[:, order[:place]].contiguous()
        for steps, start in STEPS_AND_STARTS:
            weights = relaxed_weights(points[None], values[None, :, node], steps=steps, start=start)[0]
            heaviest = weights.argsort(descending=True)[: len(parents)].tolist()
            found[steps, start] += len(parents & {order[k] for k in heaviest})
    print(f"{case.name}: of {everyone} parents")
    for (steps, start), count in found.items():
        print(f"  {steps} steps from {start}: {count}", flush=True)


def null(case: PaperCase) -> None:
    d, n = case.n_nodes, case.n_samples
    values = Table.read(case.draw(device="cpu")[0]).values
    rng = np.random.default_rng(case.seed)
    shuffled = np.column_stack([rng.permutation(column) for column in values.T])
    objective = Objective(
        np.column_stack([values, shuffled]),
        settings=LikelihoodSettings(),
        device=torch.device("cpu"),
        rng=np.random.default_rng(0),
    )
    objective.gaussian = case.noise == "gauss"
    objective.ready = Kernel(0.85, 1.0, 0.7)
    objective.kernels = [objective.ready] * (2 * d)
    accepted = []
    for node in range(d, 2 * d):
        candidates = frozenset(rng.permutation(d)[: rng.integers(d // 3, d)].tolist())
        choice = Unguarded(objective, node, candidates, NOBODY, objective.settings.edge_nats)
        (landed,) = finish(in_step([choice.leap(NOBODY)], objective))
        if landed:
            fall = objective.value(node, NOBODY) - objective.value(node, landed)
            chance = 2.0 * math.log(math.comb(len(candidates), len(landed)))
            accepted.append((len(landed), len(candidates), round(fall, 1), round(fall - chance, 1)))
    print(f"{case.name}, {n} rows: {len(accepted)} leaps of {d} nodes that depend on nothing")
    for size, among, fall, excess in sorted(accepted, key=lambda one: -one[3]):
        print(f"  {size} of {among} candidates: fall {fall}, beyond chance {excess}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("ranks", "null"))
    parser.add_argument("--graph", choices=("er", "sf"), default="er")
    parser.add_argument("--density", type=int, default=5)
    parser.add_argument("--noise", default="gauss")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    args = parser.parse_args()
    case = PaperCase(args.graph, args.density, args.noise, args.scale, args.seed, args.nodes, args.samples)
    ranks(case) if args.part == "ranks" else null(case)


if __name__ == "__main__":
    main()
