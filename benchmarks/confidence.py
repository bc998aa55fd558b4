"""Are frequencies to be believed, what does reusing the score model change, and what do replicates cost?

    python benchmarks/confidence.py calibration                       # small: 10 nodes, two minutes
    python benchmarks/confidence.py reuse                             # tuning seeds: reused against retrained scores
    python benchmarks/confidence.py orders                            # tuning seeds: rows and noise levels that order halves
    python benchmarks/confidence.py cost --replicates 10              # one run and some replicates side by side
    python benchmarks/confidence.py calibration --contenders diffan+reuse score+reuse --nodes 20 \\
        --samples 1000 500 200 --seeds 1000 1001 1002 1003 --replicates 100 --jobs 16 \\
        --out benchmarks/results/confidence.jsonl --svg docs/reliability.svg
    python benchmarks/confidence.py reuse --nodes 20 --samples 1000 --seeds 0 1 2 --replicates 100 --jobs 16
    python benchmarks/confidence.py cost --replicates 100 --workers 2

Calibration pools all edges of all tables: of those found in a share of replicates between 0.85 and 0.95, how many are
true? Each true or false edge counts in the direction it was found. Evaluation seeds are 1000 and above.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from diffan.simulate.grid import PaperCase
from harness import Record, print_table, sweep

BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0 + 1e-9)


def cell(case: PaperCase, name: str, device: str, *, replicates: int) -> Record:
    """One table, one contender "method+reuse" or "method+retrain": the frequency of every edge and whether it is true."""
    import diffan

    method, how = name.split("+")
    settings = diffan.ConfidenceSettings(replicates=replicates, reuse=how == "reuse")
    frame, truth = case.draw(device="cpu")
    result = diffan.discover(frame, method, confidence=settings, device=device)
    sure = result.confidence
    assert sure is not None
    true = truth.adjacency.astype(bool)
    stable = sure.stable
    off = ~np.eye(len(true), dtype=bool)
    return {
        "frequency": np.round(sure.frequency, 4).tolist(),
        "precedence": np.round(sure.precedence, 4).tolist(),
        "true": true.astype(int).tolist(),
        "shd": diffan.metrics.shd(truth, result.dag),
        "consensus_shd": diffan.metrics.shd(truth, sure.consensus),
        "stable": int(stable.sum()),
        "stable_false": int((stable & ~true).sum()),
        "expected_false": round(sure.expected_false, 3),
        "brier": float(np.square(sure.frequency - true)[off].mean()),
        "single_run_s": round(sum(v for k, v in result.timings.items() if k != "confidence"), 2),
        "replicates_s": round(result.timings["confidence"], 2),
    }


def reliability(records: Sequence[Record]) -> list[tuple[float, float, float, int, int]]:
    """Per bin of frequency: its ends, the mean frequency, edges in it and how many of them are true."""
    frequency = np.concatenate([np.ravel(r["frequency"]) for r in records])
    true = np.concatenate([np.ravel(r["true"]) for r in records])
    found = []
    for low, high in pairwise(BINS):
        inside = (frequency > low) & (frequency <= high)
        if inside.any():
            mean, n, right = float(frequency[inside].mean()), int(inside.sum()), int(true[inside].sum())
            found.append((low, min(high, 1.0), mean, n, right))
    return found


def print_reliability(label: str, records: Sequence[Record]) -> None:
    print(f"\n{label}: {len(records)} tables")
    print("| found in a share of | mean share | edges | true | share true |\n|---|---|---|---|---|")
    for low, high, mean, n, right in reliability(records):
        print(f"| {low:.2f} to {high:.2f} | {mean:.3f} | {n} | {right} | {right / n:.3f} |")
    stable, false, bound = (
        sum(r[key] for r in records) for key in ("stable", "stable_false", "expected_false")
    )
    print(f"stable edges {stable}, false among them {false}, expected by chance at most {bound:.1f}")


def svg(curves: dict[str, Sequence[Record]], file: Path) -> None:
    """The reliability curves, drawn without any library."""
    size, left = 360, 46
    colours = ("#0b6fb8", "#c2571a", "#2f8f4e", "#8a4fbf", "#666")

    def at(x: float, y: float) -> str:
        return f"{left + size * x:.1f},{10 + size * (1 - y):.1f}"

    shapes = [f'<path d="M{at(0, 0)} L{at(1, 1)}" stroke="#aaa" stroke-dasharray="4 4" fill="none"/>']
    shapes += [f'<path d="M{at(0, 1)} L{at(0, 0)} L{at(1, 0)}" stroke="#333" fill="none"/>']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = at(tick, 0).split(",")
        shapes.append(f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">{tick:g}</text>')
        x, y = at(0, tick).split(",")
        shapes.append(f'<text x="{float(x) - 6}" y="{float(y) + 4}" text-anchor="end">{tick:g}</text>')
    for k, (label, records) in enumerate(curves.items()):
        points = [(mean, right / n) for _, _, mean, n, right in reliability(records)]
        line = " L".join(at(*point) for point in points)
        shapes.append(f'<path d="M{line}" stroke="{colours[k % 5]}" stroke-width="2" fill="none"/>')
        shapes += [
            f'<circle cx="{at(*p).split(",")[0]}" cy="{at(*p).split(",")[1]}" r="3.5" fill="{colours[k % 5]}"/>'
            for p in points
        ]
        above = size - 8 - 16 * (len(curves) - 1 - k)
        shapes.append(
            f'<text x="{left + size - 8}" y="{above}" text-anchor="end" fill="{colours[k % 5]}">{label}</text>'
        )  # below the diagonal, where curves that keep their word do not go
    shapes.append(
        f'<text x="{left + size / 2}" y="{size + 46}" text-anchor="middle">share of replicates with the edge</text>'
    )
    shapes.append(
        f'<text transform="translate(12 {size / 2}) rotate(-90)" text-anchor="middle">share of these edges that are true</text>'
    )
    body = "\n".join(shapes)
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size + 70} {size + 56}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def calibration(args: argparse.Namespace) -> None:
    cases = [
        PaperCase(graph, density, noise, 0, seed, args.nodes, n)
        for seed in args.seeds
        for n in args.samples
        for graph, density in (("er", 1), ("er", 2), ("sf", 2))
        for noise in args.noises
    ]
    run = partial(cell, replicates=args.replicates)
    records = sweep(run, cases, args.contenders, jobs=args.jobs, device=args.device, out=args.out)
    good = [r for r in records if "error" not in r]
    curves: dict[str, list[Record]] = defaultdict(list)
    for record in good:
        curves[f"{record['name']}, n = {record['samples']}"].append(record)
    for label in sorted(curves):
        print_reliability(label, curves[label])
    for value in ("shd", "consensus_shd", "brier", "single_run_s", "replicates_s"):
        print_table(records, value, args.contenders)
    if args.svg:
        svg({label: curves[label] for label in sorted(curves)}, args.svg)


def reuse(args: argparse.Namespace) -> None:
    """Frequencies from one score model against those from a model per replicate, beside chance between two halves."""
    args.contenders = ["diffan+reuse", "diffan+retrain"]
    run = partial(cell, replicates=args.replicates)
    cases = [
        PaperCase(graph, density, "gauss", 0, seed, args.nodes, args.samples[0])
        for seed in args.seeds
        for graph, density in (("er", 1), ("er", 2), ("sf", 2))
    ]
    records = sweep(run, cases, args.contenders, jobs=args.jobs, device=args.device, out=args.out)
    by_case: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:
        by_case[record["case"]][record["name"]] = record
    rows = [
        pair for pair in by_case.values() if len(pair) == 2 and not any("error" in r for r in pair.values())
    ]
    for key in ("frequency", "precedence"):
        one, other = (np.array([pair[name][key] for pair in rows]) for name in args.contenders)
        apart = np.abs(one - other)
        noise = np.sqrt(
            (one * (1 - one) + other * (1 - other)) / args.replicates
        )  # of two independent counts
        seen = (one > 0) | (other > 0)
        print(
            f"{key}: mean difference {apart[seen].mean():.3f} where either is above 0, expected from counting alone "
            f"{(noise[seen] * np.sqrt(2 / np.pi)).mean():.3f}, largest {apart.max():.2f}, "
            f"correlation {np.corrcoef(one.ravel(), other.ravel())[0, 1]:.4f}"
        )
    for name in args.contenders:
        print_reliability(name, [pair[name] for pair in rows])
    for value in ("consensus_shd", "brier", "replicates_s"):
        print_table(records, value, args.contenders)


def orders(args: argparse.Namespace) -> None:
    """How well the order of halves by one score model does with fewer rows and noise levels, and its seconds."""
    from diffan.context import Context
    from diffan.metrics import order_divergence
    from diffan.ordering import diffan_order
    from diffan.replicates import drawn_rows
    from diffan.settings import DiffanSettings
    from diffan.table import Table

    settings, context = DiffanSettings(), Context(seed=0, device=args.device)
    ways = [(levels, rows) for levels in ((0.3,), (0.2, 0.3, 0.4)) for rows in (128, 256, 500)]
    wrong: dict[tuple[tuple[float, ...], int], list[int]] = defaultdict(list)
    seconds: dict[tuple[tuple[float, ...], int], float] = defaultdict(float)
    for case in [
        PaperCase(graph, density, noise, scale, seed, args.nodes, args.samples[0])
        for seed in args.seeds
        for graph, density in (("er", 1), ("er", 5), ("sf", 1), ("sf", 5))
        for noise in args.noises
        for scale in (0, 1, 2)
    ]:
        frame, truth = case.draw(device="cpu")
        table = Table.read(frame)
        model = diffan_order.find_order(table, settings, context).model
        for index in range(args.replicates):
            part = table.rows(drawn_rows(table.n_samples, 0, "subsample", index))
            for levels, rows in ways:
                order = replace(settings.order, noise_levels=levels, order_batch_size=rows)
                asked = replace(settings, order=replace(order, kernel_columns=0), variant="masking")
                start = time.perf_counter()
                found = diffan_order.by_model(part, asked, replace(context, seed=index), model)
                seconds[levels, rows] += time.perf_counter() - start
                wrong[levels, rows].append(order_divergence(truth, list(found.order)))
    print("| noise levels | rows | mean divergence | seconds a half | halves |\n|---|---|---|---|---|")
    for (levels, rows), found in wrong.items():
        mean, time_each = np.mean(found), seconds[levels, rows] / len(found)
        print(f"| {', '.join(map(str, levels))} | {rows} | {mean:.2f} | {time_each:.3f} | {len(found)} |")


def cost(args: argparse.Namespace) -> None:
    """Seconds of one default run and of the replicates, on the same table, in turns; medians."""
    import diffan

    settings = diffan.ConfidenceSettings(replicates=args.replicates, workers=args.workers)
    for graph, density in (("er", 1), ("sf", 5)):
        frame, _ = PaperCase(graph, density, "gauss", 0, args.seeds[0], args.nodes, args.samples[0]).draw(
            device="cpu"
        )
        diffan.discover(frame, device=args.device)  # pays for loading libraries and the GPU's context
        single, many = list[float](), list[float]()
        for _ in range(args.turns):
            start = time.perf_counter()
            diffan.discover(frame, device=args.device)
            single.append(time.perf_counter() - start)
            result = diffan.discover(frame, device=args.device, confidence=settings)
            many.append(result.timings["confidence"])
        print(
            f"{graph.upper()}{density}, {args.nodes} variables, {args.samples[0]} rows: "
            f"one run {listed(single)}; {args.replicates} replicates on {max(args.workers, 1)} processes "
            f"{listed(many)}; {np.median(many) / np.median(single):.1f} runs",
            flush=True,
        )


def listed(seconds: Sequence[float]) -> str:
    return f"{', '.join(f'{each:.1f}' for each in seconds)} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("calibration", "reuse", "orders", "cost"))
    parser.add_argument("--contenders", nargs="+", default=["score+reuse"])
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--samples", type=int, nargs="+")
    parser.add_argument("--noises", nargs="+", default=["gauss", "laplace"])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--turns", type=int, default=1, help="how often cost measures both")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    defaults = {
        "calibration": (10, [1000, 200], [1000, 1001], 40),
        "reuse": (10, [300], [0, 1], 20),
        "orders": (20, [1000], [0], 6),
        "cost": (20, [1000], [1000], 100),
    }[args.part]
    for name, value in zip(("nodes", "samples", "seeds", "replicates"), defaults, strict=True):
        if getattr(args, name) is None:
            setattr(args, name, value)
    {"calibration": calibration, "reuse": reuse, "orders": orders, "cost": cost}[args.part](args)


if __name__ == "__main__":
    main()
