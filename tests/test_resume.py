"""A run that is cut off and started again ends as if nothing had happened; another run's checkpoint is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import diffan
from diffan.checkpoint import Checkpoint, checksum, read_record
from diffan.errors import InputError

FAST: dict[str, Any] = {"width": 24, "depth": 2, "max_steps": 120, "device": "cpu", "batch_size": 60}
FILES = ("adjacency.csv", "order.txt", "graph.graphml", "graph.dot", "model.safetensors", "inspection.json")


def table(seed: int = 0, n: int = 120, d: int = 4) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(d, d, graph="er", seed=seed)
    return diffan.simulate.sample_anm(dag, n, noise="laplace", seed=seed)


def bytes_of(run: Path) -> dict[str, Any]:
    """Everything a run folder says, but for how long it took."""
    facts: dict[str, Any] = {name: (run / name).read_bytes() for name in FILES}
    graph = json.loads((run / "graph.json").read_text())
    del graph["timings"]
    return facts | {"graph.json": json.dumps(graph)}


def command(data: Path, out: Path, checkpoint: Path, options: dict[str, Any]) -> list[str]:
    named = {"variant", "device", "confidence"}  # options of the command line; the others are settings
    asked = ["discover", str(data), "-o", str(out), "--quiet"]
    asked += [f"--{name}={value}" for name, value in options.items() if name in named]
    asked += [f"--option={name}={value}" for name, value in options.items() if name not in named]
    asked += ["--checkpoint", str(checkpoint), "--checkpoint-every", "0"]
    return [sys.executable, "-m", "diffan", *asked]


def killed_after(seconds: float, arguments: list[str], sign: Path) -> bool:
    """Start, wait for the file and that long after it, SIGKILL; whether it was still running."""
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not sign.exists():
            time.sleep(0.005)
        try:
            process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True


KILLS = int(os.environ.get("DIFFAN_KILLS", "1"))
LOCAL: dict[str, Any] = {"variant": "local", "device": "cpu", "local_width": 16, "local_steps": 200}
KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {  # options, and the files after which it is killed
    "default": (FAST, ["lock", "train.a.json", "leaves.a.json", "order.a.json", "refine.a.json"]),
    "local": (LOCAL, ["lock", "screen.a.json", "train.a.json", "leaves.a.json"]),
    "greedy": (
        {**FAST, "variant": "greedy", "greedy_steps": 100},
        ["train.a.json", "leaves.a.json", "retrain.a.json", "retrain.b.json"],
    ),
    "confidence": ({**FAST, "confidence": 6}, ["train.a.json", "edges.a.json", "replicates"]),
}


@pytest.mark.parametrize("kind", KINDS if "DIFFAN_KILLS" in os.environ else ["local", "confidence"])
def test_killed_at_random_moments_it_ends_with_the_same_bytes(kind: str, tmp_path: Path) -> None:
    """DIFFAN_KILLS=20 in the environment gives a longer trial of the same: that many kills of each kind."""
    options, signs = KINDS[kind]
    data = tmp_path / "data.csv"
    table().to_csv(data, index=False, float_format="%.17g")
    diffan.discover(table(), **options).save(tmp_path / "whole")
    expected = bytes_of(tmp_path / "whole")
    lot, kills, reached = random.Random(kind), 0, list[str]()
    longest, trial = 0.6, 0
    while kills < KILLS:
        trial += 1
        out, checkpoint = tmp_path / f"run{trial}", tmp_path / f"checkpoint{trial}"
        for sign in lot.choices(signs, k=min(2, KILLS)):
            if killed_after(
                lot.uniform(0, longest), command(data, out, checkpoint, options), checkpoint / sign
            ):
                kills += 1
                reached += sorted({file.name.partition(".")[0] for file in checkpoint.iterdir()})
            else:
                longest *= 0.8  # it was done before: be quicker
        subprocess.run(command(data, out, checkpoint, options), check=True)
        assert bytes_of(out) == expected
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(f".run{trial}")] == []
    counts = {name: reached.count(name) for name in sorted(set(reached))}
    sys.stdout.write(f"{kind}: {kills} kills in {trial} runs; checkpoints found after them: {counts}\n")
    assert reached


class Stopped(BaseException):
    """Stands for a process that ends here."""


STAGES = ("train", "leaves", "order", "refine", "edges")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_cut_off_at_every_stage_boundary(
    stage: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, Any]
) -> None:
    """Cut off just before or just after a stage's result is saved, in whatever generation."""
    from diffan.checkpoint import StageFiles

    save = StageFiles.save

    def save_and_stop(self: Any, record: Any, arrays: Any) -> None:
        last = self._name == stage and record.get("phase") in (None, "done")
        if last and moment == "before":
            raise Stopped
        save(self, record, arrays)
        if last:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(StageFiles, "save", save_and_stop)
        with pytest.raises(Stopped):
            diffan.discover(table(), checkpoint=tmp_path / "c", checkpoint_every=0, **FAST)
    result = diffan.discover(table(), checkpoint=tmp_path / "c", checkpoint_every=0, **FAST)
    result.save(tmp_path / "run")
    assert bytes_of(tmp_path / "run") == expected


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    diffan.discover(table(), **FAST).save(folder)
    return bytes_of(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"ensemble": 2, "holdout_split": "folds", "refit": True},
        {"cosine": True, "batch_size": None, "drop_columns": 0.2},
        {"variant": "deciduous"},
        {"variant": "greedy", "greedy_steps": 20},
        {"stream": True},
    ],
)
def test_training_of_every_kind_goes_on_from_the_middle(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffan.score.stepping import Stepper

    given = {**FAST, "refine": False, "edges": "additive", **options}
    given = {name: value for name, value in given.items() if value is not None}
    data = table().to_numpy()
    whole = diffan.discover(data, **given)
    step, count = Stepper.step, [0]

    def step_and_stop(self: Stepper) -> None:
        count[0] += 1
        if count[0] == 107:
            raise Stopped
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "step", step_and_stop)
        with pytest.raises(Stopped):
            diffan.discover(data, checkpoint=tmp_path / "c", checkpoint_every=0, **given)
    assert (tmp_path / "c" / "train.a.json").exists()
    resumed = diffan.discover(data, checkpoint=tmp_path / "c", checkpoint_every=0, **given)
    assert resumed.order == whole.order
    np.testing.assert_array_equal(resumed.evidence.p_values, whole.evidence.p_values)
    assert resumed.losses["validation"] == whole.losses["validation"]
    for name, values in whole.model.items():
        np.testing.assert_array_equal(resumed.model[name], values)


