"""Which settings of the likelihood stage are best? Tuning seeds only (below 1000), the paper's grid.

    python benchmarks/likelihood_tuning.py --jobs 16 --configs "" "edge_nats=4" "edge_fdr=0.02;shortlist=3"
    python benchmarks/likelihood_tuning.py --start truth --configs ""          # how well edges are chosen at the truth
    python benchmarks/likelihood_tuning.py --mechanism additive-gp --seeds 0   # other worlds than joint GPs
    python benchmarks/likelihood_tuning.py --mechanism gene-network --kinds SF1 --noises gauss --samples 500 --seeds 0 1 2 3 \\
        --configs "" "charge_misfit=false"                                     # where no additive noise explains the data

Every configuration mends the same starting orders and chooses edges along the result. Starting orders are those of a
method (--start score, r2-sort, diffan, random, ...), "perturbed" (the truth with random moves until about six edges
are reversed) or "truth"; they are kept beside the records, so that they are found once. One line per data set and
configuration goes to --out; the tables hold means over data sets.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diffan.dag import Dag
from diffan.errors import InputError
from diffan.simulate.grid import SCALE_RANGES, PaperCase
from diffan.table import Table
from harness import Record, grid, print_table, sweep

P_VALUES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
GENE_NOISES = (
    0.05,
    0.1,
    0.2,
)  # of a gene network, biological and measured, in place of the grid's noise scales
PERTURBED_DIVERGENCE = 6


@dataclass(frozen=True)
class Study:
    start: str
    mechanism: str
    starts_folder: Path


def cell(case: PaperCase, config: str, device: str, *, study: Study) -> Record:
    from diffan.context import Context
    from diffan.likelihood.refine import refine
    from diffan.likelihood.select import select
    from diffan.likelihood.settings import LikelihoodSettings
    from diffan.metrics import order_divergence, shd

    settings = LikelihoodSettings(**_parsed(config))
    context = Context(seed=0, device=device)
    table, truth = draw(case, study.mechanism)
    start = starting_order(case, table, truth, study, context)
    began = time.perf_counter()
    refined = None if study.start == "truth" else refine(start, table, settings=settings, context=context)
    between = time.perf_counter()
    order = start if refined is None else refined.order
    edges = select(order, table, settings=settings, context=context, refined=refined)
    ended = time.perf_counter()
    record: Record = {
        "start_divergence": order_divergence(truth, start),
        "order_divergence": order_divergence(truth, order),
        "shd": shd(truth, Dag(edges.chosen, table.names)),
        "false_edges": int((edges.chosen & (truth.adjacency == 0)).sum()),
        "found_edges": int(edges.chosen.sum()),
        "cutoff": edges.cutoff,
        "refine_seconds": round(between - began, 2),
        "select_seconds": round(ended - between, 2),
        "warned": len(edges.warnings),
    }
    if refined is not None and refined.state is not None:
        record |= {"fits": refined.state.objective.n_fits, "gaussian": refined.state.objective.gaussian}
        record["moves"] = len(refined.moves)
    for p_value in P_VALUES:
        record[f"shd_at_{p_value:g}"] = shd(truth, Dag(edges.at_cutoff(p_value).chosen, table.names))
    return record


def draw(case: PaperCase, mechanism: str) -> tuple[Table, Dag]:
    from diffan.simulate import GeneNetworkSettings, random_dag, sample_anm, simulate_gene_network

    if mechanism == "gp":
        frame, truth = case.draw(device="cpu")
        return Table.read(frame), truth
    seed = 10_000 * case.seed + 100 * case.density + 10 * case.scale_index
    if mechanism == "gene-network":
        level = GENE_NOISES[case.scale_index]
        noise = GeneNetworkSettings(biological_noise=level, measurement_noise=level)
        edges = round(1.2 * case.density * case.n_nodes)
        frame, truth = simulate_gene_network(case.n_nodes, edges, case.n_samples, seed, settings=noise)
        return Table.read(frame, transform="auto"), truth
    truth = random_dag(case.n_nodes, case.density * case.n_nodes, case.graph, seed)
    scales = SCALE_RANGES[case.scale_index]
    frame = sample_anm(
        truth, case.n_samples, case.noise, scales, mechanism=mechanism, seed=seed, device="cpu"
    )
    return Table.read(frame), truth


def starting_order(case: PaperCase, table: Table, truth: Dag, study: Study, context: Any) -> list[int]:
    """The order to mend, from the store if it is there."""
    true_order = [truth.index(name) for name in truth.topological_order()]
    if study.start == "truth":
        return true_order
    if study.start == "perturbed":
        return perturbed(true_order, truth, np.random.default_rng(case.seed))
    from diffan.methods import METHODS

    stored = study.starts_folder / f"{study.start}-{study.mechanism}-{case.name}.json"
    if stored.exists():
        return list(json.loads(stored.read_text()))
    method = METHODS[study.start]
    order = method.find_order(table, method.default_settings("default"), context).order
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps([int(i) for i in order]))
    return list(order)


def perturbed(order: list[int], truth: Dag, rng: np.random.Generator) -> list[int]:
    """Random adjacent swaps until about six edges are reversed."""
    from diffan.metrics import order_divergence

    moved = list(order)
    for _ in range(10_000):
        if order_divergence(truth, moved) >= min(PERTURBED_DIVERGENCE, truth.n_edges // 3):
            break
        k = int(rng.integers(len(moved) - 1))
        moved[k], moved[k + 1] = moved[k + 1], moved[k]
    return moved


def _parsed(config: str) -> dict[str, Any]:
    changes = (change.split("=", 1) for change in config.split(";") if change)
    values = {key: json.loads(value) for key, value in changes}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--configs", nargs="+", default=[""], help='settings to change, such as "edge_nats=4;shortlist=3"'
    )
    parser.add_argument("--start", default="score")
    parser.add_argument(
        "--mechanism", default="gp", help="gp, additive-gp, mlp, sigmoid, linear or gene-network"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--scales", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--kinds", nargs="+", default=["ER1", "ER5", "SF1", "SF5"])
    parser.add_argument("--noises", nargs="+", default=["gauss", "exp", "laplace"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/likelihood_tuning.jsonl"))
    args = parser.parse_args()
    if max(args.seeds) >= 1000:
        raise InputError(
            f"Seeds of 1000 and above are for evaluation. Got {max(args.seeds)}; tune on smaller ones."
        )
    cases = [
        case
        for case in grid(args.seeds, args.nodes, args.samples, args.scales)
        if f"{case.graph.upper()}{case.density}" in args.kinds and case.noise in args.noises
    ]
    study = Study(args.start, args.mechanism, args.out.parent / "starts")
    out = args.out.with_name(f"{args.out.stem}-{args.start}-{args.mechanism}{args.out.suffix}")
    records = sweep(
        partial(cell, study=study), cases, args.configs, jobs=args.jobs, device=args.device, out=out
    )
    wanted = {case.name for case in cases}
    records = [record for record in records if record["case"] in wanted and record["name"] in args.configs]
    for value in (
        "start_divergence",
        "order_divergence",
        "shd",
        "false_edges",
        "refine_seconds",
        "select_seconds",
    ):
        print_table(records, value, args.configs)
    for p_value in P_VALUES:
        print_table(records, f"shd_at_{p_value:g}", args.configs)
    print_table(records, "order_divergence", args.configs, by_noise=True)
    print_table(records, "shd", args.configs, by_noise=True)


if __name__ == "__main__":
    main()
