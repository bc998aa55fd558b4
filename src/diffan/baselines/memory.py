"""Memory stated before it is taken: a method that compares all pairs of rows says when they are too many."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from diffan.errors import FitError

if TYPE_CHECKING:
    import torch


def require_memory(
    method: str, bytes_for: Callable[[int], int], n_samples: int, device: torch.device
) -> None:
    """Refuse a table that would not fit, and say how many of its rows would."""
    free = free_bytes(device)
    if free is None or bytes_for(n_samples) <= free:
        return
    fitting = largest_fitting(bytes_for, free, n_samples)
    raise FitError(
        f"{method} compares all pairs of rows: {n_samples:,} rows need {bytes_for(n_samples) / 1e9:,.1f} GB of "
        f"memory and {free / 1e9:,.1f} GB are free on {device}. Give it at most {fitting:,} rows, for example a "
        f"random subset, or use a method whose memory grows with the rows alone, such as 'diffan'."
    )


def free_bytes(device: torch.device) -> int | None:
    """Memory that can still be taken on the device; None where the system does not tell."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    known = [free for free in (_available_to_the_machine(), _left_in_the_container()) if free is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def largest_fitting(bytes_for: Callable[[int], int], free: int, n_samples: int) -> int:
    """The most rows, fewer than `n_samples`, that fit into `free` bytes."""
    low, high = 0, n_samples
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_for(middle) <= free else (low, middle)
    return low


def _available_to_the_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def _left_in_the_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = ((folder / name).read_text() for name in ("memory.max", "memory.current"))
        return int(limit) - int(used)
    except (OSError, ValueError):  # no container, or no limit
        return None
