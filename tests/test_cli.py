"""The command line as a user meets it: real files, real exit codes, one sentence on standard error."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from diffan.cli import main
from diffan.runfolder import load


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    code, out, _ = call(
        capsys, "simulate", "-o", tmp_path / "sim", "--nodes", 6, "--samples", 200, "--seed", 1
    )
    assert code == 0
    assert "6 variables, 6 edges, 200 rows" in out
    return tmp_path / "sim"


def test_simulate_discover_evaluate(simulated: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    code, out, err = call(capsys, "discover", simulated / "data.csv", "-o", run, "--method", "r2-sort")
    assert (code, err) == (0, "")
    assert "r2-sort: 6 variables, 200 rows" in out
    assert {p.name for p in run.iterdir()} >= {"graph.json", "adjacency.csv", "order.txt", "report.html"}
    code, out, _ = call(capsys, "evaluate", "--truth", simulated / "truth.csv", run, "--json")
    scores = json.loads(out)
    assert code == 0
    assert {"shd", "sid", "order_divergence", "f1"} <= scores.keys()
    code, out, _ = call(capsys, "evaluate", "--truth", simulated / "truth.csv", run)
    assert "shd" in out
    assert str(scores["shd"]) in out
    code, out, _ = call(
        capsys, "evaluate", "--truth", simulated / "truth.csv", simulated / "truth.csv", "--json"
    )
    assert json.loads(out)["shd"] == 0


def test_json_and_quiet(simulated: Path, tmp_path: Path, capsys) -> None:
    data = simulated / "data.csv"
    code, out, _ = call(capsys, "discover", data, "-o", tmp_path / "a", "--method", "random", "--json")
    assert code == 0
    assert sorted(json.loads(out)["order"]) == sorted(pd.read_csv(data).columns)
    code, out, _ = call(capsys, "discover", data, "-o", tmp_path / "b", "--method", "random", "--quiet")
    assert (code, out) == (0, "")
    assert (tmp_path / "b" / "inspection.json").is_file()
    code, *_ = call(
        capsys, "discover", data, "-o", tmp_path / "b", "--method", "random", "-q", "--no-inspect"
    )
    assert (code, (tmp_path / "b" / "inspection.json").exists()) == (0, False)


def test_options_reach_the_method(simulated: Path, tmp_path: Path, capsys) -> None:
    data = simulated / "data.csv"
    common = ["discover", data, "-o", tmp_path / "a", "--method", "random", "--quiet"]
    assert call(capsys, *common, "--option", "n_basis=6", "--cutoff", 0.2)[0] == 0
    settings = json.loads((tmp_path / "a" / "graph.json").read_text())["settings"]
    assert (settings["n_basis"], settings["cutoff"]) == (6, 0.2)
    code, _, err = call(capsys, *common, "--option", "n_bassis=6")
    assert code == 2
    assert "has no option 'n_bassis'; did you mean 'n_basis'?" in err
    code, _, err = call(capsys, *common, "--option", "n_basis")
    assert (code, "name=value" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["discover", "absent.csv", "-o", "x"], "No file at 'absent.csv'"),
        (["discover", "words.csv", "-o", "x"], "Every column must hold numbers"),
        (["discover", "words.csv", "-o", "x", "--method", "magic"], "magic"),
        (["discover", "words.csv"], "output"),
        (["discover", "words.csv", "-o", "x", "--sed", "1"], "--sed"),
        (["evaluate", "words.csv", "--truth", "absent.csv"], "No graph at 'absent.csv'"),
        (["simulate", "-o", "x", "--nodes", "5", "--edges", "99"], "10"),
    ],
)
def test_bad_input_ends_with_code_2_and_one_sentence(
    arguments, sentence: str, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.csv").write_text("a,b\n" + "x,1\ny,2\n" * 10)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("diffan: ")
    assert len(err.strip().splitlines()) == 1
    assert not Path("x").exists()


def test_help_is_enough(capsys) -> None:
    code, out, _ = call(capsys, "discover", "--help")
    assert code == 0
    for word in (
        "--method",
        "--variant",
        "--seed",
        "--cutoff",
        "--missing",
        "--transform",
        "report.html",
        "Example",
    ):
        assert word in out
    assert "discover" in call(capsys, "--help")[1]


def test_version(capsys) -> None:
    code, out, _ = call(capsys, "version", "--json")
    assert code == 0
    assert {"diffan", "python", "torch"} <= json.loads(out).keys()


INTERRUPTED = """
import sys
from pathlib import Path
from diffan.cli import main
from diffan.runfolder import load
from diffan.score.stepping import Stepper

step = Stepper.step

def flagged(self):
    Path(sys.argv[1]).touch()
    step(self)

Stepper.step = flagged
main(sys.argv[2:])
"""


def test_interrupting_leaves_nothing_half_written(simulated: Path, tmp_path: Path) -> None:
    flag, run = tmp_path / "training", tmp_path / "run"
    endless = ["--option", "max_steps=1000000", "--option", "patience=1000000", "--device", "cpu"]
    arguments = [str(flag), "discover", str(simulated / "data.csv"), "-o", str(run), *endless]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments], stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if flag.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == "diffan: interrupted; no result was written\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sim", "training"]


def test_knowledge_confidence_and_adjustment_reach_the_run(simulated: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "tiers.toml").write_text('tiers = [["x3"], ["x0", "x1"]]')
    (tmp_path / "known.txt").write_text("root x2\n")
    known = ["--tiers", tmp_path / "tiers.toml", "--knowledge", tmp_path / "known.txt"]
    known += [
        "--require",
        "x1->x0",
        "--forbid",
        "x1 -> x4",
        "--ancestor",
        "x3->x5",
        "--not-ancestor",
        "x0->x4",
    ]
    more = ["--confidence", 4, "--adjust", "holm", "--cutoff", 0.9]
    command = ["discover", simulated / "data.csv", "-o", tmp_path / "run", "--method", "r2-sort"]
    code, out, _ = call(capsys, *command, *known, *more)
    assert code == 0
    assert "required" in out
    assert "confidence: 4 replicates" in out
    assert "consensus: " in out
    result = load(tmp_path / "run")
    assert result.knowledge.roots == ("x2",)
    assert ("x1", "x0") in result.dag.edges
    assert ("x1", "x4") not in result.dag.edges
    assert "x3" in result.dag.ancestors("x5")
    assert "x0" not in result.dag.ancestors("x4")
    assert result.order.index("x3") < result.order.index("x0")
    assert result.confidence.frequency[1, 0] == 1.0
    assert result.evidence.judged_by == "p_holm"
    assert len(list((tmp_path / "run" / "replicates").iterdir())) == 4
    code, out, _ = call(capsys, *command, *known, *more, "--json")
    told = json.loads(out)
    assert told["confidence"]["n_replicates"] == 4
    assert told["knowledge"]["required"] == [["x1", "x0"]]
    assert all("frequency" in edge for edge in told["edges"])


def test_knowledge_that_clashes_or_lacks_tiers_is_one_sentence(
    simulated: Path, tmp_path: Path, capsys
) -> None:
    command = ["discover", simulated / "data.csv", "-o", tmp_path / "run"]
    (tmp_path / "tiers.toml").write_text('roots = ["x0"]')
    code, _, err = call(capsys, *command, "--tiers", tmp_path / "tiers.toml")
    assert code == 2
    assert "lists no tiers" in err
    code, _, err = call(capsys, *command, "--require", "x0->x1", "--require", "x1->x0")
    assert code == 2
    assert "'x0' -> 'x1' is required; 'x1' -> 'x0' is required" in err
    assert not (tmp_path / "run").exists()
