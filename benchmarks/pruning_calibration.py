"""Whether pruning's p-values can be believed, how much they find, and which cutoff rule to use.

    python benchmarks/pruning_calibration.py null        # size on data without edges
    python benchmarks/pruning_calibration.py power       # weak terms, and the true edges of the stored mgcv cases
    python benchmarks/pruning_calibration.py cutoffs     # SHD and SID of the rules at the true order, sparse and dense
    python benchmarks/pruning_calibration.py screening   # what screening above 50 columns loses, at the true order

Seeds from 1000 on are for evaluation: nothing was chosen on them. Constants (the half degree of freedom of the test,
the posterior of the adaptive rule) were chosen on smaller seeds, as `--first-seed 100` shows again.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import norm, t

from diffan.additive import SplineGram, fit_node
from diffan.additive.cutoff import adaptive_cutoff, fdr_cutoff
from diffan.context import Context
from diffan.dag import Dag, topological_indices
from diffan.metrics import sid
from diffan.pruning import PruneSettings, p_values, prune, term_tests
from diffan.simulate.grid import PaperCase
from diffan.table import Table

Columns = np.ndarray
CPU = Context(device="cpu")
MARGINALS: dict[str, Callable[[Columns], Columns]] = {
    "Gaussian": lambda z: z,
    "exponential": lambda z: -np.log(norm.sf(z)),
    "Student t, 3 df": lambda z: t.ppf(norm.cdf(z), 3),
}
SIZES = [(300, 5), (1000, 5), (1000, 19), (5000, 19)]  # rows, predictors
FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "mgcv"


def null(first_seed: int, n_tests: int) -> None:
    """Targets that depend on nothing; the predictors are independent or share a factor (correlation 0.6)."""
    print(
        "| columns | target | predictors | rows | terms | P(p < 0.05) | P(p < 0.01) | P(p < 0.001) | tests |"
    )
    print("|" + "---|" * 9)
    for rows, terms in SIZES:
        for name, marginal in MARGINALS.items():
            for target in ("Gaussian",) if name == "Gaussian" else ("Gaussian", name):
                for correlation in (0.0, 0.6):
                    found = [
                        _null_p_values(marginal, MARGINALS[target], rows, terms, correlation, first_seed + k)
                        for k in range(-(-n_tests // (10 * terms)))
                    ]
                    p = np.concatenate(found)
                    shares = " | ".join(f"{(p < level).mean():.4f}" for level in (0.05, 0.01, 0.001))
                    kind = "correlated" if correlation else "independent"
                    print(
                        f"| {name} | {target} | {kind} | {rows} | {terms} | {shares} | {len(p)} |", flush=True
                    )


def _null_p_values(
    marginal: Callable[[Columns], Columns],
    target: Callable[[Columns], Columns],
    rows: int,
    terms: int,
    correlation: float,
    seed: int,
) -> np.ndarray:
    rng = np.random.default_rng([seed, rows, terms, int(10 * correlation)])
    shared = rng.standard_normal((rows, 1))
    own = rng.standard_normal((rows, terms))
    predictors = marginal(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
    values = np.hstack([predictors, target(rng.standard_normal((rows, 10)))])
    candidates = np.zeros((terms + 10, terms + 10), dtype=bool)
    candidates[:terms, terms:] = True
    table = _table(values)
    evidence = prune(range(terms + 10), table, candidates, settings=PruneSettings(), context=CPU)
    return evidence.p_values[candidates]


def power(first_seed: int, n_sets: int) -> None:
    """How often a weak term (4 % of the noise variance, 500 rows, 4 idle terms beside it) has p < 0.001."""
    shapes: dict[str, Callable[[Columns], Columns]] = {
        "x": lambda x: x,
        "tanh 3x": lambda x: np.tanh(3 * x),
        "x^2": np.square,
        "sin 2x": lambda x: np.sin(2 * x),
        "sin 4x": lambda x: np.sin(4 * x),
    }
    print("| weak term | power at 0.001 | at 0.05 |\n|---|---|---|")
    for name, shape in shapes.items():
        found = []
        for k in range(n_sets):
            values = np.random.default_rng([first_seed + k]).standard_normal((500, 6))
            effect = shape(values[:, 0])
            values[:, 5] += 0.2 * (effect - effect.mean()) / effect.std()
            found.append(term_tests(fit_node(SplineGram.from_values(values), 5, range(5)))[1][0])
        p = np.array(found)
        print(f"| {name} | {(p < 0.001).mean():.3f} | {(p < 0.05).mean():.3f} |", flush=True)
    print(
        "\n| stored case | rows | columns | true edges found by mgcv | by us | false by mgcv | by us | decisions differ |"
    )
    print("|" + "---|" * 8)
    for file in sorted(FIXTURES.glob("case*.npz")):
        with np.load(file) as stored:
            values, order = stored["X"].astype(float), stored["order"].tolist()
            true, mgcv = stored["A"] == 1, stored["pvalue"] < 0.001
        ours = p_values(order, values) < 0.001
        print(
            f"| {file.stem} | {values.shape[0]} | {values.shape[1]} | {mgcv[true].mean():.3f} | {ours[true].mean():.3f} "
            f"| {mgcv[~true].sum()} | {ours[~true].sum()} | {(mgcv != ours).sum()} |",
            flush=True,
        )


def cutoffs(first_seed: int, n_seeds: int) -> None:
    """The paper's grid (d = 20, n = 1000) pruned along the true order: three noises, three scales, the seeds."""
    rules: dict[str, Callable[[np.ndarray], float]] = {
        **{f"fixed {c}": lambda p, c=c: c for c in (0.0001, 0.001, 0.01, 0.05)},
        **{f"fdr {q}": lambda p, q=q: fdr_cutoff(p, q) for q in (0.01, 0.05, 0.1, 0.2)},
        **{f"adaptive {b}": lambda p, b=b: adaptive_cutoff(p, b) for b in (0.5, 0.6, 0.7, 0.8)},
    }
    shd, distance = defaultdict(list), defaultdict(list)
    kinds = [("er", 1), ("er", 5), ("sf", 1), ("sf", 5)]
    for graph, density in kinds:
        for noise in ("gauss", "exp", "laplace"):
            for scale in range(3):
                for seed in range(first_seed, first_seed + n_seeds):
                    frame, truth = PaperCase(graph, density, noise, scale, seed).draw(device="cpu")
                    order = topological_indices(truth.adjacency)
                    evidence = prune(order, Table.read(frame), settings=PruneSettings(), context=CPU)
                    for name, rule in rules.items():
                        kept = evidence.at_cutoff(rule(evidence.p_values[evidence.tested])).chosen
                        shd[name, graph, density].append(int((kept != truth.adjacency).sum()))
                        distance[name, graph, density].append(sid(truth, Dag(kept, truth.names)))
    sets = len(shd["fixed 0.001", "er", 1])
    for what, measured in (("SHD", shd), ("SID", distance)):
        print(f"\n{what} at the true order, mean over {sets} sets per column")
        print("| rule | ER1 | ER5 | SF1 | SF5 | mean |\n" + "|---" * 6 + "|")
        for name in rules:
            means = [np.mean(measured[name, graph, density]) for graph, density in kinds]
            print(f"| {name} | " + " | ".join(f"{m:.2f}" for m in [*means, np.mean(means)]) + " |")


