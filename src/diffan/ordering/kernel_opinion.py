"""What a Stein kernel says about the same derivatives.

The network and the kernel estimate d s_j / d x_j from the same rows but err in other ways: the network smooths and, when
columns are masked, asks for the score of the whole; the kernel has no notion of what a smooth mechanism is but is
computed for the remaining columns alone. Together they order better than either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.ordering.points import Opinion
from diffan.score.stein import SteinEstimate

RIDGE = 0.001  # as SCORE


def kernel_opinion(values: npt.NDArray[np.float64], device: torch.device) -> Opinion:
    """An opinion from these rows, standardised; it depends on the remaining columns alone, not on how they came about."""
    points = torch.tensor(values, dtype=torch.float64, device=device)

    def derivatives(remaining: Sequence[int]) -> Tensor:
        return SteinEstimate(points[:, list(remaining)], ridge=RIDGE).hessian_diagonal()

    return derivatives
