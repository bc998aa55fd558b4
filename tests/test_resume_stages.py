"""Every stage that can take long leaves its progress: cut off after any of its saves, a run ends as if it had not been."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import diffan
from diffan.checkpoint import Checkpoint, StageFiles
from diffan.keeping import Tagged

NET: dict[str, Any] = {"width": 16, "depth": 2, "max_steps": 40, "batch_size": 60, "device": "cpu"}
LOCAL: dict[str, Any] = {"variant": "local", "local_width": 8, "local_steps": 80, "device": "cpu"}
ADDITIVE: dict[str, Any] = {"refine": False, "edges": "additive"}


# From a random order there is much to mend, and with so few first rows there are two passes.
KERNEL: dict[str, Any] = {"method": "random", "refine": "kernel", "edges": "likelihood", "device": "cpu"}
KERNEL |= {"first_rows": 60, "seed": 1}


class Stopped(BaseException):
    """Stands for a process that ends here."""


def table(n: int = 150, d: int = 5) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(d, d, graph="er", seed=3)
    return diffan.simulate.sample_anm(dag, n, noise="laplace", seed=3)


def misfitting(n: int = 150, d: int = 6) -> pd.DataFrame:
    """A table that no additive noise explains, so that moves and edges have to pay for it."""
    return diffan.simulate.simulate_gene_network(d, d, n, seed=2)[0]


Stop = Callable[[StageFiles, int], bool]
"""(the stage that is being saved, how many saves this process has made) -> whether it ends here."""


def cut_off(patch: pytest.MonkeyPatch, stop: Stop, *, before: bool) -> None:
    """Let the process end just before or just after a save."""
    save, count = StageFiles.save, [0]

    def save_and_stop(self: StageFiles, record: Any, arrays: Any) -> None:
        count[0] += 1
        ends = stop(self, count[0])
        if ends and before:
            raise Stopped
        save(self, record, arrays)
        if ends:
            raise Stopped

    patch.setattr(StageFiles, "save", save_and_stop)


def finished_in_pieces(
    data: pd.DataFrame, folder: Path, every: int, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[diffan.Discovery, int]:
    """Started again and again, each process ending at its `every`-th save, until one comes through."""
    for cuts in range(200):
        with monkeypatch.context() as patch:
            # Alternately before and after the save; never before the first, or nothing would ever be done.
            cut_off(patch, lambda _, count: count == every, before=cuts % 2 == 1 and every > 1)
            try:
                return diffan.discover(data, checkpoint=folder, checkpoint_every=0, **options), cuts
            except Stopped:
                pass
    raise AssertionError("it never came through")


def assert_same(one: diffan.Discovery, other: diffan.Discovery) -> None:
    assert one.order == other.order
    assert json.dumps(one.losses) == json.dumps(other.losses)
    assert one.warnings == other.warnings
    assert one.screened == other.screened
    assert one.model.keys() == other.model.keys()
    for name, values in one.model.items():
        np.testing.assert_array_equal(values, other.model[name])
    np.testing.assert_array_equal(one.leaf_evidence, other.leaf_evidence)
    for name in ("p_values", "tested", "chosen"):
        np.testing.assert_array_equal(getattr(one.evidence, name), getattr(other.evidence, name))


@pytest.mark.parametrize(
    ("every", "least", "options"),
    [
        (1, 10, {**LOCAL, **ADDITIVE}),
        (7, 4, {**LOCAL, **ADDITIVE, "local_dropout": 0.3, "local_batch": 32, "local_patience": 40}),
        (3, 3, {**NET, **ADDITIVE, "variant": "greedy", "greedy_steps": 20}),
        (1, 6, {**NET, **ADDITIVE, "variant": "deciduous"}),
        (1, 8, {**NET, **ADDITIVE, "refit": True, "check_every": 10}),
        (1, 6, KERNEL),
        (2, 2, {**LOCAL, "refine": "additive", "edges": "likelihood"}),
    ],
    ids=["local", "local, noisy", "greedy", "deciduous", "refit", "kernel", "local, finished by likelihood"],
)
def test_in_pieces_or_in_one_go_it_ends_the_same(
    every: int, least: int, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = diffan.discover(table(), inspect=False, **options)
    pieces, cuts = finished_in_pieces(table(), tmp_path / "c", every, monkeypatch, inspect=False, **options)
    assert cuts >= least, cuts
    assert_same(whole, pieces)


def test_what_a_wrong_model_costs_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {**KERNEL, "inspect": False}
    whole = diffan.discover(misfitting(), **options)
    assert any("nats of evidence instead of" in sentence for sentence in whole.warnings)
    pieces, cuts = finished_in_pieces(misfitting(), tmp_path / "c", 1, monkeypatch, **options)
    assert cuts >= 4
    assert_same(whole, pieces)


def test_a_second_attempt_at_local_training_goes_on_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt leaves the numbers; cut off in the second, the run does not go back to the first."""
    from diffan.score.local_stepping import LocalStepper

    mean_loss, options = LocalStepper.mean_loss, {**LOCAL, **ADDITIVE, "local_rate": 0.01, "inspect": False}
    first_attempts: list[LocalStepper] = []

    def diverging(self: LocalStepper) -> float:
        if self._rate == 0.01:
            first_attempts.append(self)
            return float("nan")
        return mean_loss(self)

    monkeypatch.setattr(LocalStepper, "mean_loss", diverging)
    whole = diffan.discover(table(), **options)
    assert len(first_attempts) == 1
    pieces, cuts = finished_in_pieces(table(), tmp_path / "c", 3, monkeypatch, **options)
    assert cuts >= 3
    assert_same(whole, pieces)
    assert len(first_attempts) == 2


