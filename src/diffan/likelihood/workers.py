"""Independent fits on several cores: one fit per thread, each thread computing alone.

Threads inside one matrix operation wait for one another at every step, which a busy machine makes slow; threads
that each do a whole fit do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

MOST_WORKERS = 8
T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_on_cores(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """work(item) for every item, in their order; torch keeps to one thread per core meanwhile."""
    workers = min(available_cores(), MOST_WORKERS, len(items))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if workers <= 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, items))
    finally:
        torch.set_num_threads(before)
