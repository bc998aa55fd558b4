"""The examples run, where what they need is installed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.filterwarnings("default")  # DoWhy's own are not ours to forbid
def test_what_if_with_dowhy() -> None:
    pytest.importorskip("dowhy", reason="dowhy is not installed")
    answer = runpy.run_path(str(EXAMPLES / "what_if_with_dowhy.py"))["what_if"](rows=800)
    assert set(answer.edges) == {("soil", "fertiliser"), ("soil", "yield"), ("fertiliser", "yield")}
    assert abs(answer.predicted - answer.true) < 0.35
    assert abs(answer.observed - answer.true) > 0.35  # so that adjusting is what made it right
