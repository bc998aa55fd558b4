"""How good is the score's own order? Mean order divergence on the paper's grid, beside SCORE's.

    python benchmarks/order_accuracy.py --device cuda --jobs 8            # d = 20, n = 1000, 108 sets
    python benchmarks/order_accuracy.py --samples 3000 --seeds 1000      # 36 sets

A contender may carry settings, "masking;width=256;mean_weight=2". Evaluation seeds are 1000 and above; nothing was tuned on them. Standardised columns, no refinement, no pruning.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from diffan.simulate.grid import PaperCase
from harness import Record, grid, print_table, sweep

CONTENDERS = [
    "masking",
    "deciduous",
    "greedy",
    "paper-masking",
    "paper-deciduous",
    "score",
    "r2-sort",
    "random",
]


def order_cell(case: PaperCase, name: str, device: str) -> Record:
    from diffan.context import Context
    from diffan.methods import METHODS
    from diffan.metrics import order_divergence
    from diffan.options import apply
    from diffan.table import Table

    frame, truth = case.draw(device="cpu")
    table = Table.read(frame)
    label, *changes = name.split(";")
    preset, _, variant = label.rpartition("-")
    is_variant = variant in ("masking", "deciduous", "greedy", "local")
    method = METHODS["diffan" if is_variant else label]
    settings = method.default_settings(preset if is_variant and preset else "default")
    options = {key: json.loads(value) for key, value in (change.split("=") for change in changes)}
    (settings,) = apply(options | ({"variant": variant} if is_variant else {}), settings, what=name)
    started = time.perf_counter()
    ordering = method.find_order(table, settings, Context(seed=0, device=device))
    seconds = time.perf_counter() - started
    loss = min(ordering.losses["validation"]) if ordering.losses else None
    return {
        "order_divergence": order_divergence(truth, ordering.order),
        "seconds": round(seconds, 3),
        "held_out_loss": loss,
        "screened_share": None if ordering.neighbours is None else float(ordering.neighbours.mean()),
        "steps": ordering.losses["step"][-1] if ordering.losses else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000, 1001, 1002])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--scales", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = grid(args.seeds, args.nodes, args.samples, args.scales)
    records = sweep(order_cell, cases, args.contenders, jobs=args.jobs, device=args.device, out=args.out)
    print_table(records, "order_divergence", args.contenders)
    print_table(records, "order_divergence", args.contenders, by_noise=True)
    print_table(records, "seconds", args.contenders)


if __name__ == "__main__":
    main()
