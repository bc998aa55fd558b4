"""Where a number comes from: the machine, the software, and the most memory that was held."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any


@cache
def describe(device: str) -> dict[str, Any]:
    """The machine and the versions, as plain values."""
    from diffan.versions import versions

    described: dict[str, Any] = {
        "device": device.split(":")[0],
        "processor": _processor(),
        "cores": os.cpu_count(),
        "code": code_digest(),
        "versions": versions(),
    }
    if device.startswith("cuda"):
        import torch

        described["gpu"] = torch.cuda.get_device_name(device)
    return described


class PeakMemory:
    """The most memory held since this was made, in MiB: of the process, and on the GPU by torch.

    The process's mark can be put back only on Linux; elsewhere, or where that is forbidden, it is the mark of the
    process's whole life.
    """

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        if self._cuda:
            import torch

            torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> dict[str, int]:
        found = {"rss": _resident_peak()}
        if self._cuda:
            import torch

            found["gpu"] = round(torch.cuda.max_memory_allocated() / 2**20)
        return found


def _resident_peak() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)
    except (OSError, StopIteration):
        import resource

        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def code_digest() -> str:
    """A short hash of the package's source, so that two runs can be told apart between versions."""
    import diffan

    digest = hashlib.sha256()
    root = Path(diffan.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]