# ---- other runs, damage, company ------------------------------------------------------------


def quick(folder: Path, data: pd.DataFrame | None = None, **options: Any) -> diffan.Discovery:
    data = table() if data is None else data
    return diffan.discover(data, "random", checkpoint=folder, **options)


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    quick(tmp_path / "c")
    quick(tmp_path / "c", table()[["x3", "x0", "x1", "x2"]])  # the same table
    for options, sentence in (
        ({"data": table(1)}, "belongs to other data"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"n_basis": 6}, "n_basis was 10 and is 6"),
        ({"cutoff": 0.2}, "cutoff was 0.001 and is 0.2"),
    ):
        with pytest.raises(InputError, match=sentence):
            quick(tmp_path / "c", **options)
    with pytest.raises(InputError, match="method was 'random' and is 'r2-sort'"):
        diffan.discover(table(), "r2-sort", checkpoint=tmp_path / "c")


def test_a_damaged_generation_falls_back_to_the_one_before(tmp_path: Path) -> None:
    with Checkpoint(tmp_path, {"table": "t"}, every=0) as checkpoint:
        stage = checkpoint.stage("train")
        for k in range(1, 6):
            stage.save({"k": k}, {"a": np.full(3, k)})
    files = sorted(tmp_path.glob("train.*"))
    assert [file.name for file in files] == [
        "train.a.json",
        "train.a.safetensors",
        "train.b.json",
        "train.b.safetensors",
    ]
    for newest in ("a", "b"):
        for ending in ("json", "safetensors"):
            for damage in ("cut", "flip", "gone", "empty", "folder"):
                spoilt = tmp_path / damage / ending / newest
                shutil.copytree(
                    tmp_path, spoilt, ignore=shutil.ignore_patterns("cut", "flip", "gone", "empty", "folder")
                )
                _damage(spoilt / f"train.{newest}.{ending}", damage)
                with Checkpoint(spoilt, {"table": "t"}) as checkpoint:
                    saved = checkpoint.stage("train").load()
                assert saved is not None
                assert saved.record == {"k": 4 if newest == "a" else 5}, (newest, ending, damage)
                np.testing.assert_array_equal(saved.arrays["a"], np.full(3, saved.record["k"]))
    with Checkpoint(tmp_path, {"table": "t"}) as checkpoint:
        for file in tmp_path.glob("train.*"):
            file.write_bytes(b"")
        assert checkpoint.stage("train").load() is None


