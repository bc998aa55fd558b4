"""How much of each column all the others explain, linearly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def linear_r2(values: FloatArray) -> FloatArray:
    """R^2 of each column in a linear regression on all others: [d]; defined for fewer rows than columns too."""
    if values.shape[1] == 1:
        return np.zeros(1)
    precision = np.linalg.pinv(np.corrcoef(values, rowvar=False), hermitian=True)
    return 1.0 - 1.0 / np.clip(np.diag(precision), 1.0, None)
