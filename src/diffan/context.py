"""What every stage is given besides its data: the seed, the device, what is known and where to show progress."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from diffan.constraints import Constraints
from diffan.errors import InputError
from diffan.keeping import Forgetful, Keeper
from diffan.progress import Progress, Silent

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Context:
    """The surroundings of one run."""

    seed: int = 0
    device: str = "auto"
    progress: Progress = field(default_factory=Silent)
    constraints: Constraints | None = None  # over the columns of the table that the stages are given
    keeper: Keeper = field(default_factory=Forgetful)  # where stages leave their progress
    threads: int = 1  # for work that falls into independent parts, however many each part computes on

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise InputError(
                f"The 'seed' parameter must be a whole number of 0 or more. Got {self.seed!r} instead."
            )

    def rules(self, n_variables: int) -> Constraints:
        """What the order and the edges must obey; tables without a rule when nothing is known."""
        return self.constraints or Constraints.none(n_variables)

    def rng(self, stage: str) -> np.random.Generator:
        """A random stream of its own for each stage, so that one stage's draws never shift another's."""
        return np.random.default_rng([int(self.seed), zlib.crc32(stage.encode())])

    def torch_device(self) -> torch.device:
        """The device to compute on: 'auto' takes a GPU when there is one."""
        import torch

        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except (RuntimeError, TypeError):
            raise InputError(
                f"The 'device' parameter must be 'auto', 'cpu' or 'cuda[:index]'. Got {self.device!r} instead."
            ) from None
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            found = torch.cuda.device_count()
            raise InputError(
                f"Device {self.device!r} was asked for, but {found} CUDA devices were found; use 'cpu'."
            )
        return device
