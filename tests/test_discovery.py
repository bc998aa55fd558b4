"""Discovery: what is saved comes back; what is damaged is refused with a sentence."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffan.dag_files import dag_csv
from diffan.discovery import Discovery
from diffan.errors import InputError
from diffan.evidence import EdgeEvidence
from diffan.runfolder import load, load_dag
from diffan.runjson import to_json

odd_names = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(['a"b', "a,b", "a\nb", "", "<script>", "ünïcödé", "a;b\t", "\x00"]),
    ),
    min_size=2,
    max_size=5,
    unique=True,
)


def discovery(names: list[str], seed: int = 0) -> Discovery:
    rng = np.random.default_rng(seed)
    d = len(names)
    order = rng.permutation(d)
    tested = np.zeros((d, d), dtype=bool)
    for k, j in enumerate(order):
        tested[order[:k], j] = True
    p_values = np.where(tested, rng.uniform(size=(d, d)) ** 6, 1.0)
    evidence = EdgeEvidence(
        p_values=p_values,
        tested=tested,
        chosen=tested & (p_values < 0.05),
        cutoff=0.05,
        measures={"edf": np.where(tested, rng.uniform(1, 9, (d, d)), np.nan)},
        warnings=("weak",),
    )
    leaf_evidence = rng.uniform(size=(d - 1, d))
    leaf_evidence[-1, 0] = np.nan
    return Discovery(
        order=[names[i] for i in order],
        names=tuple(names),
        evidence=evidence,
        method="random",
        settings={"cutoff": 0.05},
        seed=seed,
        n_samples=100,
        timings={"order": 0.5},
        warnings=("careful",),
        versions={"python": "3"},
        leaf_evidence=leaf_evidence,
        losses={"train": [1.0, 0.5]},
        model={"w": rng.normal(size=(2, 3)).astype(np.float32)},
    )


def assert_same(one: Discovery, other: Discovery) -> None:
    assert to_json(one) == to_json(other)
    np.testing.assert_array_equal(one.evidence.p_values, other.evidence.p_values)
    np.testing.assert_array_equal(one.evidence.chosen, other.evidence.chosen)
    np.testing.assert_array_equal(one.evidence.measures["edf"], other.evidence.measures["edf"])
    np.testing.assert_array_equal(one.leaf_evidence, other.leaf_evidence)
    assert one.model.keys() == other.model.keys()
    for name in one.model:
        np.testing.assert_array_equal(one.model[name], other.model[name])


@given(odd_names, st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_save_and_load_keep_everything(names: list[str], seed: int) -> None:
    result = discovery(names, seed)
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "run")
        assert_same(load(Path(folder) / "run"), result)
        assert load_dag(Path(folder) / "run" / "adjacency.csv") == result.dag
        graph = nx.read_graphml(Path(folder) / "run" / "graph.graphml")
        assert graph.number_of_edges() == result.dag.n_edges
        assert sorted(p.name for p in Path(folder).iterdir()) == ["run"]


def test_the_folder_holds_what_it_promises(tmp_path) -> None:
    result = discovery(["a", "b", "c", "d"])
    result.save(tmp_path / "run")
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "graph.json", "adjacency.csv", "order.txt", "graph.graphml", "graph.dot", "report.html", "model.safetensors",
    }  # fmt: skip
    assert (tmp_path / "run" / "order.txt").read_text().split() == result.order
    adjacency = pd.read_csv(tmp_path / "run" / "adjacency.csv", index_col=0)
    pd.testing.assert_frame_equal(adjacency, result.adjacency, check_dtype=False)
    content = json.loads((tmp_path / "run" / "graph.json").read_text())
    assert {(e["source"], e["target"]) for e in content["edges"]} == set(result.dag.edges)
    assert all(0 <= e["p_value"] < 0.05 for e in content["edges"])


def test_saving_again_replaces_the_run(tmp_path) -> None:
    discovery(["a", "b", "c"], 1).save(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    second = discovery(["a", "b", "c"], 2)
    second.save(tmp_path / "run")
    assert_same(load(tmp_path / "run"), second)
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_graph_carries_the_evidence() -> None:
    result = discovery(["a", "b", "c", "d"], 3)
    assert result.dag.n_edges > 0
    for cause, effect, facts in result.graph.edges(data=True):
        assert facts["p_value"] == result.p_values.loc[cause, effect]
        assert "edf" in facts
    assert result.adjacency.loc[result.dag.edges[0]] == 1


def test_the_cutoff_moves_without_refitting() -> None:
    result = discovery(["a", "b", "c", "d"], 3)
    loose, strict = result.at_cutoff(0.9), result.at_cutoff(1e-9)
    assert set(strict.dag.edges) <= set(result.dag.edges) <= set(loose.dag.edges)
    assert loose.dag.n_edges > strict.dag.n_edges
    assert loose.settings["cutoff"] == 0.9
    with pytest.raises(InputError, match="at most 1. Got 2 instead"):
        result.at_cutoff(2)


def test_order_and_graph_must_agree(tmp_path) -> None:
    result = discovery(["a", "b", "c", "d"], 3)
    result.save(tmp_path / "run")
    content = json.loads((tmp_path / "run" / "graph.json").read_text())
    content["order"] = content["order"][::-1]
    (tmp_path / "run" / "graph.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="an edge runs against the order"):
        load(tmp_path / "run")


def test_newer_foreign_and_damaged_files_are_refused(tmp_path) -> None:
    discovery(["a", "b"]).save(tmp_path / "run")
    file = tmp_path / "run" / "graph.json"
    good = json.loads(file.read_text())
    for change, sentence in [
        ({"schema": 99}, "newer diffan .schema 99, this one reads up to 1.; upgrade"),
        ({"format": "other"}, "is not a run of diffan"),
        ({"names": ["a", 3]}, "is damaged"),
        ({"order": ["a"]}, "does not list every name once"),
        ({"tests": {}}, "is damaged .no '(source|measures)' in it"),
    ]:
        file.write_text(json.dumps({**good, **change}))
        with pytest.raises(InputError, match=sentence):
            load(tmp_path / "run")
    file.write_text(json.dumps(good)[:-20])
    with pytest.raises(InputError, match="is damaged and cannot be read"):
        load(tmp_path / "run")
    with pytest.raises(InputError, match="No saved run at"):
        load(tmp_path / "nothing")
    file.write_text(json.dumps(good))
    (tmp_path / "run" / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"model.safetensors' is damaged"):
        load(tmp_path / "run")


def test_a_file_in_the_way_is_refused(tmp_path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(InputError, match="is a file; choose another name"):
        discovery(["a", "b"]).save(tmp_path / "run")


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"):
        discovery(["a", "b"]).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_names_are_shown_not_executed(tmp_path) -> None:
    result = discovery(["<script>alert(1)</script>", 'x"y', "c", "d"], 3)
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2  # the data and the page's own code
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "")


def test_adjacency_files_that_are_none(tmp_path) -> None:
    file = tmp_path / "a.csv"
    for text, sentence in [
        ("", "is not an adjacency table"),
        (",a,b\na,0,x\nb,0,0\n", "is not an adjacency table"),
        (",a,b\na,0,1\nc,0,0\n", "must name the same variables"),
        (",a,b\na,0,1\nb,1,0\n", "must have no cycle"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=sentence):
            load_dag(file)
    result = discovery(["a", "b", "c"], 3)
    file.write_text(dag_csv(result.dag))
    assert load_dag(file) == result.dag
