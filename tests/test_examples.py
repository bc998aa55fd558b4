"""The gallery runs: each example prints what the page says it prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NEEDS_MORE = {"what_if_with_dowhy"}  # what the development install does not bring
PROGRAM = re.compile(r'--8<-- "examples/(\w+)\.py"\n```\n\n```text\n(.*?)```', re.DOTALL)


def shown_on(page: str) -> dict[str, str]:
    """The examples that a page includes, and what it says they print."""
    return dict(PROGRAM.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))


SHOWN = shown_on("gallery.md")


@pytest.mark.parametrize("name", sorted(SHOWN.keys() - NEEDS_MORE))
def test_an_example_prints_what_the_gallery_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert _comparable(capsys.readouterr().out) == _comparable(SHOWN[name])


def test_the_gallery_shows_every_example() -> None:
    assert SHOWN.keys() == {file.stem for file in EXAMPLES.glob("*.py")}


def test_the_first_page_shows_the_same() -> None:
    first = shown_on("index.md")
    assert first
    assert first.items() <= SHOWN.items()


@pytest.mark.filterwarnings("default")  # DoWhy's own are not ours to forbid
def test_what_if_with_dowhy() -> None:
    pytest.importorskip("dowhy", reason="dowhy is not installed")
    answer = runpy.run_path(str(EXAMPLES / "what_if_with_dowhy.py"))["what_if"](rows=800)
    assert set(answer.edges) == {("soil", "fertiliser"), ("soil", "yield"), ("fertiliser", "yield")}
    assert abs(answer.predicted - answer.true) < 0.35
    assert abs(answer.observed - answer.true) > 0.35  # so that adjusting is what made it right


def _comparable(printed: str) -> list[str]:
    """Words and whole numbers; decimals and the widths they bring may differ between machines."""
    return re.sub(r"\d+\.\d+", "#", printed).split()
