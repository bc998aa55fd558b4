"""The rows that training reads: all of them on the device, or on disk and read a mini-batch at a time.

Rows on disk lie in random order (see `diffan.shuffling`), so a mini-batch is a handful of long pieces drawn at random,
and the first rows serve as the held-out ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.rows import release
from diffan.score.holdout import Split, held_out_count, split_rows
from diffan.settings import ScoreSettings

Ints = npt.NDArray[np.int64]
PIECE_BYTES = 2**16  # read from disk in one go
DEVICE_SHARE = 0.3  # of a GPU's free memory that rows may take


class Batches(Protocol):
    """Mini-batches without end, and where they stand."""

    def advance(self) -> None:
        """Go to the next batch; never inside a captured step."""
        ...

    def clean(self) -> Tensor:
        """The batch, [M, batch, d]; may be called inside a captured step."""
        ...

    def state(self) -> dict[str, Tensor]:
        """What brings new batches of the same kind to this place."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


class TrainingRows(Protocol):
    """A table as training sees it."""

    n_rows: int
    n_variables: int
    device: torch.device

    def split(self, settings: ScoreSettings, rng: np.random.Generator) -> Split: ...

    def everything(self, members: int) -> Ints:
        """A `Split.train` that leaves no row out."""
        ...

    def count(self, train: Ints) -> int:
        """How many rows each network is trained on."""
        ...

    def take(self, rows: Ints) -> Tensor:
        """Rows by number: [M, k] -> [M, k, d]."""
        ...

    def batches(self, train: Ints, batch_size: int, seed: int) -> Batches: ...


def training_rows(
    values: npt.NDArray[np.floating], device: torch.device, columns: Sequence[int] | None = None
) -> TrainingRows:
    """On the device when they are in memory or fit on a GPU, else from disk; only these columns, if given."""
    wanted = list(range(values.shape[1])) if columns is None else list(columns)
    if isinstance(values, np.memmap) and not _fits(values, device):
        return MappedRows(values, device, wanted)
    return ResidentRows(_loaded(values, wanted).to(device))


def _fits(values: npt.NDArray[Any], device: torch.device) -> bool:
    if device.type != "cuda":
        return False
    return bool(values.nbytes < DEVICE_SHARE * torch.cuda.mem_get_info(device)[0])


def _loaded(values: npt.NDArray[np.floating], columns: list[int]) -> Tensor:
    whole = columns == list(range(values.shape[1]))
    return torch.tensor(np.asarray(values if whole else values[:, columns], dtype=np.float32))


class ResidentRows:
    """Rows in one tensor."""

    def __init__(self, data: Tensor) -> None:
        self.data = data  # [n, d]
        self.n_rows, self.n_variables = int(data.shape[0]), int(data.shape[1])
        self.device = data.device

    def split(self, settings: ScoreSettings, rng: np.random.Generator) -> Split:
        return split_rows(self.n_rows, settings, rng)

    def everything(self, members: int) -> Ints:
        return np.tile(np.arange(self.n_rows), (members, 1))

    def count(self, train: Ints) -> int:
        return int(train.shape[1])

    def take(self, rows: Ints) -> Tensor:
        return self.data[torch.as_tensor(rows, device=self.device)]

    def batches(self, train: Ints, batch_size: int, seed: int) -> Batches:
        return _ResidentBatches(self.data, train, batch_size, seed)


