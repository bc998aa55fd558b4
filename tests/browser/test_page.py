"""The page in a browser: no request, no complaint, every control does what it says."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import diffan
from diffan.dag import Dag
from diffan.report.layout import place
from diffan.report.page import render

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "</script><script>window.hacked = 3</script>",
    'it\'s "quoted" & <b>bold</b>',
    "変数 ünïcödé 🧬",
    "a long name " + "n" * 188,
    "${window.hacked = 4}",
    "",
]


def transform(page: Any) -> list[float]:
    text = page.locator("#view").get_attribute("transform")
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]


@pytest.fixture
def small(visit: Any, small_run: Any, tmp_path: Path) -> Any:
    result, _ = small_run
    result.report(tmp_path / "page.html")
    visit.open(tmp_path / "page.html")
    return visit


@pytest.fixture
def with_truth(visit: Any, small_run: Any, tmp_path: Path) -> Any:
    result, dag = small_run
    result.report(tmp_path / "page.html", truth=dag)
    visit.open(tmp_path / "page.html")
    return visit


def quiet(visit: Any) -> None:
    assert visit.complaints == []
    assert len(visit.requests) == 1, visit.requests  # the file itself


def test_everything_is_drawn_without_a_request(small: Any, small_run: Any) -> None:
    result, _ = small_run
    assert small.count(".node") == 10
    assert small.count("#edges .edge") == result.dag.n_edges
    assert small.count("#order li") == 10
    assert small.texts("#order li span") == result.order
    assert small.count("#edge-rows tbody tr") == result.dag.n_edges
    assert small.count("#checks li") == len(result.diagnostics) + len(result.warnings)
    assert small.page.locator("#truth").is_hidden()
    assert small.page.evaluate("document.getElementById('adjacency-map').width") > 50
    quiet(small)


def test_a_click_on_a_variable_shows_its_family_and_effects(small: Any, small_run: Any) -> None:
    result, _ = small_run
    cause, effect = max(result.dag.edges, key=lambda edge: len(result.dag.parents(edge[1])))
    small.page.click(f"#node-{result.names.index(effect)}")
    assert small.texts("#panel h2") == [effect]
    panel = small.page.locator("#panel").inner_text()
    for parent in result.dag.parents(effect):
        assert parent in panel
    assert small.count("#panel svg.chart") == len(result.dag.parents(effect))
    assert small.count("#panel svg.chart .band") == len(result.dag.parents(effect))
    assert small.count(".edge.into") == len(result.dag.parents(effect))
    assert effect in small.page.locator("#said").inner_text()
    small.page.get_by_role("button", name=f"Evidence for {cause} to {effect}").click()
    assert small.texts("#panel h2") == [f"{cause} → {effect}"]
    assert small.count("#panel svg.chart") == 2
    assert "p-value" in small.page.locator("#panel").inner_text()
    small.page.get_by_role("button", name="Close").click()
    assert small.texts("#panel h2") == ["What it found"]
    quiet(small)


def test_a_click_on_an_arrow_shows_its_evidence(small: Any, small_run: Any) -> None:
    small.page.locator("#edges .edge .hit").first.dispatch_event("click")
    assert "→" in small.texts("#panel h2")[0]
    assert small.count(".edge.chosen") == 1
    quiet(small)


def test_zoom_fit_drag_and_wheel(small: Any) -> None:
    page, start = small.page, transform(small.page)
    page.click("#zoom-in")
    assert transform(page)[2] == pytest.approx(1.3 * start[2])
    page.click("#zoom-out")
    page.click("#zoom-out")
    assert transform(page)[2] < start[2]
    page.click("#fit")
    assert transform(page) == pytest.approx(start)
    box = page.locator("#graph").bounding_box()
    page.mouse.move(box["x"] + 15, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + 75, box["y"] + 45, steps=4)
    page.mouse.up()
    moved = transform(page)
    assert (moved[0] - start[0], moved[1] - start[1]) == pytest.approx((60, 30))
    page.mouse.wheel(0, -200)
    assert transform(page) == moved  # a plain wheel scrolls the page
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_timeout(50)
    assert transform(page)[2] > moved[2]
    quiet(small)


def test_search_finds_and_walks_through_the_matches(small: Any, small_run: Any) -> None:
    result, _ = small_run
    page = small.page
    page.fill("#search", "x")
    assert small.count(".node.match") == 10
    assert small.texts("#search-count") == ["10 found"]
    page.press("#search", "Enter")
    assert small.texts("#panel h2") == [result.order[0]]
    page.press("#search", "Enter")
    assert small.texts("#panel h2") == [result.order[1]]
    page.fill("#search", "nobody")
    assert small.texts("#search-count") == ["not found"]
    page.press("#search", "Escape")
    assert small.count(".node.match") == 0
    quiet(small)


def test_the_slider_redraws_from_the_stored_p_values(small: Any, small_run: Any) -> None:
    result, _ = small_run
    page = small.page

    def shown() -> int:
        page.wait_for_timeout(200)
        assert small.count("#edge-rows tbody tr") == min(small.count("#edges .edge"), 100)
        return small.count("#edges .edge")

    counts = []
    for key in ("Home", "End"):
        page.press("#cutoff", key)
        place = float(page.locator("#cutoff").input_value())
        counts.append(shown())
        assert page.locator("#cutoff-value").inner_text().startswith("p <")
        assert (
            page.locator("#cutoff")
            .get_attribute("aria-valuetext")
            .endswith(f"{counts[-1]} edge" + "s" * (counts[-1] != 1))
        )
        assert place in (0, 1000)
    assert counts[0] <= result.dag.n_edges <= counts[1]
    assert counts[1] == result.at_cutoff(0.5).dag.n_edges
    page.click("#cutoff-reset")
    assert shown() == result.dag.n_edges
    assert page.locator("#cutoff-reset").is_hidden()
    quiet(small)


def test_keys_alone_are_enough(small: Any, small_run: Any) -> None:
    result, _ = small_run
    page = small.page
    page.focus("#graph")
    page.keyboard.press("ArrowRight")
    first = result.order[0]
    assert small.texts("#panel h2") == [first]
    child = result.dag.children(first)
    page.keyboard.press("ArrowDown")
    below = small.texts("#panel h2")[0]
    assert below in child if child else below == first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    chosen = page.locator("#graph").get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    before = transform(page)[2]
    page.keyboard.press("+")
    assert transform(page)[2] > before
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert small.texts("#panel h2") == ["What it found"]
    seen = set()
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "theme", "search", "cutoff", "zoom-in", "fit", "graph"} <= seen
    quiet(small)


def test_a_screen_reader_hears_names_for_everything(small: Any) -> None:
    nameless = small.page.evaluate(
        """() => [...document.querySelectorAll('button, input, canvas[role=img], [role=listbox], [role=option], svg.chart')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length)))
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert small.page.locator("html").get_attribute("lang") == "en"
    assert small.count("h1") == 1
    assert small.page.get_by_role("listbox").count() == 1
    assert small.page.get_by_role("option").count() == 10
    assert small.page.get_by_role("table").count() >= 2


