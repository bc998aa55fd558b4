"""Training: a pure function that stops on held-out loss, survives bad losses and repeats itself exactly."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from diffan.errors import FitError, InputError
from diffan.score import training
from diffan.score.batches import ResidentRows
from diffan.score.holdout import HeldOut, split_rows
from diffan.score.model import ScoreModel
from diffan.score.network import make_network
from diffan.score.stepping import Stepper
from diffan.score.training import auto_batch_size, train
from diffan.settings import ScoreSettings

CPU = torch.device("cpu")
SMALL = ScoreSettings(width=32, depth=2, dropout=0.1, weight_decay=0.1, learning_rate=5e-3, max_steps=200)


def rows(count: int = 200, d: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, d))
    values[:, 1] = np.sin(2 * values[:, 0]) + 0.3 * values[:, 1]
    return (values - values.mean(0)) / values.std(0)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_training_learns_and_keeps_the_best_weights() -> None:
    values = rows(400)
    before = values.copy()
    model, losses = train(values, SMALL, rng(), CPU)
    assert np.array_equal(values, before)
    assert len(losses["step"]) == len(losses["train"]) == len(losses["validation"])
    assert min(losses["validation"]) < 0.97 * losses["validation"][0]
    assert model.n_variables == 3
    assert not any(tensor.requires_grad for tensor in model.network.tensors().values())


def test_same_seed_same_bytes_and_global_seeds_do_not_matter() -> None:
    torch.manual_seed(1)
    first, losses = train(rows(), SMALL, rng(), CPU)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second, again = train(rows(), SMALL, rng(), CPU)
    assert torch.equal(torch.get_rng_state(), state)
    assert losses["validation"] == again["validation"]
    stored, other = first.to_arrays(), second.to_arrays()
    assert all(stored[name].tobytes() == other[name].tobytes() for name in stored)
    third, _ = train(rows(), SMALL, np.random.default_rng(6), CPU)
    assert any(third.to_arrays()[name].tobytes() != stored[name].tobytes() for name in stored)


@pytest.mark.parametrize("bad_attempts", [1, 3])
def test_a_loss_that_is_not_a_number_restarts_slower(
    monkeypatch: pytest.MonkeyPatch, bad_attempts: int
) -> None:
    rates: list[float] = []

    class Sabotaged(Stepper):
        def __init__(self, *args, learning_rate: float, **options) -> None:
            rates.append(learning_rate)
            super().__init__(*args, learning_rate=learning_rate, **options)

        def mean_loss(self) -> float:
            return float("nan") if len(rates) <= bad_attempts else super().mean_loss()

    monkeypatch.setattr(training, "Stepper", Sabotaged)
    _, losses = train(rows(), replace(SMALL, max_steps=40), rng(), CPU)
    assert rates == pytest.approx([SMALL.learning_rate * 0.3**k for k in range(bad_attempts + 1)])
    assert np.isfinite(losses["validation"]).all()


def test_losses_that_stay_bad_end_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldOut, "loss", lambda self, network: float("nan"))
    with pytest.raises(FitError, match=r"not a number 4 times.*learning_rate"):
        train(rows(), replace(SMALL, max_steps=20), rng(), CPU)


def test_overflowing_data_is_a_fit_error_not_a_crash() -> None:
    values = rows()
    values[:, 0] *= 1e30
    with pytest.raises(FitError, match="extreme values"):
        train(values, replace(SMALL, max_steps=20), rng(), CPU)


def test_warm_start_begins_where_the_last_fit_ended() -> None:
    values = rows(400)
    model, losses = train(values, SMALL, rng(), CPU)
    _, warm = train(values, replace(SMALL, max_steps=20), rng(), CPU, warm_start=model)
    assert warm["validation"][0] == pytest.approx(min(losses["validation"]), abs=1e-6)
    assert min(warm["validation"]) <= warm["validation"][0]
    with pytest.raises(InputError, match="warm start"):
        train(values[:, :2], SMALL, rng(), CPU, warm_start=model)


def test_restricted_model_is_the_whole_with_the_other_columns_at_zero() -> None:
    model, _ = train(rows(), replace(SMALL, ensemble=2, max_steps=30), rng(), CPU)
    point = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    point[:, 1] = 0
    part = model.restricted([2, 0]).score(point[:, [2, 0]], 0.3)
    torch.testing.assert_close(part, model.score(point, 0.3)[:, [2, 0]])


def test_arrays_round_trip() -> None:
    model, _ = train(rows(), replace(SMALL, ensemble=2, max_steps=20), rng(), CPU)
    again = ScoreModel.from_arrays(model.to_arrays(), model.settings)
    point = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.score(point, 0.3), model.score(point, 0.3))
    with pytest.raises(InputError, match="settings"):
        ScoreModel.from_arrays(model.to_arrays(), replace(model.settings, width=31))


def test_interrupt_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def interrupted(self: Stepper) -> None:
        if next(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stepper, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(rows(), SMALL, rng(), CPU)


@pytest.mark.parametrize("count", [12, 50, 2500])
def test_any_number_of_rows(count: int) -> None:
    _, losses = train(rows(count), replace(SMALL, max_steps=20), rng(), CPU)
    assert np.isfinite(losses["validation"]).all()


def test_batches_grow_with_the_table() -> None:
    assert [auto_batch_size(n) for n in (40, 1700, 5000, 10**6)] == [256, 1700, 2048, 8192]


def test_a_pass_of_small_batches_visits_every_row_once() -> None:
    network = make_network(2, SMALL, torch.Generator().manual_seed(0))
    model = ScoreModel.of(network, SMALL)
    batches = ResidentRows(torch.zeros(100, 2)).batches(np.arange(100)[None], 25, 1)
    stepper = Stepper(model, batches, learning_rate=1e-3, noise_seed=0)
    seen = []
    for _ in range(4):
        stepper.step()
        seen += batches._rows.flatten().tolist()
    assert sorted(seen) == list(range(100))
    assert seen != list(range(100))


@pytest.mark.parametrize("mode", ["shared", "folds"])
def test_held_out_rows_are_never_trained_on(mode: str) -> None:
    settings = replace(SMALL, ensemble=4, holdout_split=mode, holdout=0.2)
    split = split_rows(50, settings, rng())
    for train_rows, held in zip(split.train, split.held_out, strict=True):
        assert sorted([*train_rows, *held]) == list(range(50))
    apart = len({tuple(held) for held in split.held_out})
    assert apart == (4 if mode == "folds" else 1)


@pytest.mark.parametrize(
    "options", [{"ensemble": 3}, {"ensemble": 2, "holdout_split": "folds"}, {"refit": True}]
)
def test_other_ways_to_train(options: dict) -> None:
    model, losses = train(rows(300), replace(SMALL, **options), rng(), CPU)
    assert min(losses["validation"]) < 0.99 * losses["validation"][0]
    assert model.network.members == options.get("ensemble", 1)


def test_paper_preset_trains() -> None:
    settings = replace(ScoreSettings.paper(), max_steps=40)
    model, losses = train(rows(100), settings, rng(), CPU)
    assert min(losses["validation"]) < losses["validation"][0]
    widths = [tuple(linear.weight.shape[1:]) for linear in model.network.linears]
    assert widths == [(4, 128), (128, 1024), (1024, 1024), (1024, 1024), (1024, 3)]


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="at least 10 rows"):
        train(rows(5), SMALL, rng(), CPU)
