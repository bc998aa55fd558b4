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
from diffan.likelihood.kernel import bell, kernel_matrix, multiplied
from diffan.likelihood.low_rank import inverse_factor, low_rank_residuals
from diffan.likelihood.objective import Objective, prepare_together
from diffan.likelihood.parents import Choice, choose_parents
from diffan.likelihood.relaxation import gradient, relaxed_weights
from diffan.likelihood.search import in_step
from diffan.likelihood.settings import LikelihoodSettings
from diffan.likelihood.work import finish

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
    Query(4, frozenset({0, 1, 2, 3}), kernel=Kernel(0.5, 0.3, 1.0, 100.0)),
    Query(4, frozenset({0, 1}), kernel=Kernel(0.5, 0.3, 0.7, 100.0)),
    Query(2, frozenset({5, 6, 0})),
    Query(3, frozenset(), slopes=True),
    Query(4, frozenset({0, 1, 2, 3}), weights=True),
    Query(2, frozenset({0, 1}), weights=True),
]


def answer(one: Objective, query: Query) -> list[float]:
    """All that was asked for."""
    if query.weights:
        return one.weights(query.node, query.parents)
    slopes = one.slopes(query.node, query.parents) if query.slopes else []
    return [one.value(query.node, query.parents, query.kernel), *slopes]


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


def test_a_stack_of_kernels_is_made_as_one_by_one() -> None:
    """Each with its own interaction and bandwidth; columns of zeros, which fill up smaller sets, count for nothing."""
    points = torch.randn(3, 30, 4, generator=torch.Generator().manual_seed(0))
    points[0, :, 2:] = 0.0
    interactions, bandwidths = torch.tensor([0.2, 0.85, 1.0]), torch.tensor([0.7, 1.0, 1.3])
    found = kernel_matrix(points, points, interactions, bandwidths)
    for k, size in enumerate((2, 4, 4)):
        columns, width = points[k].T[:size], float(bandwidths[k])
        bells = bell(columns, columns, width).unbind(0)
        torch.testing.assert_close(
            found[k], multiplied(torch.ones(30, 30), bells, float(interactions[k])), atol=1e-5, rtol=1e-4
        )


