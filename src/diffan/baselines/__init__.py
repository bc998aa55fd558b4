"""The methods that DiffAN is compared with, as estimators; each file beside this one holds one method."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diffan.estimators import CAM, DAS, SCORE, GraNDAG, NoGAM, R2Sort, RandomOrder, VarSort

__all__ = ["CAM", "DAS", "SCORE", "GraNDAG", "NoGAM", "R2Sort", "RandomOrder", "VarSort"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("diffan.estimators"), name)
    raise AttributeError(f"module 'diffan.baselines' has no attribute {name!r}")
