"""Whole runs on the paper's grid: every start, every refinement, every choice of edges, beside the baselines.

    python benchmarks/accuracy.py --device cuda --jobs 8 --out benchmarks/results/accuracy.jsonl
    python benchmarks/accuracy.py --score benchmarks/results/accuracy.jsonl      # adds SID, prints the tables

A contender is named start+refinement+edges, such as masking+kernel+likelihood (the default) or score+none+additive
(SCORE as published). Evaluation seeds are 1000 and above. The graphs are stored, so that SID, which needs gadjid, can
be added on another machine.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from diffan.simulate.grid import PaperCase
from harness import Record, grid, print_table, read, sweep

CONTENDERS = [
    "masking+kernel+likelihood",
    "deciduous+kernel+likelihood",
    "greedy+kernel+likelihood",
    "local+kernel+likelihood",
    "deciduous+none+additive",
    "greedy+none+additive",
    "local+none+additive",
    "masking+none+additive",
    "masking+none+likelihood",
    "masking+additive+additive",
    "masking+kernel+additive",
    "score+none+additive",
    "score+kernel+likelihood",
    "score+additive+additive",
    "random+kernel+likelihood",
    "nogam+none+additive",
    "das+none+additive",
    "cam+none+additive",
    "r2-sort+none+additive",
    "random+none+additive",
]
VARIANTS = ("masking", "deciduous", "greedy", "local")


def cell(case: PaperCase, name: str, device: str) -> Record:
    import diffan
    from diffan.additive.cutoff import adaptive_cutoff

    start, refine, edges = name.rsplit("+", 2)
    frame, truth = case.draw(device="cpu")
    method, variant = ("diffan", start) if start in VARIANTS else (start, "auto")
    result = diffan.discover(
        frame,
        method,
        variant=variant,
        device=device,
        refine=False if refine == "none" else refine,
        edges=edges,
    )
    record: Record = {
        "order_divergence": diffan.metrics.order_divergence(truth, result.order),
        "shd": diffan.metrics.shd(truth, result.dag),
        "false_edges": sum(edge not in set(truth.edges) for edge in result.dag.edges),
        "seconds": round(sum(result.timings.values()), 3),
        "doubts": [one.topic for one in result.diagnostics if one.level == "doubt"],
        "timings": {stage: round(seconds, 3) for stage, seconds in result.timings.items()},
        "edges": np.argwhere(result.dag.adjacency).tolist(),
        "truth": np.argwhere(truth.adjacency).tolist(),
    }
    if edges == "additive":
        tested = result.evidence.p_values[result.evidence.tested]
        record["shd_at_0.05"] = diffan.metrics.shd(truth, result.at_cutoff(0.05).dag)
        record["shd_adaptive"] = diffan.metrics.shd(truth, result.at_cutoff(adaptive_cutoff(tested, 0.6)).dag)
    return record


def add_sid(records: list[Record]) -> None:
    from diffan.metrics import sid

    for record in records:
        if "edges" in record and record.get("sid") is None:
            graphs = np.zeros((2, record["nodes"], record["nodes"]), dtype=int)
            for graph, edges in zip(graphs, (record["truth"], record["edges"]), strict=True):
                for i, j in edges:
                    graph[i, j] = 1
            record["sid"] = sid(graphs[0], graphs[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000, 1001, 1002])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--mechanism", default="gp")
    parser.add_argument("--scales", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--score", type=Path, help="add SID to a finished file and print its tables")
    args = parser.parse_args()
    if args.score:
        records = read(args.score)
        add_sid(records)
        args.score.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        cases = grid(args.seeds, args.nodes, args.samples, args.scales, args.mechanism)
        records = sweep(cell, cases, args.contenders, jobs=args.jobs, device=args.device, out=args.out)
    names = list(dict.fromkeys(record["name"] for record in records))
    for value in ("order_divergence", "shd", "shd_at_0.05", "shd_adaptive", "sid", "false_edges", "seconds"):
        print_table(records, value, names)
    for value in ("order_divergence", "shd", "sid"):
        print_table(records, value, names, by_noise=True)


if __name__ == "__main__":
    main()