def _damage(file: Path, kind: str) -> None:
    content = bytearray(file.read_bytes())
    if kind == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif kind == "flip":
        content[len(content) // 2] ^= 0x10
        file.write_bytes(content)
    elif kind == "gone":
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        file.mkdir()


def test_a_run_whose_newest_checkpoints_are_damaged_still_ends_the_same(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    diffan.discover(table(), checkpoint=tmp_path / "c", checkpoint_every=0, **FAST)
    for name in ("edges.a.json", "refine.a.safetensors", "order.a.json", "train.a.json"):
        file = tmp_path / "c" / name
        file.write_bytes(file.read_bytes()[:-20])
    diffan.discover(table(), checkpoint=tmp_path / "c", checkpoint_every=0, **FAST).save(tmp_path / "run")
    assert bytes_of(tmp_path / "run") == expected


def test_two_processes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    with Checkpoint(tmp_path, {}), pytest.raises(InputError, match="Another process is using the checkpoint"):
        Checkpoint(tmp_path, {})
    Checkpoint(tmp_path, {}).close()  # and afterwards it is free again


def test_what_a_killed_process_was_writing_is_swept_away(tmp_path: Path) -> None:
    with Checkpoint(tmp_path, {}) as checkpoint:
        checkpoint.stage("order").save({}, {"a": np.zeros(1)})
    half = [tmp_path / ".order.b.json.abcd1234", tmp_path / ".train.a.safetensors.x"]
    others = [tmp_path / ".hidden", tmp_path / "notes.txt"]
    for file in [*half, *others]:
        file.write_text("x")
    with Checkpoint(tmp_path, {}) as checkpoint:
        assert checkpoint.stage("order").load() is not None
    assert [file.exists() for file in [*half, *others]] == [False, False, True, True]


def test_a_newer_checkpoint_and_a_file_in_its_place_are_refused(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "c", {}) as checkpoint:
        checkpoint.stage("order").save({}, {"a": np.zeros(1)})
    file = tmp_path / "c" / "order.a.json"
    content = read_record(file)
    assert content is not None
    content["schema"] = 99
    file.write_text(json.dumps(content | {"checksum": checksum(content)}))
    with pytest.raises(InputError, match="newer diffan"):
        Checkpoint(tmp_path / "c", {})
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="A checkpoint is a folder"):
        Checkpoint(tmp_path / "file", {})
    with pytest.raises(InputError, match="seconds, 0 or more"):
        Checkpoint(tmp_path / "d", {}, every=-1.0)


def test_what_edges_were_judged_by_is_kept(tmp_path: Path) -> None:
    options = FAST | {"edges": "additive", "refine": False, "adjust": "holm", "checkpoint": tmp_path}
    first = diffan.discover(table(), **options)
    again = diffan.discover(table(), **options)
    assert first.evidence.judged_by == again.evidence.judged_by == "p_holm"
    assert again.at_cutoff(0.5).dag.edges == first.at_cutoff(0.5).dag.edges
