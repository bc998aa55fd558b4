"""The gallery runs: each example prints what the page says it prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
NEEDS_MORE = {"what_if_with_dowhy"}  # what the development install does not bring
SHOWN = dict(re.findall(r'--8<-- "examples/(\w+)\.py"\n```\n\n```text\n(.*?)```', GALLERY, re.DOTALL))


@pytest.mark.parametrize("name", sorted(SHOWN.keys() - NEEDS_MORE))
def test_an_example_prints_what_the_gallery_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert _comparable(capsys.readouterr().out) == _comparable(SHOWN[name])


def test_the_gallery_shows_every_example() -> None:
    assert SHOWN.keys() == {file.stem for file in EXAMPLES.glob("*.py")}


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
