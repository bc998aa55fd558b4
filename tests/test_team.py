"""Training shared by two processes: the single process's model, up to the order of additions."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import diffan
from diffan.errors import InputError
from diffan.runfolder import load
from diffan.score.team import ALONE, Team, joined, present_team

TOLERANCE = 1e-5  # on weights of size about 1; 6e-8 was measured


def test_shares_cover_every_row_once() -> None:
    for rows in (1, 2, 7, 256):
        for size in (1, 2, 3, 5):
            shares = [Team(rank, size).share(rows) for rank in range(size)]
            assert [row for first, last in shares for row in range(first, last)] == list(range(rows))


def test_without_torchrun_a_process_is_alone() -> None:
    assert present_team() is ALONE
    with pytest.raises(InputError, match="needs torchrun"), joined("cpu"):
        pass
    tensor = torch.ones(3)
    ALONE.add_up([tensor])
    assert tensor.tolist() == [1.0, 1.0, 1.0]


def test_two_gloo_processes_give_the_single_process_result(tmp_path: Path) -> None:
    dag = diffan.simulate.random_dag(4, 4, graph="er", seed=0)
    diffan.simulate.sample_anm(dag, 150, noise="gauss", seed=0).to_csv(tmp_path / "data.csv", index=False)
    quick = ["width=16", "depth=2", "max_steps=40", "batch_size=51"]
    asked = ["discover", "data.csv", "--refine", "none", "--edges", "additive", "--device", "cpu", "--quiet"]
    asked += [f"--option={pair}" for pair in quick]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    together = [*torchrun, "-m", "diffan", *asked, "-o", "together", "--distributed"]
    done = subprocess.run(together, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "diffan", *asked, "-o", "alone"], cwd=tmp_path, check=True)
    one, both = load(tmp_path / "alone"), load(tmp_path / "together")
    np.testing.assert_allclose(both.losses["validation"], one.losses["validation"], atol=TOLERANCE)
    for name, weights in one.model.items():
        np.testing.assert_allclose(both.model[name], weights, atol=TOLERANCE)
    assert both.order == one.order
    assert both.dag == one.dag
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "alone", "together"}
    assert json.loads((tmp_path / "together" / "graph.json").read_text())["n_samples"] == 150


IN_PAIRS = """
import sys
import diffan
from diffan.errors import InputError
from diffan.score.stepping import Stepper
from diffan.score.team import joined

class Stopped(BaseException): pass

options = dict(refine=False, edges="additive", device="cpu", width=16, depth=2, max_steps=60, batch_size=51)
kept = dict(checkpoint="c", checkpoint_every=0)
step, count = Stepper.step, [0]

def step_and_stop(self):
    count[0] += 1
    if count[0] == 47:
        raise Stopped
    step(self)

with joined("cpu") as (_, leads):
    whole = diffan.discover("data.csv", **options)
    Stepper.step = step_and_stop
    try:
        diffan.discover("data.csv", **options, **kept)
    except Stopped:
        Stepper.step, count[0] = step, -1
    resumed = diffan.discover("data.csv", **options, **kept)
    assert count[0] == -1, "it was not cut off"
    try:
        diffan.discover("data.csv", seed=1, **options, **kept)
        raise SystemExit("another seed was not refused")
    except InputError as error:
        sys.stderr.write(str(error))
    if leads:
        whole.save("whole")
        resumed.save("resumed")
"""


def test_two_processes_share_a_checkpoint_and_end_the_same(tmp_path: Path) -> None:
    """Cut off in the middle of their training, a pair goes on to the bytes of an undisturbed one."""
    dag = diffan.simulate.random_dag(4, 4, graph="er", seed=0)
    data = diffan.simulate.sample_anm(dag, 150, noise="gauss", seed=0)
    data.to_csv(tmp_path / "data.csv", index=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "t"}
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", IN_PAIRS],
            cwd=tmp_path,
            env={**os.environ, **shared, "RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    for process in pair:  # both are refused, and neither waits for the other
        _, sentence = process.communicate()
        assert process.returncode == 0, sentence
        assert "seed was 0 and is 1" in sentence
    for name in ("adjacency.csv", "order.txt", "model.safetensors", "inspection.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    options = {"width": 16, "depth": 2, "max_steps": 60, "batch_size": 51, "device": "cpu"}
    with pytest.raises(InputError, match="processes was 2 and is None"):
        diffan.discover(
            tmp_path / "data.csv", refine=False, edges="additive", checkpoint=tmp_path / "c", **options
        )
