"""What a run takes of the machine: threads, memory, and the pauses of Python's garbage collector.

One thread for small tables, so that a busy machine does not stall them.

Networks and kernels over a few thousand rows gain little from a second thread, and lose tenfold when the cores are
shared: threads then wait for one another at every small step. Whole fits that need nothing of each other are another
matter: each is computed on one thread, and as many side by side as there are threads to be had.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from diffan.errors import FitError

SMALL_TABLE = 50_000  # cells; measured at 1000 x 20, where one thread is done in 15 s


def threads_to_be_had() -> int:
    """As many as torch was told to use, or would use; before a block below limits them."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def modest_threads(n_cells: int) -> Iterator[None]:
    """Within the block torch computes on one thread if the table is small; then as many as before."""
    torch = sys.modules.get("torch")
    if torch is None or n_cells > SMALL_TABLE:
        yield
        return
    with one_thread():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Within the block torch computes on one thread, so that sums come out alike in whichever process they run."""
    import torch  # before the block, which may be the first to need it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def no_collection() -> Iterator[None]:
    """Within the block Python does not look for garbage in cycles.

    A hundred searches in lockstep hold millions of tuples and no cycles, through all of which it looks again and again.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def explained_memory() -> Iterator[None]:
    """Within the block a lack of memory ends in a sentence that says what to do."""
    try:
        yield
    except MemoryError:
        raise FitError(
            "The computer's memory is not enough for this table; sample rows with rows=, or select columns."
        ) from None
    except RuntimeError as error:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        raise FitError(
            "The GPU's memory is not enough; take device='cpu', or lower kernel_memory_mb, batch_memory_mb and memory_mb."
        ) from None
