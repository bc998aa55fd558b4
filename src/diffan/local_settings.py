"""The settings of the local variant: the screen, the small denoisers, their training.

"measured" is our own tuning on seeds below 1000 (`benchmarks/local_ladder.py`), "choice" a matter of taste or safety.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from diffan.checks import one_of, whole, within


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """One small denoiser for every variable over the few others that can matter to it."""

    screen_functions: int = 5  # choice: smooth functions of a column that the screen looks at
    screen_top: int = 12  # measured (8 and 20 give the same): a pair is kept when it is among this many strongest of either end
    screen_marginal: int = 2  # choice: the strongest marginal dependences, kept as a safety net
    screen_level: float = 0.5  # choice: expected false candidates of a variable, by the chi-square null
    screen_most: int = 64  # choice: candidates of a hub at most

    local_width: int = 64  # measured
    local_depth: int = 2  # measured: hidden layers
    local_rate: float = 3e-3  # measured: the rate at the start; it falls to zero along a cosine
    local_decay: float | None = None  # None: 1 up to 1,000 rows, falling as 1/n
    local_dropout: float | None = None  # None: 0.2 up to 2,000 rows, else 0
    local_averaging: float = 0.99  # choice: decay of the running average of the weights
    local_batch: int | None = None  # None: at most 1,024 rows on a GPU, 256 on a CPU
    local_steps: int | None = (
        None  # None: 600 at 1,000 rows to 3,000 at 25,000 and more; a CPU stops at 1,000
    )
    local_patience: int = 5  # choice: looks at the held-out loss without a better one before stopping
    local_absent: float = 0.5  # measured: share of training rows that lack random candidates
    local_holdout: float = 0.1  # choice: share of the rows held out, at most 2,000
    local_bf16: bool = False  # choice: products in bfloat16 while training; not measured to pay beside TF32
    local_points: int = 1024  # choice: rows at which derivatives are compared

    def __post_init__(self) -> None:
        for name in ("screen_functions", "screen_top", "screen_most", "local_width", "local_depth"):
            whole(self, name, least=1)
        whole(self, "screen_marginal", least=0)
        one_of(self, "local_bf16", (False, True))
        whole(self, "local_patience", least=1)
        whole(self, "local_points", least=2)
        for name in ("local_batch", "local_steps"):
            if getattr(self, name) is not None:
                whole(self, name, least=1)
        within(self, "screen_level", 0.0, math.inf, open_low=True, open_high=True)
        within(self, "local_rate", 0.0, math.inf, open_low=True, open_high=True)
        if self.local_decay is not None:
            within(self, "local_decay", 0.0, math.inf, open_high=True)
        if self.local_dropout is not None:
            within(self, "local_dropout", 0.0, 1.0, open_high=True)
        within(self, "local_averaging", 0.0, 1.0, open_high=True)
        within(self, "local_absent", 0.0, 1.0)
        within(self, "local_holdout", 0.0, 0.5, open_low=True)

    def steps_for(self, n_rows: int, *, gpu: bool) -> int:
        """More rows carry more detail, and can be trained on for longer before they are learnt by heart.

        Measured at 500 variables and 100,000 rows: 1,500, 3,000, 6,000 and 12,000 steps reverse 4.6, 3.6, 3.6 and
        3.2 % of the edges, and 1.4, 1.2, 1.2 and 1.0 % after the moves among neighbours.
        """
        if self.local_steps is not None:
            return self.local_steps
        return int(min(3000 if gpu else 1000, max(400, 600 * (n_rows / 1000) ** 0.5)))

    def decay_for(self, n_rows: int) -> float:
        return self.local_decay if self.local_decay is not None else min(1.0, 1000 / n_rows)

    def dropout_for(self, n_rows: int) -> float:
        if self.local_dropout is not None:
            return self.local_dropout
        return 0.2 if n_rows <= 2000 else 0.0

    def batch_for(self, n_rows: int, *, gpu: bool) -> int:
        return min(n_rows, self.local_batch or (1024 if gpu else 256))
