"""Settings check themselves, and their names do not clash when given as plain options."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from diffan.errors import InputError
from diffan.options import field_names
from diffan.settings import DiffanSettings, OrderSettings, ScoreSettings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ScoreSettings(width=0),
            "'width' parameter of ScoreSettings must be a whole number of 1 or more",
        ),
        (lambda: ScoreSettings(width=True), "'width'"),
        (lambda: ScoreSettings(dropout=1.0), r"'dropout'.*\[0, 1\)"),
        (lambda: ScoreSettings(learning_rate=float("nan")), "'learning_rate'"),
        (lambda: ScoreSettings(activation="relu"), "one of 'tanh'"),
        (lambda: ScoreSettings(beta_min=0.1, beta_max=0.01), "'beta_max'"),
        (lambda: ScoreSettings(conditioning="timestep"), "'conditioning'"),
        (lambda: OrderSettings(noise_levels=()), "'noise_levels'"),
        (lambda: OrderSettings(noise_levels=(0.0,)), "'noise_levels'"),
        (lambda: OrderSettings(vote="all"), "one of 'mean'"),
        (lambda: OrderSettings(order_batch_size=1), "2 or more"),
        (lambda: DiffanSettings(variant="mask"), "one of 'auto', 'masking'"),
        (lambda: DiffanSettings(score=OrderSettings()), "ScoreSettings"),
    ],
)
def test_bad_values_are_refused_in_a_sentence(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_misspelt_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="widht"):
        ScoreSettings(widht=3)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ScoreSettings().width = 3


def test_every_option_has_a_name_of_its_own() -> None:
    names = field_names(DiffanSettings())
    assert len(names) == len(set(names))


def test_paper_preset_is_the_papers() -> None:
    paper = DiffanSettings.paper()
    assert paper.variant == "deciduous"
    assert (paper.score.timesteps, paper.score.beta_min, paper.score.beta_max) == (100, 1e-4, 0.02)
    assert (paper.score.dropout, paper.score.learning_rate, paper.score.weight_decay) == (0.2, 1e-3, 0.0)
    assert (paper.order.vote, len(paper.order.noise_levels)) == ("majority", 3)
    assert paper.order.noise_levels[0] == pytest.approx(0.01, rel=1e-3)
