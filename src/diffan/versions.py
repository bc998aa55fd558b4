"""Which software made a result, found without importing any of it."""

from __future__ import annotations

import platform
from importlib import metadata

_PACKAGES = ("diffan", "torch", "numpy", "scipy", "scikit-learn", "pandas", "networkx")


def versions() -> dict[str, str]:
    """Name and version of Python and of every package that can change a number."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