def screening(first_seed: int, n_seeds: int) -> None:
    """True edges with p < 0.001 when all predecessors are tested, and when 10 or 20 of them are screened first."""
    print(
        "| graph | columns | rows | true edges | found by testing all (false) | screened to | of these kept | found (false) |"
    )
    print("|" + "---|" * 8)
    for graph, density, d, rows in (
        ("er", 1, 60, 1000),
        ("er", 4, 60, 1000),
        ("sf", 1, 100, 5000),
        ("sf", 4, 100, 5000),
    ):
        counts = defaultdict(lambda: np.zeros(3, dtype=int))
        edges, everything = 0, np.zeros(2, dtype=int)
        for seed in range(first_seed, first_seed + n_seeds):
            frame, truth = PaperCase(graph, density, "gauss", 0, seed, d, rows).draw(device="cpu")
            true, order, table = truth.adjacency == 1, topological_indices(truth.adjacency), Table.read(frame)
            full = prune(order, table, settings=PruneSettings(screen_above=d), context=CPU).chosen
            edges += int(true.sum())
            everything += [int((full & true).sum()), int((full & ~true).sum())]
            for most in (10, 20):
                part = prune(order, table, settings=PruneSettings(max_neighbours=most), context=CPU)
                counts[most] += [
                    int((full & true & part.tested).sum()),
                    int((part.chosen & true).sum()),
                    int((part.chosen & ~true).sum()),
                ]
        for most, (kept, found, false) in counts.items():
            print(
                f"| {graph.upper()}{density} | {d} | {rows} | {edges} | {everything[0]} ({everything[1]}) | {most} "
                f"| {kept} | {found} ({false}) |",
                flush=True,
            )


def _table(values: np.ndarray) -> Table:
    center, scale = values.mean(axis=0), values.std(axis=0)
    return Table((values - center) / scale, tuple(f"x{j}" for j in range(values.shape[1])), center, scale)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["null", "power", "cutoffs", "screening"])
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--size", type=int, help="tests per row (null), sets (power) or seeds (the others)")
    given = parser.parse_args()
    if given.part == "null":
        null(given.first_seed, given.size or 10_000)
    elif given.part == "power":
        power(given.first_seed, given.size or 500)
    elif given.part == "cutoffs":
        cutoffs(given.first_seed, given.size or 3)
    else:
        screening(given.first_seed, given.size or 2)


if __name__ == "__main__":
    main()
