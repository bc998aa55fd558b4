"""The learned score is the score of the smoothed density, on a mixture where that is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffan.score.model import ScoreModel
from diffan.score.training import train
from diffan.settings import ScoreSettings

MEANS = torch.tensor([[0.8, 0.8], [-0.8, -0.8], [0.8, -0.8], [-0.8, 0.8]], dtype=torch.float64)
WEIGHTS = torch.tensor([0.4, 0.4, 0.1, 0.1], dtype=torch.float64)
SPREAD = 0.6  # 0.8^2 + 0.6^2 = 1: unit-variance columns


def sample(count: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    parts = rng.choice(4, count, p=WEIGHTS.numpy())
    return MEANS[parts] + SPREAD * torch.from_numpy(rng.standard_normal((count, 2)))


def smoothed_score(rows: torch.Tensor, sigma: float) -> torch.Tensor:
    variance = SPREAD**2 + sigma**2
    to_means = MEANS[None] - rows[:, None]  # [n, parts, 2]
    shares = torch.softmax(WEIGHTS.log() - to_means.square().sum(-1) / (2 * variance), dim=1)
    return (shares[..., None] * to_means).sum(1) / variance


@pytest.fixture(scope="module", params=["continuous", "ddpm"])
def model(request: pytest.FixtureRequest) -> ScoreModel:
    settings = ScoreSettings(
        schedule=request.param,
        prediction="preconditioned" if request.param == "continuous" else "noise",
        width=64,
        depth=2,
        dropout=0.0,
        weight_decay=0.01,
        max_steps=600,
        batch_size=1024,
    )
    return train(sample(6000, 0).numpy(), settings, np.random.default_rng(0), torch.device("cpu"))[0]


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0])
def test_the_score_is_that_of_the_smoothed_mixture(model: ScoreModel, sigma: float) -> None:
    noise = torch.from_numpy(np.random.default_rng(2).standard_normal((2000, 2)))
    rows = sample(2000, 1) + sigma * noise
    truth = smoothed_score(rows, sigma)
    found = model.score(rows.float(), sigma).double()
    error = (found - truth).square().mean() / truth.square().mean()
    of_independent_normals = (-rows / (1 + sigma**2) - truth).square().mean() / truth.square().mean()
    assert error < 0.05
    assert error < of_independent_normals / 2


def test_a_score_trained_without_columns_knows_the_marginal() -> None:
    """The effect tells of the cause; when it is absent the score of a normal cause must be -y / (1 + sigma^2)."""
    rng = np.random.default_rng(3)
    cause = rng.standard_normal(4000)
    effect = np.abs(cause) + 0.3 * rng.standard_normal(4000)
    values = np.stack([cause, (effect - effect.mean()) / effect.std()], axis=1)
    settings = ScoreSettings(
        width=64, depth=2, dropout=0.0, weight_decay=0.01, max_steps=400, batch_size=1024, drop_columns=0.6
    )
    model = train(values, settings, np.random.default_rng(0), torch.device("cpu"))[0]
    rows = torch.tensor(values[:1000] + 0.4 * rng.standard_normal((1000, 2)), dtype=torch.float32)
    truth = -rows[:, 0] / 1.16

    def error(score: torch.Tensor) -> float:
        return float((score[:, 0] - truth).square().mean() / truth.square().mean())

    assert error(model.score(rows, 0.4, absent=[1])) < 0.05
    assert error(model.score(rows, 0.4)) > 0.1
