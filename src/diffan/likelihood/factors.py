r"""Inverse factors of symmetric positive definite matrices, many at a time: W with $M^{-1} = W' W$, lower triangular.

Leave-one-out residuals need the diagonal of the inverse and one product with it, and the squared column norms of W are
that diagonal: half the work of the inverse itself. Split in two, [[A, B'], [B, C]] has the factor
[[W_A, 0], [-W_S L W_A, W_S]] with L = B W_A' and S = C - L L', so that nearly all work is matrix products, which a GPU
does for all matrices of a batch at once; its library would factor them one after the other.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAF = 128  # rows below which a GPU's own batched routines are asked; choice
BLOCK = 96  # rows of a triangular inverse at a time; measured on one core, 64 to 192, 200 to 1000 rows


def inverse_factors(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """(W, whether some matrix could not be factored): [..., n, n] and a single yes or no."""
    if matrices.device.type == "cpu":
        root, failed = torch.linalg.cholesky_ex(matrices)
        return triangular_inverse(root), (failed != 0).any()
    return factors_by_halves(matrices)


def factors_by_halves(matrices: Tensor, *, leaf: int = LEAF) -> tuple[Tensor, Tensor]:
    """The same by halving down to `leaf` rows: what a GPU is given."""
    n = matrices.shape[-1]
    identity = torch.eye(min(leaf, n), dtype=matrices.dtype, device=matrices.device)
    failures: list[Tensor] = []
    found = torch.zeros_like(matrices)
    _factor_into(found, matrices, identity, failures)
    return found, (torch.stack(failures) != 0).any()


def _factor_into(out: Tensor, matrices: Tensor, identity: Tensor, failures: list[Tensor]) -> None:
    n = matrices.shape[-1]
    if n <= len(identity):
        root, failed = torch.linalg.cholesky_ex(matrices)
        failures.append(failed)
        eye = identity[:n, :n].expand_as(root)
        out.copy_(torch.linalg.solve_triangular(root, eye, upper=False))
        return
    cut = _cut(n, len(identity))
    first, rest = out[..., :cut, :cut], out[..., cut:, cut:]
    _factor_into(first, matrices[..., :cut, :cut], identity, failures)
    below = matrices[..., cut:, :cut] @ first.mT  # L
    _factor_into(rest, matrices[..., cut:, cut:] - below @ below.mT, identity, failures)
    out[..., cut:, :cut] = (rest @ (below @ first)).neg_()


def triangular_inverse(roots: Tensor, *, block: int = BLOCK) -> Tensor:
    """The inverses of lower triangular matrices, [..., n, n], a block of rows after the other.

    Products leave out the blocks that are zero, so that a third of n^3 multiplications are done, at the speed of products.
    """
    n = roots.shape[-1]
    identity = torch.eye(min(block, n), dtype=roots.dtype, device=roots.device)
    found = torch.zeros_like(roots)
    for start in range(0, n, block):
        end = min(start + block, n)
        own = roots[..., start:end, start:end]
        eye = identity[: end - start, : end - start].expand_as(own)
        corner = torch.linalg.solve_triangular(own, eye, upper=False)
        found[..., start:end, start:end] = corner
        if start:
            below = corner.neg() @ roots[..., start:end, :start]
            for left in range(0, start, block):
                above = found[..., left:start, left : left + block]
                found[..., start:end, left : left + block] = below[..., left:] @ above
    return found


def _cut(n: int, leaf: int) -> int:
    """About half, in whole leaves, so that all but the last leaf are alike."""
    leaves = -(-n // leaf)
    return leaf * (leaves // 2)
