"""What the likelihood's engine does in a second, in batches of several sizes, and what replicates in lockstep cost.

    python benchmarks/engine.py factors --device cuda      # halving down to several sizes against the library's Cholesky
    python benchmarks/engine.py fits --device cuda         # fits a second: from landmarks, exact, exact with slopes
    python benchmarks/engine.py replicates --device cuda --replicates 100 --density 5    # and where their time goes

Tuning seeds only. Each figure is the best of three, after one that pays for loading and for the GPU's context.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from diffan.likelihood.engine import solve
from diffan.likelihood.factors import factors_by_halves, triangular_inverse
from diffan.likelihood.fits import Fit, Kernel
from diffan.likelihood.objective import Objective
from diffan.likelihood.settings import LikelihoodSettings
from diffan.simulate.grid import PaperCase

KERNEL = Kernel(0.5, 0.3)


def seconds(call: Callable[[], object], device: str) -> float:
    """The best of three, after one that does not count."""
    found = []
    for _ in range(4):
        start = time.perf_counter()
        call()
        if device != "cpu":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found[1:])


def factors(device: str) -> None:
    print("| rows | matrices | library ms | halving to 32 | 64 | 128 | 256 |\n|---|---|---|---|---|---|---|")
    for n, count in ((500, 1), (500, 16), (500, 256), (1000, 1), (1000, 16), (1000, 128)):
        if device == "cpu" and count > 16:
            continue
        points = torch.randn(n, 6, device=device)
        kernel = torch.exp(-torch.cdist(points, points).square() / 12)
        shifted = (kernel + 0.3 * torch.eye(n, device=device)).expand(count, n, n).contiguous()

        def library(given: torch.Tensor = shifted) -> torch.Tensor:
            return triangular_inverse(torch.linalg.cholesky_ex(given).L)

        cells = [seconds(library, device)]
        for leaf in (32, 64, 128, 256):
            cells.append(
                seconds(lambda given=shifted, leaf=leaf: factors_by_halves(given, leaf=leaf), device)
            )
        print(
            f"| {n} | {count} | " + " | ".join(f"{1e3 * cell / count:.3f}" for cell in cells) + " |",
            flush=True,
        )
    print("milliseconds a matrix")


def objective_of(n: int, device: str) -> Objective:
    values = np.random.default_rng(0).normal(size=(n, 30))
    values = (values - values.mean(0)) / values.std(0)
    rng = np.random.default_rng(0)
    return Objective(values, settings=LikelihoodSettings(), device=torch.device(device), rng=rng)


def fits(device: str) -> None:
    print("| rows | fits | parents | kind | ms a fit |\n|---|---|---|---|---|")
    sizes = (1, 16, 128, 800) if device != "cpu" else (1, 8)
    for n in (500, 1000):
        objective = objective_of(n, device)
        for count in sizes:
            for parents, steep in ((1, False), (2, False), (3, False), (6, False), (6, True)):
                rng = np.random.default_rng(1)
                sets = [
                    frozenset(rng.choice(np.arange(1, 30), parents, replace=False).tolist())
                    for _ in range(count)
                ]
                wanted = [objective._wanted(Fit(0, KERNEL, own), True, steep) for own in sets]
                each = seconds(lambda wanted=wanted: solve(wanted), device) / count
                landmarks = wanted[0].landmarks
                kind = "exact, slopes" if steep else f"{landmarks} landmarks" if landmarks else "exact"
                print(f"| {n} | {count} | {parents} | {kind} | {1e3 * each:.3f} |", flush=True)


def replicates(device: str, count: int, density: int) -> None:
    """One run, then replicates in lockstep, with the functions and the kernels that their seconds go to."""
    import cProfile
    import pstats

    import diffan

    data = PaperCase("er", density, "gauss", 0, 0, 20, 1000).draw(device="cpu")[0]
    given = diffan.ConfidenceSettings(replicates=count)

    def measured() -> float:
        return diffan.discover(data, device=device, confidence=given).timings["confidence"]

    one = seconds(lambda: diffan.discover(data, device=device), device)
    many = measured()
    print(f"one run {one:.2f} s; {count} replicates {many:.2f} s, {many / one:.1f} runs", flush=True)
    recorder = cProfile.Profile()
    recorder.enable()
    profiled = measured()
    recorder.disable()
    print(f"profiled: {profiled:.2f} s")
    stats = pstats.Stats(recorder).strip_dirs()
    stats.sort_stats("cumulative").print_stats(
        r"(search|objective|engine|recipe|diffan_order|passes|select)\.py", 30
    )
    stats.sort_stats("tottime").print_stats(50)
    if device != "cpu":
        print(f"peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
        print_kernels(measured)


def print_kernels(call: Callable[[], object]) -> None:
    """How long a GPU is busy, with how many launches, and with which kernels most."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    taken: dict[str, list[int]] = {}
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            total = taken.setdefault(event.name()[:90], [0, 0])
            total[0] += event.duration_ns()
            total[1] += 1
    busy, launches = (sum(column) for column in zip(*taken.values(), strict=True))
    print(f"{launches} launches, {busy / 1e9:.2f} s on the GPU")
    for name, (spent, times) in sorted(taken.items(), key=lambda item: -item[1][0])[:30]:
        print(f"{spent / 1e9:8.3f} s  {times:8d}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("factors", "fits", "replicates"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--density", type=int, default=5)
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, device {args.device}")
    if args.part == "factors":
        factors(args.device)
    elif args.part == "fits":
        fits(args.device)
    else:
        replicates(args.device, args.replicates, args.density)


if __name__ == "__main__":
    main()
