"""GraN-DAG's networks: one small MLP per variable, all of them in three batched matrix products.

The masked first layer is the graph: variable i can speak to network j only where mask[i, j] is 1, and the sum over
all paths of products of absolute weights says how strongly it does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

SLOPE = 0.01  # of LeakyReLU below zero


class Networks(NamedTuple):
    """The weights of all d networks with h hidden units, as views of one flat vector."""

    first: Tensor  # [d, d, h]: from variable i into network j
    first_bias: Tensor  # [d, h]
    second: Tensor  # [d, h, h]
    second_bias: Tensor  # [d, h]
    last: Tensor  # [d, h]
    last_bias: Tensor  # [d]
    log_std: Tensor  # [d]: of each variable's noise

    @staticmethod
    def shapes(d: int, hidden: int) -> list[tuple[int, ...]]:
        return [(d, d, hidden), (d, hidden), (d, hidden, hidden), (d, hidden), (d, hidden), (d,), (d,)]

    @classmethod
    def view(cls, flat: Tensor, d: int, hidden: int) -> Networks:
        shapes = cls.shapes(d, hidden)
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        starts = [0, *ends[:-1]]
        return cls(*(flat[a:b].view(shape) for a, b, shape in zip(starts, ends, shapes, strict=True)))


def initial_weights(d: int, hidden: int, rng: np.random.Generator) -> np.ndarray:
    """Glorot-uniform weights, zero biases, unit noise, as one flat vector."""

    def glorot(shape: tuple[int, ...], fan_in: int, fan_out: int) -> np.ndarray:
        bound = math.sqrt(6 / (fan_in + fan_out))
        return rng.uniform(-bound, bound, size=shape)

    parts = [
        glorot((d, d, hidden), d, hidden),
        np.zeros((d, hidden)),
        glorot((d, hidden, hidden), hidden, hidden),
        np.zeros((d, hidden)),
        glorot((d, hidden), hidden, 1),
        np.zeros(d),
        np.zeros(d),
    ]
    return np.concatenate([part.ravel() for part in parts])


def negative_log_likelihood(networks: Networks, mask: Tensor, x: Tensor) -> Tensor:
    """Mean over rows of the Gaussian negative log-likelihood summed over variables, up to a constant."""
    residual = x - predictions(networks, mask, x)
    return (0.5 * (residual * torch.exp(-networks.log_std)).square()).mean(
        dim=0
    ).sum() + networks.log_std.sum()


def predictions(networks: Networks, mask: Tensor, x: Tensor) -> Tensor:
    """Each network's mean of its own variable: [n, d]."""
    _, h2 = _hidden(networks, mask, x)
    return torch.einsum("jnh,jh->nj", leaky_relu(h2, SLOPE), networks.last) + networks.last_bias


def connectivity(networks: Networks, mask: Tensor) -> Tensor:
    """How strongly variable i speaks to network j: the mean over paths of products of absolute weights, [d, d].

    The mean, not the sum, so that the scale depends neither on the width nor on the depth.
    """
    onward = (networks.second.abs() @ networks.last.abs()[:, :, None])[..., 0]  # [d, h]
    hidden = onward.shape[1]
    return mask * torch.einsum("ijh,jh->ij", networks.first.abs(), onward) / hidden**2


def write_gradient(networks: Networks, mask: Tensor, x: Tensor, pull: Tensor, into: Networks) -> None:
    """Write the gradient of likelihood plus sum(pull * connectivity) into `into`.

    Written out by hand: the networks are so small that most of an automatic gradient is bookkeeping.
    """
    n, d, hidden = len(x), x.shape[1], networks.last.shape[1]
    h1, h2 = _hidden(networks, mask, x)  # [d, n, h]
    out = leaky_relu(h2, SLOPE)
    error = (out @ networks.last[:, :, None])[..., 0] + networks.last_bias[:, None] - x.T  # [d, n]
    precision = torch.exp(-2 * networks.log_std)
    torch.sub(1, precision * error.square().mean(dim=1), out=into.log_std)
    error *= precision[:, None] / n
    torch.sum(error, dim=1, out=into.last_bias)
    torch.matmul(error[:, None, :], out, out=into.last[:, None, :])
    back = _slope(h2).mul_(error[..., None]).mul_(networks.last[:, None, :])  # [d, n, h]
    torch.sum(back, dim=1, out=into.second_bias)
    torch.matmul(leaky_relu(h1, SLOPE).mT, back, out=into.second)
    back = (back @ networks.second.mT).mul_(_slope(h1))  # [d, n, h]
    torch.sum(back, dim=1, out=into.first_bias)
    into.first.copy_((x.T @ back.transpose(0, 1).reshape(n, d * hidden)).view(d, d, hidden))
    into.first.mul_(mask[:, :, None])
    _add_pull(networks, mask * pull / hidden**2, into)


def _add_pull(networks: Networks, pull: Tensor, into: Networks) -> None:
    second, last = networks.second.abs(), networks.last.abs()
    onward = (second @ last[:, :, None])[..., 0]  # [d, h]
    into.first.addcmul_(pull[:, :, None] * onward, networks.first.sign())
    onward_pull = torch.einsum("ij,ijh->jh", pull, networks.first.abs())
    into.second.addcmul_(onward_pull[:, :, None] * last[:, None, :], networks.second.sign())
    into.last.addcmul_((onward_pull[:, None, :] @ second)[:, 0], networks.last.sign())


def mean_absolute_jacobian(networks: Networks, mask: Tensor, x: Tensor) -> Tensor:
    """The mean over rows of |d prediction_j / d x_i|: [d, d]."""
    h1, h2 = _hidden(networks, mask, x)  # [d, n, h]
    back = _slope(h2) * networks.last[:, None, :]
    back = _slope(h1) * (back @ networks.second.mT)  # [d, n, h]
    weights = mask[:, :, None] * networks.first  # [d, d, h]
    return torch.stack([(back[j] @ weights[:, j].T).abs().mean(dim=0) for j in range(x.shape[1])], dim=1)


def _hidden(networks: Networks, mask: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    d, _, hidden = networks.first.shape
    weights = (mask[:, :, None] * networks.first).view(d, d * hidden)
    h1 = (x @ weights).view(-1, d, hidden).transpose(0, 1) + networks.first_bias[:, None, :]  # [d, n, h]
    h2 = torch.baddbmm(networks.second_bias[:, None, :], leaky_relu(h1, SLOPE), networks.second)  # [d, n, h]
    return h1, h2


def _slope(before: Tensor) -> Tensor:
    return (before > 0).to(before.dtype).mul_(1 - SLOPE).add_(SLOPE)
