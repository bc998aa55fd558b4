"""Rough treatment: full disks, interruptions, company, too little memory, and numbers at the edge."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import diffan
from diffan.checkpoint import Checkpoint
from diffan.errors import FitError, InputError
from diffan.files import write_text
from diffan.runfolder import load, save
from diffan.score.network import Network
from diffan.score.training import train
from diffan.settings import ScoreSettings
from diffan.streaming import read_table

TINY = ScoreSettings(width=16, depth=2, max_steps=60)
FAST: dict[str, Any] = {"width": 16, "depth": 1, "max_steps": 40, "device": "cpu"}


def frame(n: int = 80, d: int = 4, seed: int = 0) -> pd.DataFrame:
    dag = diffan.simulate.random_dag(d, d, graph="er", seed=seed)
    return diffan.simulate.sample_anm(dag, n, noise="gauss", seed=seed)


# ---- disks ------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from diffan.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
main(sys.argv[2:])
"""


@pytest.mark.parametrize("limit", [0, 100, 3000])
def test_a_full_disk_ends_in_one_sentence_and_leaves_nothing(limit: int, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "data.csv", index=False)
    asked = ["discover", "data.csv", "-o", "run", "--method", "r2-sort", "--quiet", "--checkpoint", "kept"]
    if limit:
        asked = asked[:-2]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *asked], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    left = {path.name for path in tmp_path.iterdir()} - {"kept"}
    assert left == {"data.csv"}
    if limit == 0:
        assert {path.name for path in (tmp_path / "kept").iterdir()} == {"lock"}


