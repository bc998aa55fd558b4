"""What each choice of the local variant gives at 500 variables and 100,000 rows, on tuning seeds (below 1000).

    python benchmarks/local_ladder.py --device cuda --out benchmarks/results/local-ladder-h200.jsonl

Every line: the graph, the settings that differ from the default, seconds, held-out loss, the share of true edges that the
order reverses (random: 0.5) before and after the moves among screened neighbours, and how much the screen kept.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diffan.additive.gram import SplineGram
from diffan.algorithm import topological_order
from diffan.context import Context
from diffan.likelihood.gram_scores import GramScores
from diffan.likelihood.landmark_scores import LandmarkScores
from diffan.likelihood.neighbours import refine_among_neighbours
from diffan.local_settings import LocalSettings
from diffan.metrics import order_divergence
from diffan.ordering.local import LocalCriteria, local_finder, ordering_rows
from diffan.progress import Silent
from diffan.pruning import PruneSettings, candidates_along, prune
from diffan.score.local_training import train_local
from diffan.score.screening import screen
from diffan.settings import DiffanSettings, OrderSettings
from diffan.simulate import random_dag, sample_anm
from diffan.table import Table

LADDER: list[dict[str, Any]] = [
    {},
    {"local_width": 128},
    {"local_steps": 1500},
    {"local_steps": 3000},
    {"local_steps": 12000},
    {"local_rate": 1e-2},
    {"local_rate": 1e-3},
    {"local_absent": 0.0},
    {"local_absent": 0.8},
    {"local_batch": 256},
    {"local_batch": 4096},
    {"local_depth": 3},
    {"local_decay": 0.1},
    {"screen_top": 8},
    {"screen_top": 20},
    {"mean_weight": 0.0},
    {"mean_weight": 1.0},
    {"noise_levels": (0.1, 0.15, 0.2)},
    {"noise_levels": (0.4, 0.6)},
]
BRIEF: list[dict[str, Any]] = [{}, {"local_steps": 2000}, {"local_absent": 0.8}, {"screen_top": 20}]


class Clock:
    def __init__(self) -> None:
        self.at = time.perf_counter()

    def __call__(self) -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        passed, self.at = now - self.at, now
        return round(passed, 3)


def study(
    graph: str, degree: int, args: argparse.Namespace, ladder: list[dict[str, Any]], write: Any
) -> None:
    device = torch.device(args.device)
    clock = Clock()
    dag = random_dag(args.variables, degree * args.variables, graph=graph, seed=args.seed)
    data = sample_anm(dag, args.rows, seed=args.seed, noise=args.noise, device=args.device)
    seconds = {"simulate": clock()}
    table = Table.read(data)
    seconds["table"] = clock()
    gram = SplineGram.from_values(table.values, device=args.device if device.type == "cuda" else "cpu")
    seconds["gram"] = clock()
    truth = np.asarray(dag.adjacency)
    pairs = (truth + truth.T) > 0
    case = {"graph": f"{graph}{degree}", "d": args.variables, "n": args.rows, "seed": args.seed}
    write({**case, "what": "data", "seconds": seconds})
    context = Context(seed=args.seed, device=args.device)

    def reversed_share(order: list[int]) -> float:
        return round(order_divergence(truth, order) / truth.sum(), 4)

    def refined(order: list[int], neighbours: Any, score: Any) -> tuple[list[int], float, int]:
        clock()
        with Silent().task("refine", 1) as task:
            mended, _, moves = refine_among_neighbours(order, neighbours, score, pay=4.0, task=task)
        return mended, clock(), len(moves)

    shuffled = np.random.default_rng(args.seed).permutation(args.variables).tolist()
    for number, change in enumerate(ladder):
        clock()
        local = replace(LocalSettings(), **{k: v for k, v in change.items() if hasattr(LocalSettings(), k)})
        order_settings = replace(
            OrderSettings(), **{k: v for k, v in change.items() if not hasattr(local, k)}
        )
        settings = DiffanSettings(variant="local", local=local, order=order_settings)
        found = screen(gram, local, device)
        line: dict[str, Any] = {**case, "what": "local", "change": change, "screen_s": clock()}
        sizes = found.neighbours.sum(axis=1)
        line |= {
            "recall": round(float((found.neighbours & pairs).sum() / pairs.sum()), 4),
            "candidates": round(float(sizes.mean()), 2),
            "most": int(sizes.max()),
        }
        if number == 0:
            mended, seconds_taken, moves = refined(shuffled, found.neighbours, GramScores(gram, device))
            write({**case, "what": "random start + moves", "refine_s": seconds_taken, "moves": moves,
                   "reversed": reversed_share(shuffled), "refined": reversed_share(mended)})  # fmt: skip
        groups, losses = train_local(
            table.values, found.neighbours, local, context.rng("local"), [device], Silent()
        )
        line |= {"train_s": clock(), "steps": losses["step"][-1], "loss": round(min(losses["validation"]), 5)}
        criteria = LocalCriteria(groups, ordering_rows(table.values, settings, context), order_settings)
        order, _ = topological_order(local_finder(criteria), args.variables)
        line |= {"order_s": clock(), "reversed": reversed_share(order)}
        mended, seconds_taken, moves = refined(order, found.neighbours, GramScores(gram, device))
        line |= {"refine_s": seconds_taken, "moves": moves, "refined": reversed_share(mended)}
        if device.type == "cuda":
            line["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        write(line)
        if number == 0:
            finish(
                mended, found.neighbours, table, truth, context, device, write, case, refined, reversed_share
            )


def finish(
    order: list[int], neighbours: Any, table: Table, truth: Any, context: Context, device: torch.device,
    write: Any, case: dict[str, Any], refined: Any, reversed_share: Any,
) -> None:  # fmt: skip
    """Edges by additive tests, then kernel moves among the tested pairs, then edges again."""
    rng = np.random.default_rng(0)
    joined = neighbours
    for landmarks in (0, 128, 256):
        clock = Clock()
        if landmarks:
            pairs = joined
            score = LandmarkScores(
                table.values[rng.permutation(table.n_samples)[:10_000]], landmarks=landmarks, device=device
            )
            place = np.argsort(order)
            score.settle_entropy(
                [
                    frozenset(i for i in np.flatnonzero(row) if place[i] < place[j])
                    for j, row in enumerate(pairs)
                ]
            )
            tried, taken, moves = refined(order, pairs, score)
            entropy = "gauss" if score.gaussian else "spacing"
        else:
            tried, taken, moves, entropy = order, 0.0, 0, ""
        clock()
        evidence = prune(
            tried, table, candidates_along(tried, neighbours), settings=PruneSettings(), context=context
        )
        if not landmarks:
            joined = evidence.chosen | evidence.chosen.T
        right = int((evidence.chosen & (truth > 0)).sum())
        write({**case, "what": "edges", "landmarks": landmarks, "kernel_s": taken, "moves": moves, "entropy": entropy,
               "reversed": reversed_share(tried), "prune_s": clock(), "edges": int(evidence.chosen.sum()),
               "true": int(truth.sum()), "f1": round(2 * right / (evidence.chosen.sum() + truth.sum()), 4)})  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--variables", type=int, default=500)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", default="gauss")
    parser.add_argument("--brief", action="store_true", help="few settings on every graph")
    parser.add_argument(
        "--changes", nargs="+", help="of the ladder on ER1, only those of these settings; ER1 alone"
    )
    parser.add_argument("--limit-seconds", type=float, default=1e9)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()

    def write(line: dict[str, Any]) -> None:
        line["noise"] = args.noise
        with args.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
        if time.perf_counter() - started > args.limit_seconds:
            raise SystemExit("time limit")

    if args.changes:
        chosen = [change for change in LADDER if not change or set(change) & set(args.changes)]
        study("er", 1, args, chosen, write)
        return
    study("er", 1, args, BRIEF if args.brief else LADDER, write)
    study("sf", 1, args, BRIEF, write)
    study("er", 4, args, BRIEF, write)


if __name__ == "__main__":
    main()
