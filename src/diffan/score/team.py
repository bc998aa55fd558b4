"""Several processes that train one model: each computes a part of every batch, and gradients are added up.

Every process draws the same noise for the whole batch and takes its own rows of it, so that the sum over processes is
what one process would have computed, up to the order of additions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from diffan.errors import InputError


@dataclass(frozen=True)
class Team:
    """Which of how many processes this one is."""

    rank: int = 0
    size: int = 1

    def share(self, rows: int) -> tuple[int, int]:
        """The rows of a batch that fall to this process, from first to before last."""
        return rows * self.rank // self.size, rows * (self.rank + 1) // self.size

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its sum over all processes, in one message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        torch.distributed.all_reduce(flat)
        first = 0
        for tensor in tensors:
            last = first + tensor.numel()
            tensor.copy_(flat[first:last].view_as(tensor))
            first = last

    def told(self, message: bytes) -> bytes:
        """The first process's message, in every process."""
        if self.size == 1:
            return message
        device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
        length = torch.tensor([len(message)], device=device)
        torch.distributed.broadcast(length, 0)
        content = torch.zeros(int(length), dtype=torch.uint8, device=device)
        if self.rank == 0 and message:
            content.copy_(torch.frombuffer(bytearray(message), dtype=torch.uint8))
        torch.distributed.broadcast(content, 0)
        return content.cpu().numpy().tobytes()


ALONE = Team()


def present_team() -> Team:
    """The processes of the torch.distributed group this one belongs to; itself alone without one."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return ALONE
    size = torch.distributed.get_world_size()
    return Team(torch.distributed.get_rank(), size) if size > 1 else ALONE


@contextmanager
def joined(device: str) -> Iterator[tuple[str, bool]]:
    """Join the processes that torchrun started: the device for this one, and whether it is the one that writes."""
    if not torch.distributed.is_available() or not torch.distributed.is_torchelastic_launched():
        raise InputError(
            "Distributed training needs torchrun; start it as: torchrun --nproc-per-node 2 -m diffan discover ..."
        )
    on_gpu = device != "cpu" and torch.cuda.is_available()
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        rank = torch.distributed.get_rank()
        own = f"cuda:{rank % torch.cuda.device_count()}" if on_gpu and ":" not in device else device
        if own.startswith("cuda"):
            torch.cuda.set_device(own)  # what is sent between processes goes by it
        yield own, rank == 0
        with suppress(RuntimeError):  # no one leaves while others still talk; who failed has left already
            torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()
