"""The paper's studies in a small version: the sweep runner, the packed cells and the report made of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diffan.dag import Dag

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare  # noqa: E402
import run  # noqa: E402
from studies import STUDIES  # noqa: E402
from sweep import bits, data, store  # noqa: E402
from sweep.cell import Cell, run_cell  # noqa: E402
from sweep.importing import import_records  # noqa: E402
from sweep.page import Comparison, Notes, Published, Section  # noqa: E402
from sweep.printed import _with_residue  # noqa: E402
from sweep.results import Results, Summary  # noqa: E402

LATER = ("local", "local-default")  # contenders that may not exist yet


@pytest.fixture(scope="module", autouse=True)
def stand_in_for_sachs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A small table in Sachs' place: the real one is not part of the repository."""
    folder = tmp_path_factory.mktemp("data")
    names = [f"p{index}" for index in range(11)]
    values = np.random.default_rng(0).normal(size=(80, 11)).cumsum(axis=1)
    truth = np.eye(11, k=1, dtype=int)
    (folder / "sachs").mkdir()
    rows = [",".join(names), *(",".join(f"{value:.4f}" for value in row) for row in values)]
    (folder / "sachs/data.csv").write_text("\n".join(rows) + "\n")
    rows = ["," + ",".join(names)]
    rows += [f"{name}," + ",".join(map(str, row)) for name, row in zip(names, truth, strict=True)]
    (folder / "sachs/truth.csv").write_text("\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIFFAN_DATA", str(folder))
        yield


def cheap(number: int = 4) -> list[Cell]:
    """Cells of a few hundredths of a second."""
    sets = data.paper_sets(
        range(number), nodes=4, samples=50, scales=[0], kinds=[("er", 1)], noises=["gauss"]
    )
    return [Cell(spec, "var-sort") for spec in sets]


# ---- the small version of every study ---------------------------------------------------


def test_every_study_runs_in_small_and_is_reported(tmp_path: Path) -> None:
    counts = run.sweep(run.planned(list(STUDIES), "small", None, "all"), tmp_path)
    assert counts["left"] == 0
    records = {record["key"]: record for record in store.read_cells(tmp_path)}
    for study in STUDIES.values():
        check_study(study.cells("small"), records)
    check_graphs(next(r for r in records.values() if r["settings"]["method"] == "true-order"))
    check_packing(list(records.values()), tmp_path)
    text = compare.page(Results(list(records.values())), tmp_path / "figures")
    assert text.count("\n## ") >= len(STUDIES)
    assert ("Cells that failed" in text) == any(r["status"] == "failed" for r in records.values())


def check_study(cells: list[Cell], records: dict[str, Any]) -> None:
    assert cells
    for cell in cells:
        record = records[cell.key]
        if cell.method not in LATER:
            assert record["status"] == "done", record["error"]
            assert record["memory"]["rss"] > 0
            assert {"code", "processor", "versions"} <= set(record["machine"])


def check_graphs(record: dict[str, Any]) -> None:
    result = record["result"]
    graphs = [bits.from_text(result[key], result["nodes"]) for key in ("truth", "graph")]
    assert np.array_equal(graphs[0], data.draw(record["settings"]["data"])[1].adjacency)
    assert result["order_divergence"] == 0
    assert result["shd"] == int((graphs[0] != graphs[1]).sum())


def check_packing(records: list[dict[str, Any]], folder: Path) -> None:
    """Packed cells come back as they were, but for the ends of long errors."""
    size = store.pack(records, folder / "packed.jsonl")
    assert size < sum(file.stat().st_size for file in folder.glob("*.json")) / 2
    back = {record["key"]: record for record in store.unpack(folder / "packed.jsonl")}
    for record in records:
        if record["status"] == "done":
            assert back[record["key"]] == record
        else:
            assert record["error"].startswith(back[record["key"]]["error"])


def test_full_studies_name_each_cell_once_and_begin_with_the_first_rank() -> None:
    cells = run.planned(list(STUDIES), "full", None, "all")
    assert len({cell.key for cell in cells}) == len(cells)
    assert [cell.rank for cell in cells] == sorted(cell.rank for cell in cells)
    assert {cell.method for cell in cells if cell.data["set"] == "sachs"} >= {
        "diffan",
        "cam",
        "score",
        "gran-dag",
    }
    seeds = {cell.data["seed"] for cell in cells if "seed" in cell.data}
    assert min(seeds) >= data.EVALUATION
    lanes = [run.planned(list(STUDIES), "full", None, lane) for lane in ("cpu", "gpu")]
    assert sum(map(len, lanes)) == len(cells)