def test_light_dark_and_print(small: Any) -> None:
    page = small.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(ground) != light
    page.emulate_media(media="print")
    assert page.locator(".toolbar").is_hidden()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.locator("#edge-rows").is_visible()
    assert len(page.pdf()) > 10_000
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # light on paper, then as it was
    quiet(small)


def test_the_table_sorts_and_selects(small: Any, small_run: Any) -> None:
    result, _ = small_run
    small.page.get_by_role("button", name="cause", exact=True).click()
    causes = small.texts("#edge-rows tbody th")
    assert causes == sorted(causes, key=result.order.index)
    small.page.get_by_role("button", name="cause", exact=True).click()
    assert small.texts("#edge-rows tbody th") == sorted(causes, key=result.order.index, reverse=True)
    assert (
        small.page.evaluate("document.activeElement.textContent") == "cause"
    )  # the keyboard stays where it was
    small.page.locator("#edge-rows tbody tr").first.click()
    assert "→" in small.texts("#panel h2")[0]


def test_with_a_truth_edges_are_marked_and_scored(with_truth: Any, small_run: Any) -> None:
    result, dag = small_run
    scores = diffan.metrics.evaluate(dag, result.dag, result.order)
    cards = dict(reversed(text.split("\n")) for text in with_truth.page.locator(".score").all_inner_texts())
    assert int(cards["SHD"]) == scores["shd"]
    assert int(cards["SID"]) == scores["sid"]
    assert int(cards["order divergence"]) == scores["order_divergence"]
    for mark in ("missing", "extra", "reversed"):
        assert int(cards[mark]) == with_truth.count(f"#edges .edge.{mark}") == scores[mark]
    assert with_truth.count("#edges .edge.correct") == len(set(dag.edges) & set(result.dag.edges))
    with_truth.page.uncheck("#show-truth")
    assert with_truth.count("#edges .edge.missing") == with_truth.count("#edges .edge.correct") == 0
    quiet(with_truth)


def test_hostile_names_are_shown_not_executed(visit: Any, made_up: Any, tmp_path: Path) -> None:
    dag = Dag.from_edges([(HOSTILE[k], HOSTILE[k + 1]) for k in range(len(HOSTILE) - 1)], HOSTILE)
    result = made_up(dag)
    result.report(tmp_path / "page.html", truth=dag)
    page = visit.open(tmp_path / "page.html")
    assert visit.count(".node") == len(HOSTILE)
    shown = page.evaluate("[...document.querySelectorAll('.node title')].map((t) => t.textContent)")
    assert shown == [name or "(unnamed 8)" for name in result.order]
    for k, name in enumerate(HOSTILE):
        page.locator(f"#node-{k}").dispatch_event("click")
        assert page.evaluate("document.querySelector('#panel h2').textContent") == (name or "(unnamed 8)")
    page.locator("#edges .edge .hit").first.dispatch_event("click")
    widths = page.evaluate("[...document.querySelectorAll('.node .box')].map((b) => b.getBBox().width)")
    texts = page.evaluate("[...document.querySelectorAll('.node text')].map((b) => b.getBBox().width)")
    assert all(text < box for text, box in zip(texts, widths, strict=True))
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    quiet(visit)


