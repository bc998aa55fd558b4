"""What leaves a run: the page's content, figures, notebook view, and the graph in other tools' forms."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import diffan
from diffan.cli import main
from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.report.content import MOST_TESTS, page_content
from diffan.report.drawing import drawing
from diffan.report.page import page_script, render

NAMES = ["<script>alert(1)</script>", 'quo"te', "back\\slash $x_1$", "ünïcödé 変数", "n" * 200, "new\nline"]


@pytest.fixture(scope="module")
def run() -> Discovery:
    dag = diffan.simulate.random_dag(6, 8, graph="er", seed=5)
    frame = diffan.simulate.sample_anm(dag, 300, seed=5).set_axis(NAMES, axis=1)
    result = diffan.discover(frame, "score", device="cpu", cutoff=0.05)
    assert result.dag.n_edges >= 3
    return replace(
        result, losses={"step": [0.0, 1.0, 2.0], "train": [2.0, 1.5, 1.2], "validation": [2.0, 1.6, 1.5]}
    )


def embedded(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="run">(.*?)</script>', page, re.S)[1])


def test_the_page_holds_the_run_and_runs_only_its_own_code(run: Discovery) -> None:
    page = render(run)
    content = embedded(page)
    assert content["names"] == NAMES
    assert [NAMES[k] for k in content["order"]] == run.order
    kept = {
        (content["tests"]["source"][k], content["tests"]["target"][k])
        for k in np.flatnonzero(content["tests"]["kept"])
    }
    assert kept == set(map(tuple, np.argwhere(run.evidence.chosen).tolist()))
    assert len(content["inspection"]["curves"]) == run.dag.n_edges
    assert content["truth"] is None
    digest = base64.b64encode(hashlib.sha256(page_script().encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert page_script() in page
    assert "@@" not in page
    assert render(run) == page


def test_a_name_that_looks_like_the_template_changes_nothing() -> None:
    names = ["@@RUN@@", "@@SCRIPT@@", "</script>"]
    frame = diffan.simulate.sample_anm(diffan.simulate.random_dag(3, 2, seed=1), 60, seed=1).set_axis(
        names, axis=1
    )
    assert embedded(render(diffan.discover(frame, "r2-sort")))["names"] == names


def test_large_runs_keep_the_strongest_tests(run: Discovery) -> None:
    rng = np.random.default_rng(0)
    d = 230
    tested = np.triu(np.ones((d, d), dtype=bool), 1)
    p_values = np.where(tested, rng.uniform(size=(d, d)), 1.0)
    names = tuple(f"v{k}" for k in range(d))
    evidence = replace(
        run.evidence,
        p_values=p_values,
        tested=tested,
        chosen=tested & (p_values < 0.01),
        cutoff=0.01,
        measures={},
    )
    content = page_content(
        replace(run, names=names, order=list(names), evidence=evidence, inspection=None, leaf_evidence=None)
    )
    kept = content["tests"]["p_value"]
    assert len(kept) == MOST_TESTS < tested.sum()
    assert (
        max(kept)
        <= content["tests"]["complete_below"]
        == pytest.approx(np.sort(p_values[tested])[MOST_TESTS])
    )


def test_what_a_damaged_run_may_hold_still_gives_a_page(run: Discovery) -> None:
    odd = replace(
        run, settings={"a": float("nan"), "b": [float("inf"), {"c": None}]}, timings={"order": float("nan")},
        evidence=replace(run.evidence, cutoff=float("nan")),
    )  # fmt: skip
    content = embedded(render(odd))
    assert (content["settings"], content["timings"], content["cutoff"]) == (
        {"a": None, "b": [None, {"c": None}]},
        {},
        0.0,
    )


def test_truth_is_matched_by_name(run: Discovery) -> None:
    names = run.names[::-1]
    truth = Dag.from_edges([run.dag.edges[0]], names)
    content = page_content(run, truth)["truth"]
    assert [(NAMES[a], NAMES[b]) for a, b in content["edges"]] == [run.dag.edges[0]]
    assert content["scores"]["shd"] == run.dag.n_edges - 1
    with pytest.raises(InputError, match="same nodes"):
        render(run, Dag.from_edges([], ["other"] * 1))


def test_every_edge_gets_its_mark(run: Discovery) -> None:
    (a, b), (c, e), *rest = run.dag.edges
    free = next(
        (i, j) for i in run.order for j in run.order
        if i != j and (i, j) not in run.dag.edges and (j, i) not in run.dag.edges
    )  # fmt: skip
    try:
        truth = Dag.from_edges([(a, b), (e, c), free], run.names)
    except InputError:  # the free pair closed a cycle: take it the other way round
        free = free[::-1]
        truth = Dag.from_edges([(a, b), (e, c), free], run.names)
    marks = {(arrow.cause, arrow.effect): arrow.mark for arrow in drawing(run, truth).arrows}
    assert marks[a, b] == "correct"
    assert marks[c, e] == "reversed"
    assert marks[free] == "missing"
    assert all(marks[edge] == "extra" for edge in rest)


@pytest.mark.filterwarnings("ignore:Glyph")  # matplotlib says which letters its font lacks
@pytest.mark.parametrize("kind", ["graph", "order", "loss", "effects", "adjacency"])
def test_every_figure_in_every_format(run: Discovery, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for ending, start in starts.items():
        run.plot(kind, path=tmp_path / f"figure.{ending}")
        assert (tmp_path / f"figure.{ending}").read_bytes().startswith(start)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figure.pdf", "figure.png", "figure.svg"]
    assert run.plot(kind)._repr_png_().startswith(b"\x89PNG")


def test_the_drawn_graph_holds_every_variable_and_edge(run: Discovery) -> None:
    pytest.importorskip("matplotlib")
    axes = run.plot("graph", truth=run.dag).axes[0]
    assert len(axes.texts) == 6
    assert len(axes.patches) == 6 + 2 * run.dag.n_edges
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["correct"]


def test_figures_that_cannot_be_are_refused(run: Discovery, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    bare = replace(run, losses={}, leaf_evidence=None, inspection=None)
    for figure, sentence in [
        (lambda: run.plot("pie"), "must be one of graph, order"),
        (lambda: run.plot("graph", path=tmp_path / "a.bmp"), "written as .png, .svg, .pdf"),
        (lambda: run.plot("effects", variable="nobody"), "'nobody' is not a node"),
        (lambda: bare.plot("loss"), "keeps no loss"),
        (lambda: bare.plot("order"), "keeps no evidence"),
        (lambda: bare.plot("effects"), "inspect=True"),
    ]:
        with pytest.raises(InputError, match=sentence):
            figure()
    assert list(tmp_path.iterdir()) == []


def test_effects_of_one_variable(run: Discovery) -> None:
    pytest.importorskip("matplotlib")
    effect = run.dag.edges[0][1]
    assert len(run.plot("effects", variable=effect).axes) == len(run.dag.parents(effect))


def test_a_notebook_shows_the_graph_and_no_script(run: Discovery) -> None:
    page = run._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    picture = ET.fromstring(re.search(r"<svg.*?</svg>", page, re.S)[0])
    assert len(picture.findall(".//rect")) == 6
    assert f"{run.dag.n_edges} edges" in page


def test_exports_hold_the_same_graph(run: Discovery) -> None:
    assert nx.utils.graphs_equal(run.export("networkx"), run.graph)
    dagitty = run.export("dagitty")
    assert dagitty.startswith("dag {")
    assert dagitty.count("->") == run.dag.n_edges
    assert '"quo\\"te"' in dagitty
    assert run.export("dot").count("->") == run.dag.n_edges
    assert "<graphml" in run.export("graphml")
    with pytest.raises(InputError, match=r"exported to networkx.*Got 'excel' instead"):
        run.export("excel")


@pytest.mark.parametrize("tool", ["pgmpy", "dowhy"])
def test_tools_that_are_missing_are_named(run: Discovery, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, tool, None)
    monkeypatch.setitem(__import__("sys").modules, f"{tool}.base", None)
    with pytest.raises(InputError, match=f"pip install {tool}"):
        run.export(tool)


def test_report_command_rebuilds_the_page(run: Discovery, tmp_path: Path, capsys, monkeypatch) -> None:
    run.save(tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    truth = tmp_path / "truth.csv"
    truth.write_bytes((tmp_path / "run" / "adjacency.csv").read_bytes())
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def call(*arguments: object) -> int:
        with pytest.raises(SystemExit) as stop:
            main([*map(str, arguments)])
        return int(stop.value.code or 0)

    assert call("report", tmp_path / "run", "--truth", truth, "--open") == 0
    page = tmp_path / "run" / "report.html"
    assert opened == [page.as_uri()]
    assert embedded(page.read_text())["truth"]["scores"]["shd"] == 0
    assert str(page) in capsys.readouterr().out
    assert call("report", tmp_path / "run", "-o", tmp_path / "other.html", "-q") == 0
    assert embedded((tmp_path / "other.html").read_text())["truth"] is None
    assert capsys.readouterr().out == ""
    assert call("report", tmp_path / "nothing") == 2
    assert "No saved run" in capsys.readouterr().err
    truth.write_text(",a\na,0\n")
    assert call("report", tmp_path / "run", "--truth", truth) == 2
    assert "same nodes" in capsys.readouterr().err
