"""What true tiers are worth: order divergence across and within tiers, and SHD, with and without them.

    python benchmarks/knowledge.py                                    # small: SCORE and R2-sort, a minute
    python benchmarks/knowledge.py --contenders diffan score cam --seeds 1000 1001 1002 --jobs 16 \\
        --out benchmarks/results/knowledge.jsonl                      # 50 nodes, the default method too

The nodes of a simulated graph of 50 are cut into five tiers along its true order. Each contender runs twice on the same
table, without and with the tiers. Evaluation seeds are 1000 and above.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from diffan.simulate.grid import PaperCase
from harness import Record, print_table, sweep

TIERS = 5


def cell(case: PaperCase, name: str, device: str) -> Record:
    import diffan

    method, told = name.split("+")
    frame, truth = case.draw(device="cpu")
    order = truth.topological_order()
    size = -(-len(order) // TIERS)
    tiers = [order[k : k + size] for k in range(0, len(order), size)]
    known = diffan.Knowledge(tiers=tiers) if told == "tiers" else diffan.Knowledge()
    result = diffan.discover(frame, method, knowledge=known, device=device)
    home = {node: k for k, tier in enumerate(tiers) for node in tier}
    place = {node: k for k, node in enumerate(result.order)}
    reversed_edges = [(a, b) for a, b in truth.edges if place[a] > place[b]]
    return {
        "order_divergence": len(reversed_edges),
        "across_tiers": sum(home[a] != home[b] for a, b in reversed_edges),
        "shd": diffan.metrics.shd(truth, result.dag),
        "edges": truth.n_edges,
        "seconds": round(sum(result.timings.values()), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contenders", nargs="+", default=["score", "r2-sort"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000])
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = [
        PaperCase(graph, density, "gauss", 0, seed, args.nodes, args.samples)
        for seed in args.seeds
        for graph, density in (("er", 1), ("er", 5), ("sf", 1))
    ]
    names = [f"{method}+{told}" for method in args.contenders for told in ("nothing", "tiers")]
    records = sweep(cell, cases, names, jobs=args.jobs, device=args.device, out=args.out)
    for value in ("order_divergence", "across_tiers", "shd", "seconds"):
        print_table(records, value, names)


if __name__ == "__main__":
    main()
