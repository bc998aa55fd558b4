"""Tangents pushed forward are autograd's derivatives, whatever the network and however the points are chunked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffan.ordering.curvature import AutogradField, NetworkField
from diffan.score.model import ScoreModel
from diffan.score.network import make_network
from diffan.score.schedule import make_schedule
from diffan.settings import ScoreSettings, ddpm_sigmas

PLAIN = ScoreSettings(width=16, depth=3)
NETWORKS = {
    "tanh": PLAIN,
    "silu": replace(PLAIN, activation="silu", depth=1),
    "softplus": replace(PLAIN, activation="softplus", prediction="noise"),
    "ensemble": replace(PLAIN, ensemble=3),
    "ddpm": replace(PLAIN, schedule="ddpm"),
    "absence": replace(PLAIN, drop_columns=0.5),
    "paper": ScoreSettings.paper(),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


def exact_model(settings: ScoreSettings, d: int = 4) -> ScoreModel:
    """Random weights, also in the last layer, in double precision."""
    generator = torch.Generator().manual_seed(0)
    network = make_network(d, settings, generator)
    noisy = network.mapped(
        lambda _, value: (value + 0.2 * torch.randn(value.shape, generator=generator)).double()
    )
    return ScoreModel.of(noisy, settings)


def some_rows(count: int = 7, d: int = 4) -> torch.Tensor:
    return torch.randn(count, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@every_network
def test_jacobian_is_autograds(name: str) -> None:
    model = exact_model(NETWORKS[name])
    rows, sigma = some_rows(), 0.31
    reference = AutogradField(lambda point: model.score(point[None], sigma)[0]).jacobian(rows, sigma)
    assert reference.abs().max() > 0.1
    torch.testing.assert_close(NetworkField(model).jacobian(rows, sigma), reference, rtol=1e-6, atol=1e-6)


@every_network
def test_diagonal_is_the_jacobians_for_any_columns(name: str) -> None:
    field = NetworkField(exact_model(NETWORKS[name]))
    whole = field.jacobian(some_rows(), 0.3).diagonal(dim1=1, dim2=2)
    for columns in ([0, 1, 2, 3], [2, 0], [3]):
        torch.testing.assert_close(field.diagonal(some_rows(), 0.3, columns), whole[:, columns])


@every_network
def test_absent_columns_are_those_of_the_score(name: str) -> None:
    model = exact_model(NETWORKS[name])
    rows = some_rows()
    reference = AutogradField(lambda point: model.score(point[None], 0.3, absent=[1])[0]).jacobian(rows, 0.3)
    found = NetworkField(model).diagonal(rows, 0.3, [0, 2, 3], absent=[1])
    torch.testing.assert_close(found, reference.diagonal(dim1=1, dim2=2)[:, [0, 2, 3]], rtol=1e-6, atol=1e-6)
    zeroed = rows.clone()
    zeroed[:, 1] = 0
    torch.testing.assert_close(found, NetworkField(model).diagonal(zeroed, 0.3, [0, 2, 3], absent=[1]))
    same_as_zero = NetworkField(model).diagonal(zeroed, 0.3, [0, 2, 3])
    assert torch.allclose(found, same_as_zero) == (name != "absence")


@every_network
def test_a_memory_bound_changes_nothing(name: str) -> None:
    model = exact_model(NETWORKS[name])
    rows = some_rows(50)
    one_by_one = NetworkField(model, memory_bytes=1)
    torch.testing.assert_close(
        one_by_one.diagonal(rows, 0.3, range(4)), NetworkField(model).diagonal(rows, 0.3, range(4))
    )
    torch.testing.assert_close(one_by_one.jacobian(rows, 0.3), NetworkField(model).jacobian(rows, 0.3))


def test_chunks_stay_within_the_memory_bound() -> None:
    field = NetworkField(exact_model(replace(PLAIN, width=64)), memory_bytes=3 * 4 * 4 * 64 * 10)
    assert [len(chunk) for chunk in field._chunks(some_rows(25), 4, field.memory_bytes)] == [10, 10, 5]


def test_single_precision_agrees() -> None:
    model = exact_model(PLAIN)
    single = ScoreModel.of(model.network.mapped(lambda _, value: value.float()), PLAIN)
    narrow = NetworkField(single).diagonal(some_rows().float(), 0.3, range(4))
    torch.testing.assert_close(
        narrow.double(), NetworkField(model).diagonal(some_rows(), 0.3, range(4)), rtol=1e-4, atol=1e-4
    )


def test_an_untrained_network_is_the_score_of_independent_normals() -> None:
    model = ScoreModel.of(make_network(4, PLAIN, torch.Generator().manual_seed(0)), PLAIN)
    rows = some_rows().float()
    torch.testing.assert_close(model.score(rows, 0.5), -rows / 1.25)


def test_ddpm_levels_are_the_papers() -> None:
    settings = ScoreSettings.paper()
    alphas = np.cumprod(1 - np.linspace(1e-4, 0.02, 100))
    np.testing.assert_allclose(ddpm_sigmas(settings), np.sqrt((1 - alphas) / alphas))
    schedule = make_schedule(settings, torch.device("cpu"))
    sigmas = torch.tensor(ddpm_sigmas(settings), dtype=torch.float32)
    torch.testing.assert_close(schedule.condition(sigmas[:, None])[:, 0], torch.arange(100.0))
    torch.testing.assert_close(schedule.quantile(torch.tensor([0.0, 0.505, 0.999])), sigmas[[0, 50, 99]])


def test_continuous_levels_are_lognormal() -> None:
    schedule = make_schedule(ScoreSettings(), torch.device("cpu"))
    levels = schedule.quantile(torch.linspace(0.005, 0.995, 100)).log()
    assert float(levels.mean()) == pytest.approx(-1.0, abs=1e-4)
    assert float(levels.std()) == pytest.approx(0.7, abs=0.02)
