"""Which rows and which engine a data set gets, so that memory and time stay bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from diffan.errors import InputError
from diffan.likelihood.settings import LikelihoodSettings

SINGLE = 4  # bytes
MATRICES_PER_FIT = (
    5  # the kernel, the ridged kernel, its factor, its inverse and one more while they are made
)
GPU_MEMORY = 8  # a GPU that runs this has at least this many times the memory we dare to take on a laptop


@dataclass(frozen=True)
class Plan:
    """Rows used in all, rows whose kernels are stored, and the size of a batch of exact fits.

    Exact fits need every row's kernels; when only some are stored, those rank candidates and the fits are low-rank.
    Stored kernels take 4 * columns * rows^2 bytes for each bandwidth.
    """

    rows: int
    stored_rows: int
    batch: int
    batch_cells: int  # numbers in single precision that a batch of fits may hold in all
    bandwidths: int  # whose kernels are stored

    @property
    def exact(self) -> bool:
        return self.stored_rows == self.rows

    def kernel_bytes(self, n_columns: int) -> int:
        """What the stored kernels take."""
        return SINGLE * n_columns * self.stored_rows**2 * self.bandwidths


def kernels_held(device: torch.device, settings: LikelihoodSettings) -> int:
    """The most bytes of stored kernels, of one table or of several in lockstep."""
    more = GPU_MEMORY if device.type != "cpu" else 1
    return more * settings.kernel_memory_mb * 2**20


def plan_for(n_rows: int, n_columns: int, device: torch.device, settings: LikelihoodSettings) -> Plan:
    """The plan for a table of that size on that device; `n_columns` counts shuffled columns too."""
    gpu = device.type != "cpu"
    more = GPU_MEMORY if gpu else 1
    rows = min(
        n_rows, settings.max_rows, max(settings.least_rows, more * settings.row_budget // n_columns**2)
    )
    bandwidths = len(settings.kernel_bandwidths)
    affordable = int(math.sqrt(kernels_held(device, settings) / (SINGLE * n_columns * bandwidths)))
    limit = settings.exact_rows_gpu if gpu else settings.exact_rows
    exact = rows <= (affordable if settings.engine == "exact" else min(affordable, limit))
    if settings.engine == "exact" and not exact:
        raise InputError(
            f"The exact engine for {rows} rows and {n_columns} columns needs more than kernel_memory_mb = "
            f"{settings.kernel_memory_mb}; raise it or take engine='low_rank'."
        )
    if settings.engine == "low_rank" or not exact:
        stored = min(settings.scout_rows, affordable, rows - 1)
    else:
        stored = rows
    cells = more * settings.batch_memory_mb * 2**20 // SINGLE
    return Plan(rows, stored, max(1, cells // (stored**2 * MATRICES_PER_FIT)), cells, bandwidths)
