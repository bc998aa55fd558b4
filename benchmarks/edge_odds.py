"""From which evidence on is an edge as likely true as false? What several laws for true edges' evidence keep and lose.

    python benchmarks/edge_odds.py --jobs 2        # five minutes; tuning seeds, edges chosen along the true order

Each law gives the least evidence at which an edge is kept; the last row is what `diffan` does. Sparse tables are ER1 and SF1
with Gaussian and Laplace noise, dense ones ER5 and SF5, seed 0 and, with Gaussian noise, seed 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np
import numpy.typing as npt
from scipy import stats

from diffan.likelihood import select as selection
from diffan.likelihood.null import NullModel
from diffan.simulate.grid import PaperCase

Array = npt.NDArray[np.float64]
Density = Callable[[Array, Array, float], Array]
"""(evidence found, where, the price) -> density of true edges' evidence there."""


@dataclass(frozen=True)
class Evidence:
    nats: Array  # of every edge that the order allows, at rest at the price
    true: npt.NDArray[np.bool_]
    null: NullModel
    price: float


def evidence(case: PaperCase) -> Evidence:
    """What every edge along the true order of a table is worth, and which are true."""
    from diffan.context import Context
    from diffan.likelihood.settings import LikelihoodSettings
    from diffan.table import Table
    from diffan.threads import one_thread

    asked: list[tuple[NullModel, Array, float]] = []

    def remember(null: NullModel, nats: Array, price: float) -> float:
        asked.append((null, nats, price))
        return price

    frame, truth = case.draw(device="cpu")
    order = [truth.index(name) for name in truth.topological_order()]
    rule, selection.even_odds = selection.even_odds, remember
    try:
        with one_thread():
            context = Context(seed=0, device="cpu")
            settings = LikelihoodSettings(charge_misfit=False)
            found = selection.select(order, Table.read(frame), settings=settings, context=context, warn=False)
    finally:
        selection.even_odds = rule
    ((null, nats, price),) = asked
    return Evidence(nats, truth.adjacency.astype(bool)[found.tested], null, price)


def exponential(found: Array, at: Array, price: float) -> Array:
    return np.asarray(stats.expon.pdf(at - price, scale=np.mean(found - price)))


def log_normal(found: Array, at: Array, price: float, most: float = np.inf) -> Array:
    """With the uncertainty of its mean and spread: Student's law, with `most` degrees of freedom at the most."""
    logs, n = np.log(found), len(found)
    spread = max(logs.std(ddof=1), selection.LEAST_SPREAD) * np.sqrt(1 + 1 / n)
    return np.asarray(stats.t.pdf((np.log(at) - logs.mean()) / spread, min(n - 1, most)) / (spread * at))


def heavy_log_normal(found: Array, at: Array, price: float) -> Array:
    return log_normal(found, at, price, most=4)


def gamma(found: Array, at: Array, price: float) -> Array:
    mean, variance = np.mean(found - price), np.var(found - price, ddof=1)
    shape = max(mean**2 / variance, 0.2)
    return np.asarray(stats.gamma.pdf(at - price, shape, scale=mean / shape))


def least_kept(one: Evidence, density: Density) -> float:
    """As `even_odds`, with another law."""
    found = one.nats[one.nats > one.price]
    if len(found) < 2:
        return one.price
    false = (len(one.nats) - len(found)) * float(one.null.p_value(one.price))
    true = max(len(found) - false, 1.0)
    at = np.geomspace(one.price * (1 + 1e-9), found.max(), selection.ODDS_STEPS)
    false_there = false / one.null.scale * np.exp(-(at - one.price) / one.null.scale)
    likely = true * density(found, at, one.price) >= false_there
    return float(at[np.argmax(likely)]) if likely.any() else one.price


RULES: dict[str, Callable[[Evidence], float]] = {
    "(not asked)": lambda one: one.price,
    "exponential beyond the price": lambda one: least_kept(one, exponential),
    "log-normal": lambda one: least_kept(one, log_normal),
    "log-normal, at most 4 degrees of freedom": lambda one: least_kept(one, heavy_log_normal),
    "gamma": lambda one: least_kept(one, gamma),
    "logistic in the logarithm": lambda one: selection.even_odds(one.null, one.nats, one.price),
}


def cases(density: int) -> list[PaperCase]:
    runs = [(0, "gauss"), (0, "laplace"), (1, "gauss")]
    if density == 1:
        runs += [(1, "laplace"), (2, "gauss"), (2, "laplace")]
    return [
        PaperCase(graph, density, noise, scale, seed)
        for seed, noise in runs
        for graph in ("er", "sf")
        for scale in (0, 1, 2)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    with Pool(asked.jobs) as pool:
        sparse, dense = (pool.map(evidence, cases(density), chunksize=1) for density in (1, 5))
    print(f"{len(sparse)} sparse tables, {len(dense)} dense ones")
    print("| law | false, sparse | true ones lost | false, dense | true ones lost |\n|---|---|---|---|---|")
    for name, rule in RULES.items():
        counts = []
        for tables in (sparse, dense):
            kept = [one.nats > rule(one) for one in tables]
            counts.append(sum(int((k & ~one.true).sum()) for k, one in zip(kept, tables, strict=True)))
            lost = [(one.nats > one.price) & ~k & one.true for k, one in zip(kept, tables, strict=True)]
            counts.append(sum(int(some.sum()) for some in lost))
        print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
