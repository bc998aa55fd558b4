"""The likelihood's engine: batches answer as single fits do, on the ways a CPU and a GPU take."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffan.errors import FitError
from diffan.likelihood.engine import batches
from diffan.likelihood.exact import inverse, leave_one_out, leave_one_out_from_factors
from diffan.likelihood.factors import factors_by_halves, inverse_factors, triangular_inverse
from diffan.likelihood.fits import Fit, Kernel, Query
from diffan.likelihood.kernel import bell, multiplied, multiplied_together
from diffan.likelihood.low_rank import inverse_factor, low_rank_residuals
from diffan.likelihood.objective import Objective, Preparing
from diffan.likelihood.settings import LikelihoodSettings

CPU = torch.device("cpu")


def matrices(count: int, n: int) -> torch.Tensor:
    roots = torch.randn(count, n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return roots @ roots.mT / n + 0.1 * torch.eye(n, dtype=torch.float64)


def objective(seed: int, n: int = 90, d: int = 5, device: torch.device = CPU, **options: object) -> Objective:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d))
    values[:, 1] = np.sin(values[:, 0]) + 0.3 * values[:, 1]
    values[:, 4] = np.tanh(values[:, 1] * values[:, 2] + values[:, 3]) + 0.3 * values[:, 4]
    settings = LikelihoodSettings(kernel_landmarks=(12, 20), **options)  # type: ignore[arg-type]
    return Objective(values, settings=settings, device=device, rng=rng, n_shadows=2)


QUERIES = [
    Query(1, frozenset({0}), slopes=True),
    Query(1, frozenset({0, 2})),
    Query(4, frozenset({1, 2, 3}), slopes=True),
    Query(4, frozenset({0, 1, 2})),
    Query(4, frozenset({0, 1, 2, 3}), kernel=Kernel(0.2, 1.0)),
    Query(2, frozenset({5, 6, 0})),
    Query(3, frozenset(), slopes=True),
]


@pytest.mark.parametrize(("n", "leaf"), [(5, 8), (8, 8), (37, 8), (130, 16)])
def test_factors_by_halves_are_those_of_the_library(n: int, leaf: int) -> None:
    given = matrices(3, n)
    expected, failed = inverse_factors(given)
    found, failed_too = factors_by_halves(given, leaf=leaf)
    assert not failed
    assert not failed_too
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.mT @ found, torch.linalg.inv(given))
    roots = torch.linalg.cholesky(given)
    torch.testing.assert_close(
        triangular_inverse(roots, block=leaf) @ roots, torch.eye(n).double().expand(3, n, n)
    )


def test_a_matrix_that_cannot_be_factored_is_told_apart() -> None:
    given = matrices(3, 20)
    given[1, 15, 15] = -1.0
    assert factors_by_halves(given, leaf=8)[1]
    assert inverse_factors(given)[1]
    with pytest.raises(FitError, match="kernel_ridges"):
        inverse(given)
    with pytest.raises(FitError, match="kernel_ridges"):
        inverse_factor(given, 0.0)


def test_residuals_from_factors_are_those_from_inverses() -> None:
    given = matrices(4, 30)
    targets = torch.randn(4, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        leave_one_out_from_factors(inverse_factors(given)[0], targets), leave_one_out(inverse(given), targets)
    )


def test_products_of_kernels_made_together_are_those_made_alone() -> None:
    columns = torch.randn(4, 30, generator=torch.Generator().manual_seed(0))
    bells = bell(columns, columns, 1.0).unbind(0)
    sets = [[bells[0]], [bells[1], bells[2], bells[3]], [], [bells[0], bells[3]]]
    interactions = [0.2, 0.85, 0.5, 1.0]
    found = multiplied_together(torch.ones(4, 30, 30), sets, interactions)
    for one, own, interaction in zip(found, sets, interactions, strict=True):
        torch.testing.assert_close(one, multiplied(torch.ones(30, 30), own, interaction))


def test_a_stack_of_low_rank_fits_is_fitted_as_one_by_one() -> None:
    generator = torch.Generator().manual_seed(0)
    points, targets = torch.randn(3, 80, 2, generator=generator), torch.randn(3, 80, generator=generator)
    ridges, interactions = torch.tensor([0.1, 0.3, 1.0]), torch.tensor([0.2, 0.5, 1.0])
    options = {"n_landmarks": 25, "bandwidth": 1.0}
    together = low_rank_residuals(points, targets, ridge=ridges, interaction=interactions, **options)
    in_blocks = low_rank_residuals(
        points, targets, ridge=ridges, interaction=interactions, cells=900, **options
    )
    torch.testing.assert_close(together, in_blocks, atol=1e-4, rtol=1e-4)
    for k in range(3):
        alone = low_rank_residuals(
            points[k], targets[k], ridge=float(ridges[k]), interaction=float(interactions[k]), **options
        )
        torch.testing.assert_close(together[k], alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("engine", ["auto", "low_rank"])
def test_what_is_asked_beside_others_has_the_same_bits(engine: str) -> None:
    """Over one table alone, over three in lockstep, fit by fit, and on two threads."""
    together = [objective(seed, engine=engine) for seed in range(3)]
    Preparing([(one, QUERIES) for one in together]).keep()
    for seed, one in enumerate(together):
        alone, apart, threaded = (objective(seed, engine=engine) for _ in range(3))
        threaded.threads = 2
        alone.prepare(QUERIES)
        threaded.prepare(QUERIES)
        for query in QUERIES:
            apart.prepare([query])
        for other in (alone, apart, threaded):
            assert other.n_fits == one.n_fits
            for query in QUERIES:
                assert other.value(query.node, query.parents, query.kernel) == one.value(
                    query.node, query.parents, query.kernel
                )
                if query.slopes:
                    slopes = other.slopes(query.node, query.parents)
                    np.testing.assert_array_equal(slopes, one.slopes(query.node, query.parents))


def test_a_fit_that_cannot_be_factored_is_refused() -> None:
    one = objective(0, kernel_ridges=(1e-30,))
    one.columns.kernels.bells.fill_(1.0)
    with pytest.raises(FitError, match="kernel_ridges"):
        one.prepare([Query(4, frozenset({1, 2, 3}))])
    with pytest.raises(FitError, match="kernel_ridges"):
        one.residuals([frozenset()] * 4 + [frozenset({1, 2, 3})])


def test_slopes_are_those_of_the_likelihood() -> None:
    """Against the difference of log-likelihoods as a little of a further column enters the kernel."""
    one = objective(0)
    one.prepare([Query(4, frozenset({1, 2, 3}), slopes=True)])
    bells, target = one.columns.kernels.bells.double(), one.columns.points[4].double()
    interaction, ridge = one.kernels[4]
    kernel = multiplied(torch.ones_like(bells[0]), [bells[p] for p in (1, 2, 3)], interaction)

    def log_likelihood(share: float) -> float:
        entered = kernel * (1 + share * (bells[0] - 1)) + ridge * torch.eye(len(kernel)).double()
        scale = target @ torch.linalg.solve(entered, target) / len(target)
        return float(-0.5 * len(target) * scale.log() - 0.5 * torch.logdet(entered))

    step = 1e-4
    numeric = interaction * (log_likelihood(step) - log_likelihood(-step)) / (2 * step)
    assert one.slopes(4, frozenset({1, 2, 3}))[0] == pytest.approx(numeric, rel=1e-3, abs=1e-2)


def test_residuals_are_those_behind_the_values() -> None:
    one = objective(3)
    sets = [frozenset(), frozenset({0}), frozenset(), frozenset(), frozenset({1, 2, 3})]
    one.prepare([Query(node, parents) for node, parents in enumerate(sets)])
    found = one.residuals(sets).double()
    for node, parents in enumerate(sets):
        entropy = 0.5 * float(torch.log(2 * np.pi * np.e * found[node].square().mean()))
        assert one.value(node, parents) == pytest.approx(2 * one.n_rows * entropy)
    solved = [one._wanted(Fit(4, one.kernels[4], sets[4]), True, False)]
    assert len(list(batches(solved))) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("engine", ["auto", "low_rank"])
def test_a_gpu_finds_what_a_cpu_finds(engine: str) -> None:
    """Alone and beside others, within what single precision leaves: a hundredth of a nat."""
    gpu = torch.device("cuda")
    together = [objective(seed, n=300, device=gpu, engine=engine) for seed in range(3)]
    Preparing([(one, QUERIES) for one in together]).keep()
    for seed, one in enumerate(together):
        here, alone = objective(seed, n=300, engine=engine), objective(seed, n=300, device=gpu, engine=engine)
        here.prepare(QUERIES)
        alone.prepare(QUERIES)
        for query in QUERIES:
            asked = (query.node, query.parents, query.kernel)
            assert one.value(*asked) == pytest.approx(here.value(*asked), abs=1e-2)
            assert one.value(*asked) == pytest.approx(alone.value(*asked), abs=1e-2)
            if query.slopes:
                found, expected = (which.slopes(query.node, query.parents) for which in (one, here))
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)
