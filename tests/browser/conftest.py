"""A real browser for the page: the chromium that is installed, never one that is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diffan
from diffan.dag import Dag
from diffan.discovery import Discovery
from diffan.evidence import EdgeEvidence
from diffan.inspection.values import Diagnostic, EffectCurve, Inspection

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip("no chromium is installed (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


class Visit:
    """One page, open, with everything it complained about or asked the network for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def open(self, file: Path) -> Any:
        self.requests.clear()
        self.page.goto(file.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready")
        self.page.wait_for_timeout(150)  # the table and the heat map follow a moment later
        return self.page

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_text_contents()]

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1400, "height": 950}, reduced_motion="reduce")
    context.set_default_timeout(8000)
    yield Visit(context.new_page())
    context.close()


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Discovery, Dag]:
    """A real run on ten simulated columns, and the graph that made them."""
    dag = diffan.simulate.random_dag(10, 14, graph="er", seed=3)
    frame = diffan.simulate.sample_anm(dag, 400, seed=3)
    return diffan.discover(frame, "score", device="cpu"), dag


@pytest.fixture
def made_up() -> Callable[..., Discovery]:
    return _made_up


def _made_up(dag: Dag, seed: int = 0, sampled: int = 60) -> Discovery:
    """A run over a given graph with evidence out of thin air: as large as a real one, at no cost."""
    rng = np.random.default_rng(seed)
    order = dag.topological_order()
    d, place = dag.n_nodes, np.array([order.index(name) for name in dag.names])
    true = dag.adjacency.astype(bool)
    tested = true | ((place[:, None] < place[None, :]) & (rng.uniform(size=(d, d)) < min(1.0, 15 / d)))
    p_values = np.where(true, 10.0 ** -rng.uniform(4, 90, (d, d)), rng.uniform(0.002, 1, (d, d)))
    p_values = np.where(tested, p_values, 1.0)
    frequency = np.where(tested, rng.uniform(0, 1, (d, d)), np.nan)
    evidence = EdgeEvidence(
        p_values=p_values, tested=tested, chosen=tested & (p_values < 0.001), cutoff=0.001,
        measures={"frequency": frequency, "deviance_explained": np.where(tested, 0.1, np.nan)},
    )  # fmt: skip
    curves = tuple(
        EffectCurve(int(i), int(j), -2.0, 2.0, np.sin(np.linspace(-2, 2, 25)), np.full(25, 0.1), 4.0, 0.6, 0.0, 1.0)
        for i, j in np.argwhere(true)
    )  # fmt: skip
    remarks = (
        Diagnostic("Is it real?", "doubt", "It is made up.", "Do not believe it.", (dag.names[0],)),
        Diagnostic("Is it large?", "fine", "It is.", ""),
    )
    seen = Inspection(
        400, rng.normal(size=(sampled, d)).round(3), rng.normal(size=(sampled, d)).round(3), curves,
        np.full(d, 0.5), np.zeros(d), np.zeros(d), np.ones(d), remarks,
    )  # fmt: skip
    leaf_evidence = rng.uniform(0.1, 1, (d - 1, d))
    for step in range(d - 1):
        leaf_evidence[step, place > d - 1 - step] = np.nan
    return Discovery(
        order=order, names=dag.names, evidence=evidence, method="diffan", settings={"cutoff": 0.001}, seed=1,
        n_samples=400, timings={"train": 1.0, "order": 0.2}, warnings=("Watch out.",), versions={"python": "3"},
        leaf_evidence=leaf_evidence, losses={"step": [0.0, 10.0, 20.0], "train": [1.0, 0.9, float("nan")]}, inspection=seen,
    )  # fmt: skip