def hidden_function(n: int, d: int = 12, k: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """d columns, and a random wave of k of them that shows nothing of itself through any one."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(n, d, generator=generator)
    waves = torch.randn(k, 30, generator=generator)
    clear = torch.cos(points[:, :k] @ waves + 6.3 * torch.rand(30, generator=generator)).sum(dim=1)
    return points, clear / clear.std() + 0.3 * torch.randn(n, generator=generator)


def test_the_gradient_of_a_relaxation_is_that_of_its_likelihood() -> None:
    points, targets = (given.double()[None] for given in hidden_function(40, 3, 2))
    place = torch.tensor([[-1.0, 0.3, -2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    scaled = points * (0.5 * place[:, None, :-1]).exp()
    kernel = (-0.5 * (scaled[0][:, None] - scaled[0][None]).square().sum(dim=-1)).exp()
    shifted = kernel + place[0, -1].exp() * torch.eye(40).double()
    scale = targets[0] @ torch.linalg.solve(shifted, targets[0]) / 40
    (-20 * scale.log() - 0.5 * torch.logdet(shifted)).backward()
    torch.testing.assert_close(gradient(points, targets, place.detach()), place.grad)


def test_a_relaxation_finds_columns_that_show_nothing_alone() -> None:
    points, targets = hidden_function(500)
    weights = relaxed_weights(points[None], targets[None])[0]
    assert set(weights.argsort(descending=True)[:6].tolist()) == set(range(6))
    assert max(abs(np.corrcoef(points[:, k], targets)[0, 1]) for k in range(6)) < 0.2


def test_a_leap_finds_parents_that_a_search_one_by_one_misses() -> None:
    points, targets = hidden_function(400, d=8)
    values = torch.column_stack([points, targets]).double().numpy()
    one = Objective(
        values / values.std(axis=0),
        settings=LikelihoodSettings(),
        device=CPU,
        rng=np.random.default_rng(0),
    )
    one.kernels = [Kernel(0.2, 1.0)] * 9  # what suits few parents
    one.ready = Kernel(0.85, 1.0)
    found = {}
    for leap in (False, True):
        search = choose_parents(one, 8, range(8), price=4.0, leap=leap)
        (found[leap],) = finish(in_step([search], one))
    assert found[True] == frozenset(range(6))
    assert len(found[False]) < 6
    assert one.kernels[8].interaction == 0.85  # it keeps the kernel that it landed with


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
def test_what_is_asked_beside_others_is_answered_alike(engine: str) -> None:
    """The same bits on any number of threads; alone or beside others, but for how a library rounds a batch."""
    together = [objective(seed, engine=engine) for seed in range(3)]
    prepare_together([(one, QUERIES) for one in together])
    for seed, one in enumerate(together):
        alone, apart, threaded = (objective(seed, engine=engine) for _ in range(3))
        threaded.threads = 2
        alone.prepare(QUERIES)
        threaded.prepare(QUERIES)
        for query in QUERIES:
            apart.prepare([query])
        for query in QUERIES:
            assert answer(threaded, query) == answer(alone, query)
            for other in (alone, apart):
                np.testing.assert_allclose(answer(other, query), answer(one, query), rtol=1e-4, atol=1e-4)
        assert alone.n_fits == apart.n_fits == threaded.n_fits == one.n_fits


def test_what_is_remembered_is_all_that_was_known() -> None:
    one, other = objective(0), objective(0)
    one.prepare(QUERIES)
    other.remember(one.memory())
    for query in QUERIES:
        assert answer(other, query) == answer(one, query)


def test_a_fit_that_cannot_be_factored_is_refused() -> None:
    one = objective(0, kernel_ridges=(1e-30,))
    for kernels in one.columns.kernels.values():
        kernels.bells.fill_(1.0)
    with pytest.raises(FitError, match="kernel_ridges"):
        one.prepare([Query(4, frozenset({1, 2, 3}))])
    with pytest.raises(FitError, match="kernel_ridges"):
        one.prepare([Query(4, frozenset({1, 2, 3}), kept=True)])


def test_slopes_are_those_of_the_likelihood() -> None:
    """Against the difference of log-likelihoods as a little of a further column enters the kernel."""
    one = objective(0)
    one.prepare([Query(4, frozenset({1, 2, 3}), slopes=True)])
    interaction, ridge, bandwidth, _ = one.kernels[4]
    bells, target = one.columns.kernels[bandwidth].bells.double(), one.columns.points[4].double()
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
    one.prepare([Query(node, parents, kept=True) for node, parents in enumerate(sets)])
    for node, parents in enumerate(sets):
        entropy = 0.5 * np.log(2 * np.pi * np.e * np.square(one.residuals(node, parents)).mean())
        assert one.value(node, parents) == pytest.approx(2 * one.n_rows * entropy)
    solved = [one._wanted(Fit(4, one.kernels[4], sets[4]), True, False)]
    assert len(list(batches(solved))) == 1


def test_a_leap_among_many_columns_pays_more_than_chance_would() -> None:
    few, many = (Choice(objective(0), 4, frozenset(range(m)), frozenset(), 4.0) for m in (12, 49))
    four, ten = frozenset(range(4)), frozenset(range(10))
    assert few.price_of_leap(frozenset(), ten) == 40.0  # its ten parents' prices
    assert many.price_of_leap(frozenset(), four) == pytest.approx(2 * np.log(211_876) + 4)
    assert many.price_of_leap(four, four) == 4.0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("engine", ["auto", "low_rank"])
def test_a_gpu_finds_what_a_cpu_finds(engine: str) -> None:
    """Alone and beside others, within what single precision leaves: a hundredth of a nat."""
    gpu = torch.device("cuda")
    together = [objective(seed, n=300, device=gpu, engine=engine) for seed in range(3)]
    prepare_together([(one, QUERIES) for one in together])
    for seed, one in enumerate(together):
        here, alone = objective(seed, n=300, engine=engine), objective(seed, n=300, device=gpu, engine=engine)
        here.prepare(QUERIES)
        alone.prepare(QUERIES)
        for query in QUERIES:
            np.testing.assert_allclose(answer(one, query), answer(here, query), rtol=1e-3, atol=1e-2)
            np.testing.assert_allclose(answer(one, query), answer(alone, query), rtol=1e-3, atol=1e-2)
