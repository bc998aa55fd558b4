"""How long it takes to simulate: from a paper-sized case to 500 variables with 100,000 rows.

    python benchmarks/simulate.py [--device auto|cpu|cuda] [--rows 100000] [--nodes 500]

Prints one line per case: wall-clock and processor seconds of the whole process.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

from diffan.simulate import paper_case, random_dag, sample_anm, simulate_gene_network


def timed(label: str, work: Callable[[], object]) -> None:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{label:<44} {wall:8.2f} s wall {processor:8.2f} s cpu", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=500)
    options = parser.parse_args()
    nodes, rows = options.nodes, options.rows
    print(f"device {options.device}, {os.cpu_count()} cores")

    sample_anm(random_dag(2, 1), 3000, device=options.device)  # start-up costs stay out of the figures
    timed("paper case ER1, d = 20, n = 1000 (exact)", lambda: paper_case("er", 1, "gauss", 0, 0))
    timed("paper case SF5, d = 20, n = 1000 (exact)", lambda: paper_case("sf", 5, "gauss", 0, 0))
    timed("gene network, d = 20, n = 500", lambda: simulate_gene_network())
    for graph, density in (("er", 1), ("er", 5), ("sf", 1)):
        dag = random_dag(nodes, density * nodes, graph)
        label = f"{graph.upper()}{density}, d = {nodes}, n = {rows}"
        timed(label, lambda dag=dag: sample_anm(dag, rows, "gauss", (0.4, 0.8), device=options.device))


if __name__ == "__main__":
    main()
