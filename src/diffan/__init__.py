"""diffan: a causal graph, its order and the evidence for every edge, from a table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diffan import baselines, datasets, metrics, pruning, simulate
    from diffan.confidence import Confidence
    from diffan.dag import Dag
    from diffan.discovery import Discovery
    from diffan.errors import DiffanError, FitError, InputError
    from diffan.estimators import DiffAN
    from diffan.knowledge import Knowledge
    from diffan.methods import discover
    from diffan.replicates import ConfidenceSettings
    from diffan.runfolder import load
    from diffan.table import Table

_HOME = {
    "Confidence": "diffan.confidence",
    "ConfidenceSettings": "diffan.replicates",
    "Dag": "diffan.dag",
    "DiffAN": "diffan.estimators",
    "DiffanError": "diffan.errors",
    "Discovery": "diffan.discovery",
    "FitError": "diffan.errors",
    "InputError": "diffan.errors",
    "Knowledge": "diffan.knowledge",
    "Table": "diffan.table",
    "discover": "diffan.methods",
    "load": "diffan.runfolder",
}
_MODULES = ("baselines", "datasets", "metrics", "pruning", "simulate")

__all__ = [
    "Confidence",
    "ConfidenceSettings",
    "Dag",
    "DiffAN",
    "DiffanError",
    "Discovery",
    "FitError",
    "InputError",
    "Knowledge",
    "Table",
    "__version__",
    "baselines",
    "datasets",
    "discover",
    "load",
    "metrics",
    "pruning",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import diffan` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"diffan.{name}")
    raise AttributeError(f"module 'diffan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