# ---- stopping and going on ---------------------------------------------------------------


def test_a_finished_sweep_is_not_computed_again(tmp_path: Path) -> None:
    assert run.sweep(cheap(), tmp_path)["done"] == 4
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert run.sweep(cheap(5), tmp_path)["kept"] == 4
    after = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(after) == 5
    assert before.items() <= after.items()


def test_a_failure_is_recorded_and_tried_again_only_when_asked(tmp_path: Path) -> None:
    wrong = Cell(cheap()[0].data, "var-sort", options={"no_such_option": 1})
    cells = [wrong, *cheap(2)]
    assert dict(run.sweep(cells, tmp_path)) == {"kept": 0, "failed": 1, "done": 2, "left": 0}
    assert "no_such_option" in json.loads((tmp_path / f"{wrong.key}.json").read_text())["error"]
    assert run.sweep(cells, tmp_path)["kept"] == 3
    assert dict(run.sweep(cells, tmp_path, retry_failed=True)) == {"kept": 2, "failed": 1, "left": 0}


def test_cells_of_older_code_are_redone_when_asked(tmp_path: Path) -> None:
    run.sweep(cheap(), tmp_path)
    record = store.read_cells(tmp_path)[0]
    record["machine"]["code"] = "older"
    store.write_cell(tmp_path, record)
    assert dict(run.sweep(cheap(), tmp_path)) == {"kept": 4, "left": 0}
    assert dict(run.sweep(cheap(), tmp_path, redo=["var-sort"])) == {"kept": 3, "done": 1, "left": 0}


def test_no_cell_begins_after_the_limit(tmp_path: Path) -> None:
    assert dict(run.sweep(cheap(), tmp_path, limit_seconds=-1)) == {"kept": 0, "left": 4}


def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "run.py"),
        "sweep",
        str(tmp_path),
        "--small",
        "--workers",
        "1",
    ]
    command += ["--studies", "rows", "overfitting"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # the first cell is there
    finally:
        process.kill()
        process.communicate()
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
    assert kept
    cells = run.planned(["rows", "overfitting"], "small", None, "all")
    counts = run.sweep(cells, tmp_path)
    assert counts["kept"] == len(kept)
    assert counts["done"] == len(cells) - len(kept) > 0
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items())