def test_labels_do_not_overlap_at_20_nodes(visit: Any, made_up: Any, tmp_path: Path) -> None:
    made_up(diffan.simulate.random_dag(20, 40, graph="er", seed=2)).report(tmp_path / "page.html")
    page = visit.open(tmp_path / "page.html")
    overlaps = page.evaluate(
        """() => { const boxes = [...document.querySelectorAll('.node .box')].map((b) => b.getBoundingClientRect());
        return boxes.filter((a, i) => boxes.some((b, j) => j > i && a.left < b.right && b.left < a.right
            && a.top < b.bottom && b.top < a.bottom)).length; }"""
    )
    assert overlaps == 0
    tips = page.evaluate(
        "[...document.querySelectorAll('.edge .tip')].map((t) => t.getBoundingClientRect().height)"
    )
    assert len(tips) == 40
    assert min(tips) > 3  # arrow heads can be seen


def test_bootstrap_results_are_shown_where_they_exist(visit: Any, made_up: Any, tmp_path: Path) -> None:
    import numpy as np

    result = made_up(diffan.simulate.random_dag(6, 6, graph="er", seed=1))
    object.__setattr__(result, "precedence", np.full((6, 6), 0.5))
    result.report(tmp_path / "page.html")
    page = visit.open(tmp_path / "page.html")
    assert page.locator("#precedence").is_visible()
    page.locator("#edges .edge .hit").first.dispatch_event("click")
    assert "frequency" in page.locator("#panel").inner_text()
    widths = page.evaluate(
        "[...document.querySelectorAll('#edges .line')].map((l) => Number(l.getAttribute('stroke-width')))"
    )
    assert max(widths) > 1.5 * min(widths)
    quiet(visit)


def test_a_bare_run_still_gives_a_page(visit: Any, made_up: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    bare = replace(
        made_up(Dag.from_edges([], ["a", "b"])), inspection=None, leaf_evidence=None, losses={}, timings={}, warnings=()
    )  # fmt: skip
    bare.report(tmp_path / "page.html")
    page = visit.open(tmp_path / "page.html")
    assert visit.count(".node") == 2
    page.click("#node-0")
    assert page.locator("#no-edges").is_visible()
    assert page.locator("#diagnostics").is_hidden()
    quiet(visit)


def test_500_nodes_load_within_a_second_and_every_control_works(
    visit: Any, made_up: Any, tmp_path: Path
) -> None:
    dag = diffan.simulate.random_dag(500, 700, graph="er", seed=1)
    result = made_up(dag, sampled=100)
    text = render(result, dag)
    assert len(text) < 5_000_000
    (tmp_path / "page.html").write_text(text)
    times = []
    for _ in range(5):
        page = visit.open(tmp_path / "page.html")
        times.append(float(page.evaluate("document.documentElement.dataset.ready")))
        if min(times) < 1000:
            break
    assert min(times) < 1000
    assert visit.count(".node") == 500
    assert 10 <= visit.count("#floating g") <= 70
    page.fill("#search", result.order[250])
    page.press("#search", "Enter")
    assert visit.texts("#panel h2") == [result.order[250]]
    assert transform(page)[2] >= 0.8
    page.click("#fit")
    page.press("#cutoff", "Home")
    page.wait_for_timeout(250)
    assert visit.count("#edges .edge:not(.missing)") < dag.n_edges
    page.click("#cutoff-reset")
    page.wait_for_timeout(250)
    assert visit.count("#edges .edge:not(.missing)") == result.dag.n_edges
    page.click("#more-edges")
    assert visit.count("#edge-rows tbody tr") == result.dag.n_edges
    page.click("#theme")
    page.click("#zoom-in")
    page.uncheck("#show-truth")
    quiet(visit)


@pytest.mark.parametrize(
    ("n", "m", "graph"), [(8, 10, "er"), (20, 45, "er"), (60, 59, "sf"), (150, 180, "er")]
)
def test_both_layouts_agree(visit: Any, n: int, m: int, graph: str) -> None:
    dag = diffan.simulate.random_dag(n, m, graph=graph, seed=4)
    rank = {name: k for k, name in enumerate(dag.topological_order())}
    edges = [(rank[a], rank[b]) for a, b in dag.edges]
    widths = [50.0 + 7 * (k % 9) for k in range(n)]
    script = (files("diffan.report") / "assets" / "layout.js").read_text(encoding="utf-8")
    found = visit.page.evaluate(
        f"([widths, edges]) => {{ {script}; return placeGraph(widths, edges); }}", [widths, edges]
    )
    ours = place(widths, edges)
    assert found["x"] == pytest.approx(ours.x, abs=1e-3)
    assert found["y"] == pytest.approx(ours.y, abs=1e-3)
    for theirs, route in zip(found["routes"], ours.routes, strict=True):
        assert [c for point in theirs for c in point] == pytest.approx(
            [c for point in route for c in point], abs=1e-3
        )