class MappedRows:
    """Rows of a memory map in random order; `Split.train` numbers pieces of consecutive rows."""

    def __init__(
        self, values: np.memmap[Any, np.dtype[np.float32]], device: torch.device, columns: list[int]
    ) -> None:
        self.values, self.device = values, device
        self.columns = None if columns == list(range(values.shape[1])) else columns
        self.n_rows, self.n_variables = len(values), len(columns)
        self.piece: int = max(1, min(PIECE_BYTES // (4 * values.shape[1]), self.n_rows // 16))

    def split(self, settings: ScoreSettings, rng: np.random.Generator) -> Split:
        """The same rows held out whatever the seed: their order is random already."""
        members, count = settings.ensemble, held_out_count(self.n_rows, settings)
        folds = self.n_rows // count if settings.holdout_split == "folds" else 1
        starts = [(member % folds) * count for member in range(members)]
        first = np.arange(self.n_rows // self.piece, dtype=np.int64)
        kept = [
            first[((first + 1) * self.piece <= start) | (first * self.piece >= start + count)]
            for start in starts
        ]
        fewest = min(map(len, kept))
        held_out = np.stack([np.arange(start, start + count) for start in starts])
        return Split(train=np.stack([pieces[:fewest] for pieces in kept]), held_out=held_out)

    def everything(self, members: int) -> Ints:
        return np.tile(np.arange(self.n_rows // self.piece, dtype=np.int64), (members, 1))

    def count(self, train: Ints) -> int:
        return int(train.shape[1] * self.piece)

    def take(self, rows: Ints) -> Tensor:
        found = np.asarray(self.values[rows.reshape(-1)], dtype=np.float32)
        release(self.values)
        found = found if self.columns is None else found[:, self.columns]
        return torch.tensor(found.reshape(*rows.shape, -1), device=self.device)

    def batches(self, train: Ints, batch_size: int, seed: int) -> Batches:
        return _MappedBatches(self, train, batch_size, seed)


class _Passes:
    """Shuffled passes over the numbers of rows or pieces, the rest of a pass shorter than a batch left out."""

    def __init__(self, numbers: Tensor, batch: int, seed: int) -> None:
        self._numbers, self._batch = numbers, batch  # [M, count]
        self._shuffler = torch.Generator(numbers.device).manual_seed(seed)
        self._before, self._begun = self._shuffler.get_state(), False  # before the present pass, if any
        self._shuffled, self._used = numbers, int(numbers.shape[1])

    def next(self) -> Tensor:
        if self._used + self._batch > self._numbers.shape[1]:
            self._before, self._begun = self._shuffler.get_state(), True
            self._shuffle()
            self._used = 0
        chosen = self._shuffled[:, self._used : self._used + self._batch]
        self._used += self._batch
        return chosen

    def _shuffle(self) -> None:
        members, count = self._numbers.shape
        orders = [
            torch.randperm(count, generator=self._shuffler, device=self._numbers.device)
            for _ in range(members)
        ]
        self._shuffled = self._numbers.gather(1, torch.stack(orders))

    def state(self) -> dict[str, Tensor]:
        return {"pass": self._before.clone(), "place": torch.tensor([self._used, self._begun])}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._before = state["pass"].clone()
        self._shuffler.set_state(self._before)
        self._used, self._begun = int(state["place"][0]), bool(state["place"][1])
        if self._begun:
            self._shuffle()


class _ResidentBatches:
    def __init__(self, data: Tensor, train: Ints, batch_size: int, seed: int) -> None:
        self._data = data
        numbers = torch.as_tensor(train, device=data.device)  # [M, rows]
        self._full = batch_size >= train.shape[1]
        first = _repeated(numbers, batch_size) if self._full else numbers[:, :batch_size]
        self._rows = first.clone()  # [M, batch]: where a captured step looks
        self._passes = _Passes(numbers, int(self._rows.shape[1]), seed)

    def advance(self) -> None:
        if not self._full:
            self._rows.copy_(self._passes.next())

    def clean(self) -> Tensor:
        return self._data[self._rows]

    def state(self) -> dict[str, Tensor]:
        return self._passes.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        self._passes.restore(state)


class _MappedBatches:
    def __init__(self, rows: MappedRows, train: Ints, batch_size: int, seed: int) -> None:
        self._rows = rows
        pieces = min(max(1, batch_size // rows.piece), train.shape[1])
        self._passes = _Passes(torch.as_tensor(train), pieces, seed)
        shape = (len(train), pieces * rows.piece, rows.n_variables)
        self._buffer = torch.empty(shape, device=rows.device)  # where a captured step looks

    def advance(self) -> None:
        values, length = self._rows.values, self._rows.piece
        chosen = self._passes.next().numpy()  # [M, pieces]
        found = np.concatenate([values[k * length : (k + 1) * length] for k in chosen.reshape(-1)])
        found = found if self._rows.columns is None else found[:, self._rows.columns]
        self._buffer.copy_(torch.from_numpy(found).view_as(self._buffer))
        release(values)  # at once: around each page that is read the system maps many more

    def clean(self) -> Tensor:
        return self._buffer

    def state(self) -> dict[str, Tensor]:
        return self._passes.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        self._passes.restore(state)


def _repeated(rows: Tensor, batch_size: int) -> Tensor:
    """Whole passes over the rows, so that a small table still fills a batch: each row equally often."""
    return rows.repeat(1, max(1, batch_size // rows.shape[1]))
