"""Straight lines beside the kernel: their formulas against dense algebra, and what they find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import diffan
from diffan.context import Context
from diffan.errors import InputError
from diffan.knowledge import Knowledge
from diffan.likelihood.engine import LINE
from diffan.likelihood.exact import inverse, leave_one_out, leave_one_out_from_factors
from diffan.likelihood.factors import inverse_factors
from diffan.likelihood.fits import Kernel, Query
from diffan.likelihood.kernel import kernel_matrix
from diffan.likelihood.lines import Lines
from diffan.likelihood.low_rank import low_rank_residuals
from diffan.likelihood.objective import Objective
from diffan.likelihood.refine import refine
from diffan.likelihood.select import select
from diffan.likelihood.settings import LikelihoodSettings
from diffan.table import Table

CONTEXT = Context(seed=0, device="cpu")
SETTINGS = LikelihoodSettings()
BENT = LikelihoodSettings(kernel_lines=(0.0,))
CPU = torch.device("cpu")
KERNEL = Kernel(0.5, 0.3, 1.0, 100.0)


def fit(n: int = 60, parents: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Points, a target that leans on them, K + ridge I and the dense matrix with the lines, of one fit."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(1, n, parents, dtype=torch.float64, generator=generator)
    noise = torch.randn(1, n, dtype=torch.float64, generator=generator)
    target = 2.0 * points[..., 0] - points[..., 1] + torch.sin(3.0 * points[..., 2]) + 0.1 * noise
    ridged = kernel_matrix(points, points, 0.5, 1.0) + 0.3 * torch.eye(n, dtype=torch.float64)
    return points, target, ridged, ridged + 100.0 * points @ points.mT


def log_likelihood(matrix: torch.Tensor, target: torch.Tensor) -> float:
    """Of targets with that covariance, up to a scale that is profiled out; without constants."""
    n = target.shape[-1]
    scale = target @ torch.linalg.solve(matrix, target) / n
    return float(-0.5 * n * scale.log() - 0.5 * torch.logdet(matrix))


def test_lines_are_a_part_of_the_kernel() -> None:
    """Residuals from factors and the corrected inverse are those of the dense matrix; landmarks at every row nearly so."""
    points, target, ridged, dense = fit()
    expected = leave_one_out(inverse(dense), target)
    straight = 10.0 * points
    torch.testing.assert_close(
        leave_one_out_from_factors(inverse_factors(ridged)[0], target, straight), expected
    )
    taken = Lines(straight, inverse(ridged) @ straight).taken
    torch.testing.assert_close(inverse(ridged) - taken @ taken.mT, inverse(dense))
    found = low_rank_residuals(
        points,
        target,
        n_landmarks=60,
        ridge=torch.tensor([0.3]),
        interaction=torch.tensor([0.5]),
        bandwidth=torch.tensor([1.0]),
        lines=torch.tensor([100.0]),
    )
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.05)


def test_what_a_line_is_needed_for_is_what_is_lost_without_it() -> None:
    """With a wide prior and the covariance as it is, half n times the logarithm of how much the scale grows."""
    points, target, ridged, _ = fit()
    straight = 1e3 * points
    lines = Lines(straight, inverse(ridged) @ straight)
    dense = ridged + straight @ straight.mT
    scale = (target[:, None] @ torch.linalg.solve(dense, target[..., None]))[:, 0, 0] / 60
    found = lines.gains(target, scale)[0]
    for k in range(3):
        less = [j for j in range(3) if j != k]
        without = ridged + straight[..., less] @ straight[..., less].mT
        grown = (target[0] @ torch.linalg.solve(without[0], target[0]) / 60 / scale[0]).log()
        assert float(found[k]) == pytest.approx(30.0 * float(grown), rel=1e-3, abs=1e-3)


def linear_values(n: int = 120) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.laplace(size=(n, 5))
    values[:, 1] += values[:, 0]
    values[:, 4] += values[:, 1] - values[:, 2]
    return (values - values.mean(axis=0)) / values.std(axis=0)


@pytest.mark.parametrize("lines", [0.0, 100.0])
def test_a_column_promises_its_bell_and_its_best_line(lines: float) -> None:
    settings = LikelihoodSettings(kernel_landmarks=(12,))
    one = Objective(linear_values(), settings=settings, device=CPU, rng=np.random.default_rng(0), n_shadows=1)
    one.kernels[4] = kernel = KERNEL._replace(lines=lines)
    parents = frozenset({1, 5})  # a shuffled column among them
    one.prepare([Query(4, parents, slopes=True)])
    points = one.columns.points.double()
    own = points[sorted(parents)].T
    base = kernel_matrix(own, own, kernel.interaction, kernel.bandwidth)
    ridged = base + lines * own @ own.T + kernel.ridge * torch.eye(120, dtype=torch.float64)
    target, entering = points[4], points[2]
    bell = torch.exp(-0.5 * (entering[:, None] - entering) ** 2)
    step = 1e-5
    up, down = (ridged + sign * step * base * (bell - 1) for sign in (1, -1))
    slope = 0.5 * (log_likelihood(up, target) - log_likelihood(down, target)) / (2 * step)
    solved = torch.linalg.solve(ridged, torch.stack([target, entering], dim=1))
    height = (entering @ solved[:, 0]) / (entering @ solved[:, 1])  # of the best line
    left = target - height * entering
    best = -60.0 * ((left @ torch.linalg.solve(ridged, left)) / (target @ solved[:, 0])).log()
    expected = slope + (LINE * float(best) if lines else 0.0)
    assert one.slopes(4, parents)[2] == pytest.approx(expected, rel=1e-3, abs=0.05)


def test_fits_with_lines_beside_others_are_answered_alike() -> None:
    settings = LikelihoodSettings(kernel_landmarks=(12,))
    bent = KERNEL._replace(lines=0.0)
    queries = [
        Query(4, frozenset(parents), kernel=kernel)
        for parents in ({1}, {1, 2}, {0, 1, 2})
        for kernel in (KERNEL, bent)
    ]
    together, alone = (
        Objective(linear_values(), settings=settings, device=CPU, rng=np.random.default_rng(0))
        for _ in range(2)
    )
    together.prepare(queries)
    for query in queries:
        alone.prepare([query])
        assert alone.value(*query[:2], query.kernel) == pytest.approx(
            together.value(*query[:2], query.kernel), rel=1e-4
        )
    remembered = Objective(linear_values(), settings=settings, device=CPU, rng=np.random.default_rng(0))
    remembered.remember(together.memory())
    assert all(
        remembered.value(*query[:2], query.kernel) == together.value(*query[:2], query.kernel)
        for query in queries
    )


def dense_lines(seed: int = 0) -> tuple[Table, diffan.Dag]:
    """Seven columns, all but three of the possible edges, each a straight line, exponential noise."""
    dag = diffan.simulate.random_dag(7, 18, seed=seed)
    frame = diffan.simulate.sample_anm(dag, 400, "exp", (0.4, 0.8), mechanism="linear", seed=seed)
    return Table.read(frame), dag


def backwards(dag: diffan.Dag) -> list[int]:
    return [dag.index(name) for name in dag.topological_order()][::-1]


def test_a_dense_graph_of_straight_lines_is_found_from_its_reverse() -> None:
    table, dag = dense_lines()
    divergence, missed = {}, {}
    for name, settings in (("lines", SETTINGS), ("bent", BENT)):
        found = refine(backwards(dag), table, settings=settings, context=CONTEXT)
        edges = select(found.order, table, settings=settings, context=CONTEXT, refined=found)
        divergence[name] = diffan.metrics.order_divergence(dag, found.order)
        missed[name] = diffan.metrics.shd(dag, diffan.Dag(edges.chosen, table.names))
    assert divergence["lines"] <= 1
    assert missed["lines"] <= 3
    assert divergence["bent"] > divergence["lines"]
    assert missed["bent"] > missed["lines"] + 5


def test_bent_functions_take_no_lines() -> None:
    dag = diffan.simulate.random_dag(6, 6, seed=0)
    table = Table.read(diffan.simulate.sample_anm(dag, 300, noise_scale=(0.3, 0.5), seed=0))
    found, without = (
        refine(backwards(dag), table, settings=settings, context=CONTEXT) for settings in (SETTINGS, BENT)
    )
    assert found.order == without.order
    assert found.trace == without.trace
    assert found.state is not None
    assert not any(kernel.lines for kernel in found.state.objective.kernels)


def test_the_sorted_start_obeys_what_is_known() -> None:
    table, dag = dense_lines()
    reverse = backwards(dag)
    first, last = table.names[reverse[0]], table.names[reverse[-1]]
    rules = Knowledge(tiers=[[first], [last]]).consequences(table.names)
    found = refine(reverse, table, settings=SETTINGS, context=replace(CONTEXT, constraints=rules))
    assert found.order.index(reverse[0]) < found.order.index(reverse[-1])


def test_lines_and_what_they_pay_are_checked() -> None:
    with pytest.raises(InputError, match="kernel_lines.*from 0"):
        LikelihoodSettings(kernel_lines=(-1.0,))
    with pytest.raises(InputError, match="line_nats"):
        LikelihoodSettings(line_nats=0.0)
