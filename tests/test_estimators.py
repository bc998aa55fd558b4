"""The estimators: scikit-learn's own checks, the contract, and options that reach their stage."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import diffan
from diffan.errors import InputError
from diffan.methods import METHODS

NOT_PASSED = {
    "check_dtype_object": "a cell that is no number is refused with diffan's own sentence, a ValueError, not a TypeError",
}


@pytest.mark.parametrize(
    "estimator",
    [diffan.baselines.R2Sort(), diffan.DiffAN(width=16, depth=1, max_steps=20, device="cpu")],
    ids=lambda e: type(e).__name__,
)
def test_scikit_learn_accepts_the_estimator(estimator) -> None:
    check_estimator(estimator, expected_failed_checks=NOT_PASSED, on_skip=None)


def frame(seed: int = 0):
    dag = diffan.simulate.random_dag(4, 4, seed=seed)
    return diffan.simulate.sample_anm(dag, 200, seed=seed)


def test_the_contract() -> None:
    data = frame()
    model = diffan.baselines.R2Sort(cutoff=0.01).fit(data)
    assert sorted(model.order_) == [0, 1, 2, 3]
    assert [data.columns[i] for i in model.order_] == model.discovery_.order
    np.testing.assert_array_equal(model.adjacency_, model.discovery_.adjacency)
    assert model.p_values_.shape == (4, 4)
    assert model.discovery_.settings["cutoff"] == 0.01
    assert list(model.feature_names_in_) == list(data.columns)
    again = clone(model)
    assert not hasattr(again, "discovery_")
    assert again.get_params() == model.get_params()


def test_the_same_as_discover() -> None:
    data = frame(1)
    fitted = diffan.baselines.SCORE().fit(data)
    found = diffan.discover(data, "score")
    assert fitted.discovery_.order == found.order
    np.testing.assert_array_equal(fitted.p_values_, found.evidence.p_values)


def test_the_preset_fills_what_is_not_given() -> None:
    data = frame(2)
    small = {"max_steps": 10, "device": "cpu"}
    paper = diffan.DiffAN(preset="paper", **small).fit(data).discovery_.settings
    default = diffan.DiffAN(**small).fit(data).discovery_.settings
    assert paper["schedule"] == "ddpm"
    assert default["schedule"] == "continuous"
    assert paper["max_steps"] == default["max_steps"] == 10


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "scoer"}, "There is no method 'scoer'; did you mean 'score'?"),
        ({"widht": 3}, "Method 'diffan' has no option 'widht'; did you mean 'width'?"),
        ({"preset": "papers"}, "must be 'default' or 'paper'. Got 'papers' instead"),
        ({"variant": "msking"}, "'msking'"),
        ({"seed": -1}, "whole number of 0 or more. Got -1 instead"),
        ({"device": "abacus"}, "must be 'auto', 'cpu' or"),
        ({"method": "r2-sort", "variant": "masking"}, "has no option 'variant'"),
    ],
)
def test_bad_options_are_refused(options, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        diffan.discover(frame(), **options)


@pytest.mark.parametrize("name", METHODS)
def test_no_option_name_means_two_things(name: str) -> None:
    """An option is given by its bare name, so a method's own may not share it with the finish's."""
    from diffan.likelihood.settings import LikelihoodSettings
    from diffan.options import field_names
    from diffan.pruning import PruneSettings

    names = [
        option
        for settings in (METHODS[name].default_settings("default"), PruneSettings(), LikelihoodSettings())
        for option in field_names(settings)
    ]
    assert len(names) == len(set(names))
