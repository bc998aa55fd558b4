"""What every training step shares: the optimiser, its rate, and a step that a GPU replays as one graph.

Networks this small spend their time on kernel launches, not arithmetic; a graph launches a whole step at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

EAGER_STEPS = 3  # before a capture, so that the optimiser's state and the libraries' work space exist


def adamw(
    weights: Sequence[Tensor], others: Sequence[Tensor], *, weight_decay: float, rate: float
) -> torch.optim.AdamW:
    """AdamW that decays the weights alone; on a GPU one that can be captured."""
    device = weights[0].device
    on_gpu = device.type == "cuda"
    return torch.optim.AdamW(
        [
            {"params": list(weights), "weight_decay": weight_decay},
            {"params": list(others), "weight_decay": 0.0},
        ],
        # A captured step reads the rate from memory, so that it can change between replays.
        lr=torch.tensor(rate, device=device) if on_gpu else rate,
        fused=True,
        capturable=on_gpu,
    )


def set_cosine_rate(optimiser: torch.optim.Optimizer, rate: float, share: float) -> None:
    """The rate after a share of the training: along half a cosine, to zero at its end."""
    now = rate * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(now)
        else:
            group["lr"] = now


def optimiser_state(optimiser: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> dict[str, Tensor]:
    """The parameters and what the optimiser remembers of each, as copies."""
    found = {f"parameter.{k}": value.detach().clone() for k, value in enumerate(parameters)}
    for k, parameter in enumerate(parameters):
        for name, value in optimiser.state.get(parameter, {}).items():
            found[f"optimiser.{k}.{name}"] = value.clone()
    return found


def restore_optimiser(
    optimiser: torch.optim.Optimizer, parameters: Sequence[Tensor], state: dict[str, Tensor]
) -> None:
    """The inverse of `optimiser_state`; only before the first step."""
    for k, parameter in enumerate(parameters):
        start = f"optimiser.{k}."
        moments = {name[len(start) :]: state[name] for name in state if name.startswith(start)}
        with torch.no_grad():
            parameter.copy_(state[f"parameter.{k}"])
        if moments:
            optimiser.state[parameter] = {name: value.to(parameter.device) for name, value in moments.items()}


def aside(update: Callable[[], None], device: torch.device) -> None:
    """An eager step on a stream of its own, as those before a capture have to be."""
    side: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        update()
    torch.cuda.current_stream(device).wait_stream(side)


def captured(update: Callable[[], None], noise: torch.Generator) -> torch.cuda.CUDAGraph | None:
    """The step as a graph, recorded but not run; None where it cannot be recorded."""
    graph = torch.cuda.CUDAGraph()
    try:
        graph.register_generator_state(noise)
        with torch.cuda.device(noise.device), torch.cuda.graph(graph):
            update()
    except (RuntimeError, AttributeError):
        return None
    return graph
