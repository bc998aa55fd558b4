"""All baselines on the paper's grid, beside the numbers its tables publish: SHD, SID, order divergence, seconds.

    python benchmarks/baselines.py --jobs 16 --out baselines.jsonl                  # d = 20, n = 1000, 108 sets
    python benchmarks/baselines.py --methods score cam --input raw standardised     # does the scale give orders away?
    python benchmarks/baselines.py --score baselines.jsonl                          # only add SID and print the tables

Every cell is one discovery in one thread, pruned at 0.001 like the paper's. Evaluation seeds are 1000 and above;
nothing was tuned on them. Records keep the graphs, so a machine without gadjid leaves SID to a second pass elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diffan.methods import METHODS
from diffan.simulate.grid import PaperCase
from harness import Record, grid, print_table, read, sweep
from published import SYNTHETIC, Published

BASELINES = [name for name in METHODS if name != "diffan"]
MEASURES = ("shd", "sid", "order_divergence", "seconds")
FAR = 2.0  # standard deviations of the published mean at which a row is called far off


def cell(case: PaperCase, name: str, device: str) -> Record:
    """One discovery; `name` is a method, followed by '-raw' when its columns keep their units."""
    import diffan
    from diffan.metrics import order_divergence, shd

    frame, truth = case.draw(device="cpu")
    method = name.removesuffix("-raw")
    assert METHODS[method].find_order  # imported before the clock starts
    started = time.perf_counter()
    found = diffan.discover(frame, method, seed=0, device=device, standardize=method == name)
    seconds = time.perf_counter() - started
    return {
        "order_divergence": order_divergence(truth, found.order),
        "shd": shd(truth, found.dag),
        "seconds": round(seconds, 3),
        "n_edges": found.dag.n_edges,
        "order": found.order,
        "edges": found.dag.edges,
        "true_edges": truth.edges,
        "warnings": list(found.warnings),
    }


def with_sid(record: Record) -> Record:
    """The record with its SID, where it has a graph and gadjid is installed."""
    from diffan.dag import Dag
    from diffan.errors import FitError
    from diffan.metrics import sid

    if record.get("sid") is not None or "edges" not in record:
        return record
    names = sorted(record["order"])
    truth, estimate = (Dag.from_edges(map(tuple, record[key]), names) for key in ("true_edges", "edges"))
    try:
        return record | {"sid": sid(truth, estimate)}
    except FitError:
        return record


def print_beside_published(records: Sequence[Record]) -> None:
    """A row per kind of graph, noise and method: ours, then the paper's mean and standard deviation."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        if "error" not in record:
            groups[record["kind"], record["noise"], record["name"]].append(record)
    print(
        "\n| graph | noise | method | SHD | paper | SID | paper | order divergence | seconds | paper | sets |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    far: list[str] = []
    for (kind, noise, name), group in sorted(groups.items()):
        label = METHODS[name.removesuffix("-raw")].label
        ours = {measure: _mean(group, measure) for measure in MEASURES}
        published = (group[0]["nodes"], group[0]["samples"]) == (20, 1000)
        paper = SYNTHETIC.get((kind, noise, label)) if published else None
        theirs = {measure: _published(paper, measure) for measure in ("shd", "sid", "seconds")}
        shown = label + " raw" * name.endswith("-raw")
        print(
            f"| {kind} | {noise} | {shown} | {ours['shd']:.1f} | {theirs['shd']} | {ours['sid']:.1f} "
            f"| {theirs['sid']} | {ours['order_divergence']:.1f} | {ours['seconds']:.2f} "
            f"| {theirs['seconds']} | {len(group)} |"
        )
        for measure in ("shd", "sid") if paper else ():
            mean, deviation = getattr(paper, measure)
            if abs(ours[measure] - mean) > FAR * max(deviation, 1.0):
                far.append(
                    f"- {shown} on {kind} {noise}: {measure.upper()} {ours[measure]:.1f} over {len(group)} sets, "
                    f"{mean:.1f} ± {deviation:.1f} in the paper."
                )
    print(f"\nFar off (more than {FAR:g} of the paper's standard deviations):")
    print("\n".join(far) if far else "none")


def _published(paper: Published | None, measure: str) -> str:
    if paper is None:
        return ""
    mean, deviation = getattr(paper, measure)
    return f"{mean:.1f} ± {deviation:.1f}"


def _mean(group: Sequence[Record], measure: str) -> float:
    values = [float(record[measure]) for record in group if record.get(measure) is not None]
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=BASELINES, default=BASELINES)
    parser.add_argument("--input", nargs="+", choices=["standardised", "raw"], default=["standardised"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000, 1001, 1002])
    parser.add_argument("--scales", type=int, nargs="+", default=[0, 1, 2], help="which noise scale ranges")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON lines; cells already there are not run again")
    parser.add_argument("--score", type=Path, help="run nothing: add SID to this file and print its tables")
    args = parser.parse_args()
    if args.score:
        records = read(args.score)
    else:
        names = [m + ("-raw" if kind == "raw" else "") for kind in args.input for m in args.methods]
        cases = grid(args.seeds, args.nodes, args.samples, args.scales)
        records = sweep(cell, cases, names, jobs=args.jobs, device=args.device, out=args.out)
    records = [with_sid(record) for record in records]
    if file := args.score or args.out:
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    names = list(dict.fromkeys(record["name"] for record in records))
    for measure in MEASURES:
        print_table(records, measure, names)
    print_beside_published(records)


if __name__ == "__main__":
    main()
