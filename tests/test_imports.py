"""The house's arrows: a module imports only from layers below it, and `import diffan` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import diffan

SOURCE = Path(diffan.__file__).parent

# From the ground up; a module may import from its own layer's package and from lower layers only.
LAYERS = [
    {"errors", "progress", "versions", "stability", "keeping"},
    {"threads"},
    {"constraints", "knowledge_files"},
    {"precedence"},
    {"contradictions"},
    {"knowledge"},
    {"options", "context", "dag", "files", "evidence", "checks", "executors", "parquet", "inspection.values"},
    {"local_settings"},
    {"rows", "checkpoint", "settings"},
    {"table_checks", "shuffling"},
    {"frames", "moments", "explained"},
    {"table", "confidence", "multiplicity"},
    {"mapped", "wanted_rows"},
    {"streaming"},
    {"discovery", "additive", "simulate", "metrics", "datasets", "dag_files"},
    {"ordering.result"},
    {"exports", "algorithm", "runjson"},
    {"score", "pruning"},
    {"ordering", "likelihood"},
    {"inspection"},
    {"report"},
    {"runfolder"},
    {"baselines", "finish", "resume"},
    {"recipe"},
    {"replicates"},
    {"methods"},
    {"estimators"},
    {"printing", "cli_options"},
    {"cli_discover"},
    {"cli"},
    {"__main__"},
]
FACADES = {"__init__", "baselines.__init__"}  # they import lazily what they only pass on
# discovery.save and discovery.report hand the finished result to those who write it, inside the function
HAND_OVER = {("discovery", "runfolder"), ("discovery", "report"), ("discovery", "exports")}


def layer(module: str) -> int:
    for level, members in enumerate(LAYERS):
        if module in members:
            return level
    return layer(module.rpartition(".")[0]) if "." in module else len(LAYERS)


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "diffan":
            inner = node.module.removeprefix("diffan").lstrip(".")
            found |= {inner} if inner else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("diffan.") for a in node.names if a.name.startswith("diffan.")}
    return found


def modules() -> dict[str, Path]:
    return {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts): file
        for file in sorted(SOURCE.rglob("*.py"))
    }


def test_every_module_has_a_layer() -> None:
    homeless = [name for name in modules() if layer(name.removesuffix(".__init__")) == len(LAYERS)]
    assert homeless == ["__init__"]


def test_imports_go_one_way() -> None:
    wrong = []
    for name, file in modules().items():
        if name in FACADES:
            continue
        for target in imports(file):
            home = name.partition(".")[0]
            same_package = "." in name and target.partition(".")[0] == home
            if (
                not same_package
                and (home, target.partition(".")[0]) not in HAND_OVER
                and layer(target) >= layer(name)
            ):
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_there_is_no_drawer_for_everything() -> None:
    assert not [name for name in modules() if "util" in name or "helper" in name]


def test_algorithm_fits_on_one_screen() -> None:
    assert len((SOURCE / "algorithm.py").read_text().splitlines()) <= 120


def test_importing_diffan_imports_nothing_heavy() -> None:
    code = "import sys, diffan; print([m for m in ('torch','pandas','scipy','sklearn','numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in diffan.__all__:
        assert getattr(diffan, name) is not None
    assert set(dir(diffan)) == set(diffan.__all__)