@pytest.mark.parametrize("fails_at", range(4))
def test_a_disk_that_fills_while_a_run_is_replaced_keeps_the_old_run(
    fails_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = diffan.discover(frame(), "random", seed=1)
    old.save(tmp_path / "run")
    write, count = Path.write_text, [0]

    def full(self: Path, *arguments: Any, **options: Any) -> int:
        count[0] += 1
        if count[0] > fails_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(InputError, match="No space left on device"):
            diffan.discover(frame(), "random", seed=2).save(tmp_path / "run")
    assert load(tmp_path / "run").seed == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_full_disk_while_a_large_table_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from diffan import shuffling

    def full(self: Any, rows: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shuffling.MapWriter, "write", full)
    np.save(tmp_path / "t.npy", frame().to_numpy())
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(InputError, match="No space left on device"):
            read_table(tmp_path / "t.npy", stream=True, cache=cache)
    assert list((tmp_path / "cache").iterdir()) == []


def test_folders_that_cannot_be_written_to(tmp_path: Path) -> None:
    result = diffan.discover(frame(), "random")
    for attempt in (
        lambda: result.save("/proc/diffan/run"),
        lambda: result.report("/proc/diffan/report.html"),
        lambda: write_text("/proc/x.txt", "x"),
        lambda: Checkpoint("/proc/diffan/checkpoint", {}),
        lambda: diffan.discover(frame(), "random", checkpoint="/dev/full"),
        lambda: result.save("/dev/full"),
    ):
        with pytest.raises(InputError):
            attempt()


def test_standard_output_may_be_full(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "data.csv", index=False)
    command = [sys.executable, "-m", "diffan", "version", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "diffan: cannot write to standard output: No space left on device\n"


# ---- interruptions ----------------------------------------------------------------------------

INTERRUPTED = """
import importlib, sys, time
from pathlib import Path
module, _, name = sys.argv[1].partition(":")
owner, names = importlib.import_module(module), name.split(".")
for part in names[:-1]:
    owner = getattr(owner, part)

def wait(*arguments, **options):
    Path(sys.argv[2]).touch()
    while True:
        time.sleep(0.01)

setattr(owner, names[-1], wait)
from diffan.cli import main
main(sys.argv[3:])
"""

MOMENTS = {
    "reading": "diffan.table:numeric_values",
    "training": "diffan.score.stepping:Stepper.step",
    "ordering": "diffan.ordering.diffan_order:topological_order",
    "refining": "diffan.likelihood.objective:Objective.prepare",
    "pruning": "diffan.finish:prune",
    "saving": "diffan.runfolder:_move_into_place",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_control_c_at_every_stage(moment: str, tmp_path: Path) -> None:
    frame(40).to_csv(tmp_path / "data.csv", index=False)
    quick = [f"--option={name}={value}" for name, value in FAST.items() if name != "device"]
    finish = [] if moment == "refining" else ["--refine", "none", "--edges", "additive"]
    asked = ["discover", "data.csv", "-o", "run", "--quiet", *quick, *finish]
    command = [sys.executable, "-c", INTERRUPTED, MOMENTS[moment], str(tmp_path / "flag"), *asked]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(6000):
            if (tmp_path / "flag").exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "diffan: interrupted; no result was written\n")
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "flag"}


# ---- company ----------------------------------------------------------------------------------

TWO_WRITERS = """
import sys
from diffan.runfolder import load, save
result = load(sys.argv[1])
for _ in range(int(sys.argv[3])):
    save(result, sys.argv[2])
"""


def test_two_processes_that_save_to_one_folder_do_not_mix(tmp_path: Path) -> None:
    for seed, columns in ((0, "ab"), (1, "cd")):
        data = pd.DataFrame(np.random.default_rng(seed).normal(size=(50, 2)), columns=list(columns))
        diffan.discover(data, "random", seed=seed).save(tmp_path / f"run{seed}")
    target = tmp_path / "both"
    writers = [
        subprocess.Popen([sys.executable, "-c", TWO_WRITERS, tmp_path / f"run{seed}", target, "60"])
        for seed in (0, 1)
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    names = list(load(target).names)
    assert names in (["a", "b"], ["c", "d"])
    assert (target / "adjacency.csv").read_text().splitlines()[0] == ",".join(["", *names])
    assert sorted((target / "order.txt").read_text().split()) == names
    assert {path.name for path in tmp_path.iterdir()} == {"run0", "run1", "both"}


# ---- too little memory ------------------------------------------------------------------------


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most_rows: int) -> list[int]:
    """A GPU that runs out when a network is given more rows than that with dropout, as in training."""
    forward, seen = Network.forward, list[int]()

    def limited(self: Network, inputs: torch.Tensor, dropout: Any = None) -> torch.Tensor:
        if dropout is not None:
            seen.append(inputs.shape[1])
            if inputs.shape[1] > most_rows:
                raise torch.cuda.OutOfMemoryError("out of memory")
        return forward(self, inputs, dropout)

    monkeypatch.setattr(Network, "forward", limited)
    return seen


@pytest.mark.parametrize("options", [{}, {"drop_columns": 0.3}, {"ensemble": 2}])
def test_training_goes_on_in_smaller_parts(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    settings = replace(TINY, **options)
    values = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    whole, losses = train(values, settings, np.random.default_rng(1), torch.device("cpu"))
    seen = short_of_memory(monkeypatch, 100)
    parts, lower = train(values, settings, np.random.default_rng(1), torch.device("cpu"))
    assert max(seen) > 100
    assert sum(rows > 100 for rows in seen) <= 3  # it learns what fits, and does not try again
    np.testing.assert_allclose(lower["validation"], losses["validation"], rtol=1e-3)
    for name, weights in whole.to_arrays().items():
        np.testing.assert_allclose(parts.to_arrays()[name], weights, atol=2e-2)


def test_what_fits_nowhere_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(monkeypatch, 0)
    with pytest.raises(FitError, match=r"does not fit into the GPU's memory even one row at a time"):
        train(np.zeros((50, 3)) + np.arange(50)[:, None], TINY, np.random.default_rng(0), torch.device("cpu"))


def test_derivatives_and_likelihoods_are_taken_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from diffan.likelihood import engine
    from diffan.ordering import curvature

    data = frame(120)
    given = {**FAST, "kernel_landmarks": (999,)}
    expected = diffan.discover(data, **given)
    tangents, solve = curvature._last_hidden_tangents, engine._exact

    def few_rows(model: Any, rows: torch.Tensor, *rest: Any) -> torch.Tensor:
        if len(rows) > 20:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return tangents(model, rows, *rest)

    def few_fits(fits: Any) -> Any:
        if len(fits) > 2:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return solve(fits)

    def no_fit(fits: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(curvature, "_last_hidden_tangents", few_rows)
    monkeypatch.setattr(engine, "_exact", few_fits)
    found = diffan.discover(data, **given)
    assert found.order == expected.order
    assert found.dag.edges == expected.dag.edges
    monkeypatch.setattr(engine, "_exact", no_fit)
    with pytest.raises(FitError, match="GPU's memory is not enough"):
        diffan.discover(data, **given)


# ---- numbers at the edge ----------------------------------------------------------------------


def stressed() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    base = frame(60, 4, seed=3).to_numpy()
    return {
        "tiny and huge units": base * [1e-12, 1e12, 1e-6, 1e6],
        "huge offsets": base + np.array([1e6, -1e6, 1e8, 0.0]),
        "heavy tails": rng.standard_cauchy(size=(60, 4)),
        "one monstrous cell": np.where(np.arange(240).reshape(60, 4) == 17, 1e30, base),
        "as many rows as columns": rng.normal(size=(12, 12)),
        "fewer rows than columns": rng.normal(size=(10, 14)),
        "every row five times": np.repeat(base[:12], 5, axis=0),
        "half precision": base.astype(np.float16),
        "whole numbers": np.round(10 * base).astype(np.int16),
        "nearly constant": base * [1, 1, 1, 1e-9] + [0, 0, 0, 1],
        "denormal": base * 1e-305,
    }


@pytest.mark.parametrize("method", ["diffan", "diffan-additive", "score", "cam", "nogam", "r2-sort"])
@pytest.mark.parametrize("kind", stressed())
def test_same_seed_same_answer_and_finite_everywhere(kind: str, method: str, tmp_path: Path) -> None:
    data = stressed()[kind]
    options: dict[str, Any] = dict(FAST) if method.startswith("diffan") else {"device": "cpu"}
    if method == "diffan":
        options |= {"null_fits": 20, "leaps": [3]}
    if method == "diffan-additive":
        options |= {"refine": False, "edges": "additive"}
    one, other = (diffan.discover(data, method.partition("-a")[0], seed=5, **options) for _ in range(2))
    assert one.order == other.order
    np.testing.assert_array_equal(one.evidence.p_values, other.evidence.p_values)
    assert np.isfinite(one.evidence.p_values).all()
    for values in one.evidence.measures.values():
        assert np.isfinite(values[one.evidence.tested]).all()
    for values in one.model.values():
        assert np.isfinite(values).all()
    assert one.dag.respects(one.order)
    if method == "diffan":
        save(one, tmp_path / "run")
        assert json.loads((tmp_path / "run" / "graph.json").read_text())["order"] == one.order


def test_units_of_any_size_give_the_same_graph() -> None:
    data = frame(100, 4, seed=3).to_numpy()
    for units in ([1e-12, 1e12, 1e-6, 1e6], [1e-150, 1e150, 1.0, 3.0]):
        one, other = (
            diffan.discover(x, refine=False, edges="additive", **FAST) for x in (data, data * units)
        )
        assert one.order == other.order
        assert set(one.dag.edges) == set(other.dag.edges)


def test_the_run_folder_is_private_to_no_one_and_whole(tmp_path: Path) -> None:
    diffan.discover(frame(), "random").save(tmp_path / "run")
    assert os.stat(tmp_path / "run").st_mode & 0o777 == 0o755