def test_the_same_cells_on_processes_and_on_a_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    run.sweep(cheap(), tmp_path / "here")
    run.sweep(cheap(), tmp_path / "processes", workers=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        run.sweep(cheap(), tmp_path / "cluster", scheduler=cluster.scheduler_address)
    answers = [
        {record["key"]: record["result"]["order"] for record in store.read_cells(tmp_path / place)}
        for place in ("here", "processes", "cluster")
    ]
    assert len(answers[0]) == 4
    assert answers[0] == answers[1] == answers[2]


def test_time_left_is_told_by_what_each_contender_takes(capsys: pytest.CaptureFixture[str]) -> None:
    cells = cheap(3)
    progress = run.Progress(cells, lanes=2)
    progress.show(cells[0], {"seconds": 200.0})
    assert "[1/3, 3 min left]" in capsys.readouterr().out


# ---- packing ------------------------------------------------------------------------------


def test_of_two_cells_the_newer_done_one_is_kept(tmp_path: Path) -> None:
    record = run_cell((cheap()[0], "cpu"))
    older = record | {"finished": "2000-01-01T00:00:00Z"}
    failed = {**record, "status": "failed", "error": "late", "finished": "2999-01-01T00:00:00Z"}
    assert store.merge([older, record, older, failed], tmp_path) == 2
    assert store.read_cells(tmp_path) == [record]


def test_the_committed_cells_are_compact() -> None:
    assert (BENCHMARKS / "results/reproduction.jsonl").stat().st_size < store.LARGEST_PACKED


def test_sid_is_added_where_it_was_missing() -> None:
    pytest.importorskip("gadjid")
    record = run_cell((cheap()[0], "cpu"))
    known = record["result"]["sid"]
    record["result"]["sid"] = None
    assert [scored["result"]["sid"] for scored in store.add_sid([record])] == [known]
    assert list(store.add_sid([record])) == []


def test_lines_of_the_older_scripts_become_cells(tmp_path: Path) -> None:
    for name in ("accuracy.jsonl", "baselines.jsonl"):
        line = (BENCHMARKS / "results" / name).read_text().splitlines()[0]
        (tmp_path / name).write_text(line + "\n")
        (record,) = import_records(tmp_path / name)
        old = json.loads(line)
        assert record["result"]["shd"] == old["shd"]
        assert record["result"]["order_divergence"] == old["order_divergence"]
        assert data.name(record["settings"]["data"]) == old["case"]
        (tmp_path / name).write_text(json.dumps(old | {"case": old["case"] + "-mlp"}) + "\n")
        assert list(import_records(tmp_path / name)) == []


# ---- the report ---------------------------------------------------------------------------


def test_the_report_is_made_even_of_nothing(tmp_path: Path) -> None:
    text = compare.page(Results([]), tmp_path)
    assert text.startswith("# The paper, reproduced")
    assert text.count("not run") > 100
    assert not list(tmp_path.iterdir())


def test_plots_are_the_same_bytes_for_the_same_numbers(tmp_path: Path) -> None:
    from sweep import plots

    for name in ("one.svg", "two.svg"):
        plots.violins(tmp_path / name, {"panel": {"a": [1.0, 2.0, 4.0], "b": [3.0]}}, "SHD")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_committed_report_is_what_the_committed_cells_give(tmp_path: Path) -> None:
    records = store.unpack(BENCHMARKS / "results/reproduction.jsonl")
    assert (ROOT / "docs/reproduction.md").read_text() == compare.page(Results(records), tmp_path)
    drawn = sorted(file.name for file in tmp_path.glob("*.svg"))
    assert drawn == sorted(file.name for file in (ROOT / "docs/reproduction").glob("*.svg"))


def test_a_large_gap_without_a_sentence_fails_loudly(monkeypatch: Any, tmp_path: Path) -> None:
    comparison = Comparison("ER1 gauss", "cam", "SHD", Published(1.0, 0.1), Summary(9.0, 0.1, 3))
    silent, talking = Notes(lambda _: None), Notes(lambda _: "Another machine.")
    assert silent.gap(comparison) == "+800 % [?]"
    assert talking.gap(comparison) == "+800 % [1]"
    assert silent.unexplained == [comparison]
    study = STUDIES["tables"]
    broken = type(study)("tables", study.cells, lambda results, figures: Section("x").add_notes(silent))
    monkeypatch.setitem(compare.STUDIES, "tables", broken)
    with pytest.raises(compare.UnexplainedGaps, match="ER1 gauss, cam: SHD 9.0 over 3 sets, published 1.0"):
        compare.page(Results([]), tmp_path)


def test_chance_is_two_standard_errors_of_the_difference() -> None:
    published = Published(10.0, 6**0.5)  # six sets: a standard error of 1
    assert Comparison("", "", "", published, Summary(12.7, 3**0.5, 3)).is_chance  # 2 * sqrt(2) = 2.83
    assert not Comparison("", "", "", published, Summary(12.9, 3**0.5, 3)).is_chance
    assert not Comparison("", "", "", Published(10.0), Summary(10.1, 1.0, 3)).is_chance


# ---- what the studies compute --------------------------------------------------------------


def test_sortability_counts_rising_paths() -> None:
    chain = Dag(np.eye(3, k=1, dtype=int), ["a", "b", "c"])  # paths: a-b, b-c, a-c
    assert data.rising_paths(np.array([1.0, 2.0, 3.0]), chain) == 1
    assert data.rising_paths(np.array([3.0, 2.0, 1.0]), chain) == 0
    assert data.rising_paths(np.array([1.0, 1.0, 2.0]), chain) == pytest.approx(2.5 / 3)


def test_the_minus_gives_the_score_without_the_leaf_and_the_plus_does_not() -> None:
    precision = torch.tensor([[2.0, -0.5, 0.3], [-0.5, 1.5, -0.4], [0.3, -0.4, 1.0]])
    marginal = torch.linalg.inv(torch.linalg.inv(precision)[:2, :2])
    point = torch.tensor([0.3, -1.0, 0.7])
    minus, plus = (_with_residue(lambda at: -precision @ at, [2], sign)(point)[:2] for sign in (-1.0, 1.0))
    exact = -marginal @ point[:2]
    torch.testing.assert_close(minus, exact)
    assert float((plus - exact).abs().max()) > 0.1
