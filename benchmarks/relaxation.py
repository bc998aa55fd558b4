"""Could a relaxed kernel find the parents that a search one by one misses? Tuning seeds, at the true order.

    python benchmarks/relaxation.py --graph er --scale 1 --seed 0
    python benchmarks/relaxation.py --graph sf --scale 2 --seed 1 --rows 500 --steps 15 --rate 0.8

Every node's predecessors get a share c of their own in the product kernel, prod_p (1 - c_p + c_p bell_p), all 0.3 at first.
Some steps of Adam on the Gaussian log marginal likelihood, noise included, raise the shares of those that matter. Printed
for each node: how many of its k parents are among the k largest shares, and how many true and false ones exceed 0.1.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import torch
from torch import Tensor

from diffan.dag import topological_indices
from diffan.likelihood.exact import inverse, likelihood_slope_weights
from diffan.likelihood.kernel import ColumnKernels
from diffan.simulate.grid import PaperCase
from diffan.table import Table

START, LEAST_RIDGE, LARGEST_RIDGE = 0.3, 0.05, 5.0


def relaxed_shares(bells: Tensor, target: Tensor, *, steps: int, rate: float) -> Tensor:
    """The share of each column: bells [columns, n, n] and the node's values [n] -> [columns]."""
    start = math.log(START / (1 - START))
    place = torch.tensor([start] * len(bells) + [0.0])  # logits of the shares, then the log of the ridge
    first, second = torch.zeros_like(place), torch.zeros_like(place)
    for step in range(1, steps + 1):
        gradient = _gradient(bells, target, place)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient.square()
        place += rate * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        place[:-1].clamp_(-6, 4)
        place[-1].clamp_(math.log(LEAST_RIDGE), math.log(LARGEST_RIDGE))
    return torch.sigmoid(place[:-1])


def _gradient(bells: Tensor, target: Tensor, place: Tensor) -> Tensor:
    """Of the log marginal likelihood, its scale profiled out, by the logits and the log of the ridge."""
    shares, ridge = torch.sigmoid(place[:-1]), float(place[-1].exp())
    kernel = torch.ones_like(bells[0])
    for bell, share in zip(bells, shares.tolist(), strict=True):
        kernel.mul_(torch.add(1 - share, bell, alpha=share))
    shifted = kernel.clone()
    shifted.diagonal().add_(ridge)
    slopes = likelihood_slope_weights(inverse(shifted[None]), target[None])[0]
    by_ridge = 0.5 * float(slopes.diagonal().sum()) * ridge
    weights = slopes.mul_(kernel)
    total = float(weights.sum())
    by_share = [
        0.5 * (1 - share) * (total - float((weights / torch.add(1 - share, bell, alpha=share)).sum()))
        for bell, share in zip(bells, shares.tolist(), strict=True)
    ]  # dK / dc = K (bell - 1) / factor = K (1 - 1 / factor) / c, and dc / dlogit = c (1 - c)
    return torch.tensor([*by_share, by_ridge])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graph", choices=("er", "sf"), default="er")
    parser.add_argument("--noise", default="gauss")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rate", type=float, default=0.4)
    args = parser.parse_args()
    frame, truth = PaperCase(args.graph, 5, args.noise, args.scale, args.seed).draw(device="cpu")
    values = torch.tensor(Table.read(frame).values[: args.rows], dtype=torch.float32)
    bells = ColumnKernels(values, 1.0).bells
    order = topological_indices(truth.adjacency)
    found = everyone = wrong = 0
    for k, node in enumerate(order[2:], 2):
        started = time.perf_counter()
        shares = relaxed_shares(bells[order[:k]], values[:, node], steps=args.steps, rate=args.rate).numpy()
        true = truth.adjacency[order[:k], node] > 0
        on_top = int(true[np.argsort(-shares)[: true.sum()]].sum())
        right, false = int((true & (shares > 0.1)).sum()), int((~true & (shares > 0.1)).sum())
        found, everyone, wrong = found + on_top, everyone + int(true.sum()), wrong + false
        print(
            f"node {k:2d}: {on_top} of {true.sum()} parents on top; above 0.1: {right} true, {false} false "
            f"({time.perf_counter() - started:.1f} s)",
            flush=True,
        )
    print(f"{found} of {everyone} parents on top, {wrong} false above 0.1")


if __name__ == "__main__":
    main()
