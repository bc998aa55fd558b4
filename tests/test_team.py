"""Training shared by two processes: the single process's model, up to the order of additions."""

from __future__ import annotations

import json
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
