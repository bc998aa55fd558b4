"""The documentation holds together: links lead somewhere, options are listed, Python parses, and the site builds."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import diffan
from diffan import cli
from diffan.methods import METHODS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_local_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(prose(page)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """As `make docs` builds it, but elsewhere; the generator comes with the development install."""
    pytest.importorskip("mkdocs")
    built = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(built, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {page.stem for page in PAGES}
    assert pages <= {page.stem for page in tmp_path.glob("*.html")}
    assert "ConfidenceSettings" in (tmp_path / "reference.html").read_text(encoding="utf-8")


def test_the_menu_and_the_pages_agree() -> None:
    listed = set(
        re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert listed <= {page.name for page in PAGES}
    linked = {target.partition("#")[0] for page in PAGES for target in LINK.findall(prose(page))}
    assert {page.name for page in PAGES} - listed - linked == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_parse(page: Path) -> None:
    for language, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python" and "--8<--" not in code:
            ast.parse(code)


def test_included_files_exist() -> None:
    included = {
        name for page in PAGES for name in re.findall(r'^--8<-- "(.+)"$', page.read_text(), re.MULTILINE)
    }
    assert included
    assert all((ROOT / name).is_file() for name in included)


def test_every_option_of_discover_is_listed() -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    renamed = {"as_json": "json", "inspect": "no-inspect"}
    options = [
        renamed.get(name, name.replace("_", "-")) for name in inspect.signature(cli.discover).parameters
    ]
    assert [name for name in options if name != "data" and f"`--{name}`" not in page] == []
    assert [name for name in METHODS if f"`{name}`" not in page] == []


def test_the_reference_covers_the_public_names() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    described = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    for path in described:
        module, _, name = path.rpartition(".")
        assert module == "diffan" or hasattr(__import__(module, fromlist=[name]), name), path
    names = [name for name in diffan.__all__ if name not in ("__version__", "Table")]
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == [
        "DiffanError",
        "FitError",
        "InputError",
    ]
    assert "diffan.errors" in described  # which has these three
    assert [name for name in diffan.baselines.__all__ if f"`{name}`" not in page] == []


def test_the_tables_of_broken_assumptions_break_nothing_else() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "assumptions.py"))
    tables = script["tables"](np.random.default_rng(0), 100)
    assert tables.keys() == script["TRUTHS"].keys()
    assert all(np.isfinite(table.to_numpy()).all() for table in tables.values())


def test_a_link_without_direction_is_half_right() -> None:
    scores = runpy.run_path(str(ROOT / "benchmarks" / "alternatives.py"))["scores"]
    truth = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    half = np.array([[0, 0.5, 0], [0.5, 0, 1], [0, 0, 0]])
    assert scores(truth, half) == {"f1": 0.75, "skeleton_f1": 1.0}
    assert scores(truth, np.zeros((3, 3))) == {"f1": 0.0, "skeleton_f1": 0.0}


def prose(page: Path) -> str:
    """A page without its code blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors that the site gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
