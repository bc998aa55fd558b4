"""Replicates, what is counted of them, and the bound on what chance gets through."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import diffan
from diffan import ConfidenceSettings
from diffan.confidence import Replicate, count
from diffan.constraints import Constraints
from diffan.context import Context
from diffan.errors import FitError, InputError
from diffan.knowledge import Knowledge
from diffan.replicates import Job, drawn_rows, measure
from diffan.stability import stability_threshold, unimodal_bound, worst_case_bound
from diffan.table import Table

NAMES = ("a", "b", "c", "d")
TINY: dict[str, Any] = {"width": 8, "depth": 1, "max_steps": 20, "refine": False, "edges": "additive"}


def table(n: int = 120, seed: int = 2) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(4, 4, seed=seed)
    return diffan.simulate.sample_anm(dag, n, seed=seed).set_axis(list(NAMES), axis=1)


def counted(*replicates: Replicate, known: Knowledge | None = None) -> diffan.Confidence:
    rules = (known or Knowledge()).consequences(NAMES)
    return count(replicates, NAMES, rules, scheme="subsample", expected_false=1.0)


# ---- counting -------------------------------------------------------------------------------------


def test_frequencies_directions_and_precedences_by_hand() -> None:
    found = counted(
        Replicate((0, 1, 2, 3), ((0, 1), (1, 2))),
        Replicate((1, 0, 2, 3), ((1, 0), (1, 2))),
        Replicate((0, 1, 2, 3), ((0, 1),)),
        Replicate((0, 1, 2, 3), ((0, 1), (1, 2))),
    )
    assert found.frequency[0, 1] == 0.75
    assert found.frequency[1, 0] == 0.25
    assert found.direction[0, 1] == 0.75
    assert np.isnan(found.direction[0, 3])
    assert found.adjacency[0, 1] == found.adjacency[1, 0] == 1.0
    assert found.precedence[0, 1] == 0.75
    assert found.precedence[0, 3] == 1.0
    np.testing.assert_allclose(found.precedence + found.precedence.T, 1 - np.eye(4))
    assert found.consensus.edges == [("a", "b"), ("b", "c")]
    assert found.agreement([0, 1, 2, 3]) == pytest.approx((5 + 0.75) / 6)


def test_the_consensus_has_no_cycle_and_obeys() -> None:
    loop = [
        Replicate((0, 1, 2, 3), ((0, 1), (1, 2))),
        Replicate((1, 2, 0, 3), ((1, 2), (2, 0))),
        Replicate((2, 0, 1, 3), ((2, 0), (0, 1))),
    ] * 2
    assert counted(*loop).consensus.n_edges == 2
    known = Knowledge(required_ancestors=["a -> d"], forbidden=["a -> b"])
    sure = counted(*loop, known=known)
    assert "a" in sure.consensus.ancestors("d")
    assert ("a", "b") not in sure.consensus.edges


# ---- the threshold --------------------------------------------------------------------------------


def test_bounds_by_hand() -> None:
    assert worst_case_bound(0.9, picked=20, possible=380) == pytest.approx(400 / 380 / 0.8)
    assert unimodal_bound(0.9, 20, 380, 50) == pytest.approx(4 * (0.1 + 0.01) / 1.02 * 400 / 380)
    assert unimodal_bound(0.7, 20, 380, 50) == pytest.approx(400 / 380 / (2 * (0.4 - 0.01)))
    assert unimodal_bound(0.9, 300, 380, 50) == worst_case_bound(0.9, 300, 380)


def test_the_threshold_is_the_least_that_keeps_its_promise() -> None:
    found = stability_threshold(20, 380, 50, wanted=0.5)
    assert found.expected_false <= 0.5 < unimodal_bound(found.frequency - 0.01, 20, 380, 50)
    assert stability_threshold(200, 380, 50, wanted=0.01).frequency == 1.0
    assert stability_threshold(0.1, 380, 50, wanted=1.0).frequency == 0.6


def test_the_bound_holds_when_edges_are_picked_at_random() -> None:
    """Both halves pick 10 of 90 edges independently of the other; edges differ in their chance, as real ones do."""
    rng = np.random.default_rng(0)
    n_pairs, possible, passed, bounds = 25, 90, [], []
    for _ in range(200):
        weight = rng.gamma(4.0, size=possible)
        picks = np.array(
            [rng.choice(possible, 10, replace=False, p=weight / weight.sum()) for _ in range(2 * n_pairs)]
        )
        frequency = np.bincount(picks.ravel(), minlength=possible) / (2 * n_pairs)
        at = stability_threshold(10, possible, n_pairs, wanted=1.0)
        passed.append((frequency >= at.frequency).sum())
        bounds.append(at.expected_false)
    assert np.mean(passed) <= np.mean(bounds) <= 1.0


# ---- rows -----------------------------------------------------------------------------------------


def test_halves_come_in_pairs_that_share_no_row() -> None:
    for pair in range(3):
        one, other = (drawn_rows(101, 7, "subsample", 2 * pair + side) for side in (0, 1))
        assert len(one) == len(other) == len(set(one) | set(other)) / 2 == 50
    assert not np.array_equal(drawn_rows(101, 7, "subsample", 0), drawn_rows(101, 7, "subsample", 2))
    assert not np.array_equal(drawn_rows(101, 7, "subsample", 0), drawn_rows(101, 8, "subsample", 0))
    drawn = drawn_rows(101, 7, "bootstrap", 0)
    assert len(drawn) == 101 > len(set(drawn))


def test_parts_of_a_table_are_standardised_again_and_know_their_units() -> None:
    whole = Table.read(table() * [1.0, 10.0, 0.1, 3.0])
    rows = np.arange(40)
    part = whole.rows(rows)
    np.testing.assert_allclose(part.values.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(part.values.std(axis=0), 1, atol=1e-6)
    raw = (table() * [1.0, 10.0, 0.1, 3.0]).to_numpy()[rows]
    np.testing.assert_allclose(part.scale, raw.std(axis=0), rtol=1e-5)
    np.testing.assert_allclose(part.center, raw.mean(axis=0), atol=1e-5)
    unscaled = Table.read(table() * [1.0, 10.0, 0.1, 3.0], standardize=False).rows(rows)
    np.testing.assert_allclose(unscaled.scale, raw.std(axis=0), rtol=1e-5)
    rare = np.zeros(60)
    rare[-3:] = 1
    with pytest.raises(FitError, match="Constant in a part of the rows: 'rare'"):
        Table.read(pd.DataFrame({"a": table(60)["a"], "rare": rare})).rows(np.arange(30))


# ---- whole runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("diffan", TINY),
        ("diffan", TINY | {"variant": "deciduous"}),
        ("score", {}),
        ("random", {}),
        ("cam", {}),
    ],
)
def test_replicates_are_counted_for_every_kind_of_method(method: str, options: dict[str, Any]) -> None:
    known = Knowledge(required=["a -> d"], forbidden=["b -> c"])
    result = diffan.discover(table(), method, confidence=6, knowledge=known, seed=1, device="cpu", **options)
    sure = result.confidence
    assert sure is not None
    assert sure.n_replicates == 6
    assert sure.frequency[0, 3] == 1.0
    assert sure.frequency[1, 2] == 0.0
    assert sure.precedence[0, 3] == 1.0
    tested = result.evidence.tested
    np.testing.assert_array_equal(result.evidence.measures["frequency"][tested], sure.frequency[tested])
    assert ("a", "d") in sure.consensus.edges
    assert "confidence" in result.timings


def test_a_random_order_is_not_sure_of_itself() -> None:
    sure = diffan.discover(table(), "random", confidence=40, device="cpu").confidence
    assert sure is not None
    off = sure.precedence[~np.eye(4, dtype=bool)]
    assert 0.2 < off.min() < 0.5 < off.max() < 0.8


def test_permuting_the_columns_permutes_the_frequencies() -> None:
    moved = [2, 0, 3, 1]
    one, other = (
        diffan.discover(data, "score", confidence=4, device="cpu").confidence
        for data in (table(), table().iloc[:, moved])
    )
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.frequency[np.ix_(moved, moved)], other.frequency)
    np.testing.assert_array_equal(one.precedence[np.ix_(moved, moved)], other.precedence)
    assert set(one.consensus.edges) == set(other.consensus.edges)


def test_workers_change_nothing() -> None:
    here, there = (
        diffan.discover(
            table(), "r2-sort", confidence=ConfidenceSettings(replicates=4, workers=workers), device="cpu"
        ).confidence
        for workers in (0, 1)
    )
    assert here is not None
    assert there is not None
    np.testing.assert_array_equal(here.frequency, there.frequency)
    np.testing.assert_array_equal(here.precedence, there.precedence)


def diffan_job(seed: int = 0, **options: Any) -> Job:
    """Six variables, finished by the likelihood, with a score model that is reused."""
    from diffan.likelihood.settings import LikelihoodSettings
    from diffan.methods import METHODS
    from diffan.options import apply
    from diffan.ordering.diffan_order import find_order
    from diffan.pruning import PruneSettings
    from diffan.recipe import Recipe

    dag = diffan.simulate.random_dag(6, 7, seed=seed)
    data = Table.read(diffan.simulate.sample_anm(dag, 240, noise_scale=(0.3, 0.5), seed=seed))
    entry = METHODS["diffan"]
    given = {name: value for name, value in (TINY | options).items() if name not in ("refine", "edges")}
    settings, prune, likelihood = apply(
        given, entry.default_settings("default"), PruneSettings(), LikelihoodSettings(), what="This test"
    )
    recipe = Recipe(entry.module, settings, "kernel", "likelihood", prune, likelihood)
    context = Context(seed=seed, device="cpu", constraints=Constraints.none(6))
    return Job(data, recipe, context, "subsample", find_order(data, settings, context).model)


@pytest.mark.parametrize("options", [{}, {"first_rows": 60}])
def test_replicates_in_lockstep_are_those_run_alone(options: dict[str, Any]) -> None:
    """With one pass over the rows and with two: whoever runs beside a replicate does not change it."""
    job = diffan_job(**options)
    alone = [job.run(index) for index in range(6)]
    together = dict(job.run_together(range(6)))
    assert [together[place] for place in range(6)] == alone
    assert dict(job.run_together([4, 1])) == {0: alone[4], 1: alone[1]}
    assert len(set(alone)) > 1


def test_lockstep_is_resumable_and_obeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Knowledge(required=["x0 -> x5"], forbidden=["x1 -> x2"])
    plain = diffan_job()
    job = replace(plain, context=replace(plain.context, constraints=rules.consequences(plain.table.names)))
    settings = ConfidenceSettings(replicates=6, folder=tmp_path)
    one_by_one = measure(job, replace(settings, folder=None), job.context)
    asked = []
    together = Job.run_together

    def watched(self: Job, indices: Any) -> Any:
        asked.append(list(indices))
        return together(self, indices)

    monkeypatch.setattr(Job, "at_once", lambda self: 4)
    monkeypatch.setattr(Job, "run_together", watched)
    measure(job, replace(settings, replicates=2), job.context)
    found = measure(job, settings, job.context)
    assert asked == [[0, 1], [2, 3, 4, 5]]
    np.testing.assert_array_equal(found.frequency, one_by_one.frequency)
    np.testing.assert_array_equal(found.precedence, one_by_one.precedence)
    assert found.frequency[job.table.names.index("x0"), job.table.names.index("x5")] == 1.0
    assert found.frequency[job.table.names.index("x1"), job.table.names.index("x2")] == 0.0


def test_halves_are_ordered_at_one_noise_level_and_few_rows_where_that_was_measured() -> None:
    from diffan.ordering.diffan_order import thrifty

    given = replace(diffan_job().recipe.order_settings, variant="masking")
    spared = thrifty(given).order
    assert (spared.noise_levels, spared.order_batch_size, spared.kernel_columns) == ((0.3,), 256, 0)
    voting = replace(given, order=replace(given.order, vote="majority"))
    assert thrifty(voting).order == replace(voting.order, kernel_columns=0)


@pytest.mark.parametrize(
    "options", [{}, {"resample": True, "evaluate_at": "noised"}, {"drop_columns": 0.5}, {"vote": "rank"}]
)
@pytest.mark.parametrize("standardized", [True, False])
def test_tables_peeled_together_have_the_orders_they_have_alone(
    options: dict[str, Any], standardized: bool
) -> None:
    from diffan.ordering.diffan_order import masked_together, reorder

    job = diffan_job(**options)
    parts, contexts = zip(*(job._drawn(index) for index in range(4)), strict=True)
    parts = tuple(replace(part, standardized=standardized) for part in parts)
    rules = Knowledge(leaves=["x0"]).consequences(job.table.names)
    contexts = tuple(replace(context, constraints=rules) for context in contexts)
    settings = replace(job.recipe.order_settings, variant="masking")
    assert job.model is not None
    together = masked_together(parts, settings, contexts, model=job.model)
    for part, context, found in zip(parts, contexts, together, strict=True):
        assert found.order == reorder(part, settings, context, model=job.model).order
        assert found.order[-1] == job.table.names.index("x0")


@pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="needs a GPU")
def test_lockstep_on_a_gpu_finds_what_a_cpu_finds() -> None:
    """All but single edges that hang on the last digits."""
    here = diffan_job()
    there = replace(here, context=replace(here.context, device="cuda"))
    assert there.at_once() > 6
    expected, found = [here.run(index) for index in range(6)], dict(there.run_together(range(6)))
    apart = [len(set(found[k].edges) ^ set(one.edges)) for k, one in enumerate(expected)]
    assert sum(apart) <= 2
    alone = [there.run(index) for index in range(6)]
    assert sum(len(set(found[k].edges) ^ set(one.edges)) for k, one in enumerate(alone)) <= 2


def test_how_many_run_together_is_bounded_by_memory() -> None:
    import torch

    from diffan.likelihood.passes import tables_at_once
    from diffan.likelihood.settings import LikelihoodSettings

    gpu, settings = torch.device("cuda"), LikelihoodSettings()
    held = tables_at_once(500, 20, gpu, settings) * 4 * 30 * 500**2 * len(settings.kernel_bandwidths)
    assert 0.9 * 8 * 2**30 < held <= 8 * 2**30
    assert tables_at_once(500, 20, gpu, replace(settings, kernel_memory_mb=1)) == 1
    assert diffan_job().at_once() == 1  # a CPU does not gain


def test_another_executor_can_be_plugged_in() -> None:
    job, settings, asked = r2_job(), ConfidenceSettings(replicates=4, workers=3), []

    def backwards(function: Any, tasks: Any, *, workers: int, scheduler: str | None) -> Any:
        asked.append(workers)
        yield from reversed([(k, function(task)) for k, task in enumerate(tasks)])

    one = measure(job, settings, Context(), run=backwards)
    other = measure(job, replace(settings, workers=0), Context())
    np.testing.assert_array_equal(one.frequency, other.frequency)
    assert asked == [3]
    with pytest.raises(FitError, match="broken"):
        measure(job, settings, Context(), run=lambda *_, **__: iter([(0, FitError("broken"))]))


def r2_job(seed: int = 0) -> Job:
    from diffan.likelihood.settings import LikelihoodSettings
    from diffan.methods import METHODS
    from diffan.pruning import PruneSettings
    from diffan.recipe import Recipe

    entry = METHODS["r2-sort"]
    recipe = Recipe(
        entry.module,
        entry.default_settings("default"),
        False,
        "additive",
        PruneSettings(),
        LikelihoodSettings(),
    )
    context = Context(seed=seed, device="cpu", constraints=Constraints.none(4))
    return Job(Table.read(table()), recipe, context, "subsample")


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    job, ran = r2_job(), []

    def run(function: Any, tasks: Any, *, workers: int, scheduler: str | None) -> Any:
        for k, task in enumerate(tasks):
            if len(ran) == 3:
                raise KeyboardInterrupt
            ran.append(task)
            yield k, function(task)

    settings = ConfidenceSettings(replicates=6, folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(job, settings, Context(), run=run)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    files[0].write_text("{damaged")
    files[1].write_text(json.dumps({"order": [0, 0, 1, 2], "edges": []}))
    before = {file: file.read_text() for file in files[2:]}
    resumed = measure(job, settings, Context())
    fresh = measure(job, replace(settings, folder=None), Context())
    np.testing.assert_array_equal(resumed.frequency, fresh.frequency)
    assert all(file.read_text() == text for file, text in before.items())
    assert len(list(tmp_path.iterdir())) == 6
    measure(r2_job(seed=1), settings, Context())
    assert len(list(tmp_path.iterdir())) == 12


def test_confidence_is_kept_with_the_run(tmp_path: Path) -> None:
    result = diffan.discover(table(), "cam", confidence=4, device="cpu")
    result.save(tmp_path / "run")
    back = diffan.load(tmp_path / "run")
    assert result.confidence is not None
    assert back.confidence is not None
    assert back.confidence.record() == result.confidence.record()
    assert back.summary() == result.summary()
    file = tmp_path / "run" / "graph.json"
    content = json.loads(file.read_text())
    content["confidence"]["frequency"][0][1] = 1.5
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="is damaged"):
        diffan.load(file)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (3, "an even number"),
        (True, "an even number"),
        (-2, "an even number"),
        ({"replicates": 1, "scheme": "bootstrap"}, "a whole number"),
        ({"scheme": "jackknife"}, "'subsample' or 'bootstrap'"),
        ({"workers": -1}, "'workers'"),
        ({"expected_false": 0}, "'expected_false'"),
    ],
)
def test_bad_settings_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ConfidenceSettings(**given) if isinstance(given, dict) else ConfidenceSettings.of(given)


def test_a_bootstrap_has_no_bound_and_leaves_leave_one_out_alone() -> None:
    drawn = ConfidenceSettings(replicates=3, scheme="bootstrap")
    sure = diffan.discover(table(), "r2-sort", confidence=drawn, device="cpu").confidence
    assert sure is not None
    assert sure.threshold == 0.9
    assert np.isnan(sure.expected_false)
    with pytest.raises(InputError, match="repeated row's twin"):
        diffan.discover(table(), "r2-sort", edges="likelihood", confidence=drawn, device="cpu")
    with pytest.raises(InputError, match="20 rows or more"):
        diffan.discover(table(15), "r2-sort", confidence=4, device="cpu")


def test_replicates_go_the_way_of_the_whole_table() -> None:
    """Half of the rows may not be wide where the whole is; the recipe says which way was taken."""
    job = diffan_job()
    asked: list[bool | None] = []

    def seen(*args: Any, wide: bool | None = None, **options: Any) -> Any:
        asked.append(wide)
        return original(*args, wide=wide, **options)

    import diffan.recipe as recipe_module

    original = recipe_module.steps
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe_module, "steps", seen)
        replace(job, recipe=replace(job.recipe, wide=False)).run(0)
    assert asked == [False]