def test_the_refinement_is_kept_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both passes leave their sweeps, and what follows is not fitted again."""
    seen: list[tuple[int, int]] = []
    save = StageFiles.save

    def watched(self: StageFiles, record: Any, arrays: Any) -> None:
        if record.get("phase") == "sweeping":
            seen.append((record["pass"], len(arrays["trace"])))
        save(self, record, arrays)

    monkeypatch.setattr(StageFiles, "save", watched)
    diffan.discover(table(), checkpoint=tmp_path, checkpoint_every=0, inspect=False, **KERNEL)
    assert {number for number, _ in seen} == {0, 1}
    assert seen[0] == (0, 0)  # parents found, nothing moved
    assert max(length for _, length in seen) > 1  # a sweep that moved something


def test_damage_falls_back_by_one_leaf_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**NET, **ADDITIVE, "variant": "greedy", "greedy_steps": 20, "inspect": False}
    whole = diffan.discover(table(), **options)
    with monkeypatch.context() as patch:
        cut_off(patch, lambda stage, _: stage._name == "leaves" and _third(tmp_path), before=False)
        with pytest.raises(Stopped):
            diffan.discover(table(), checkpoint=tmp_path, checkpoint_every=0, **options)
    newest = max(tmp_path.glob("leaves.*.json"), key=lambda file: json.loads(file.read_text())["number"])
    newest.write_bytes(newest.read_bytes()[:-30])
    retrained: list[int] = []
    train = diffan.score.training.train

    def counted(*arguments: Any, **named: Any) -> Any:
        retrained.append(len(named.get("columns") or ()))
        return train(*arguments, **named)

    monkeypatch.setattr("diffan.ordering.retraining.train", counted)
    resumed = diffan.discover(table(), checkpoint=tmp_path, checkpoint_every=0, **options)
    assert_same(whole, resumed)
    assert retrained == [3, 2]  # of five columns: the leaf of all and that of four are known


def _third(folder: Path) -> bool:
    """Whether two generations of leaves are there already."""
    return len(list(folder.glob("leaves.*.json"))) == 2


def test_a_shared_place_shows_each_work_its_own(tmp_path: Path) -> None:
    with Checkpoint(tmp_path, {}) as checkpoint:
        place = checkpoint.stage("retrain")
        one, two = Tagged(place, [0, 1]), Tagged(place, [0])
        one.save({"k": 1}, {"a": np.zeros(1)})
        assert two.load() is None
        saved = one.load()
        assert saved is not None
        assert saved.record["k"] == 1
        two.save({"k": 2}, {"a": np.zeros(1)})
        assert one.load() is None


def test_a_checkpoint_keeps_the_replicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is run once, and one whose file was damaged is run again."""
    from diffan.replicates import Job

    options = {**NET, **ADDITIVE, "confidence": 4, "inspect": False}
    whole = diffan.discover(table(), **options)
    run, ran = Job.run, list[int]()

    def run_and_stop(self: Job, index: int) -> Any:
        ran.append(index)
        if len(ran) == 3:
            raise Stopped
        return run(self, index)

    monkeypatch.setattr(Job, "run", run_and_stop)
    with pytest.raises(Stopped):
        diffan.discover(table(), checkpoint=tmp_path / "c", **options)
    files = sorted((tmp_path / "c" / "replicates").glob("*.json"))
    assert len(files) == 2
    content = json.loads(files[0].read_text())
    content["order"] = content["order"][::-1]  # whole JSON, but not what was written
    content["edges"] = []
    files[0].write_text(json.dumps(content))
    resumed = diffan.discover(table(), checkpoint=tmp_path / "c", **options)
    assert_same(whole, resumed)
    assert whole.confidence is not None
    assert resumed.confidence is not None
    np.testing.assert_array_equal(resumed.confidence.frequency, whole.confidence.frequency)
    assert len(ran) == 3 + 3
