"""Fits over one table or several at once, solved in batches.

A GPU is kept busy by the size of a batch, so fits of all tables that are asked for together share one as long as they
have as many rows; a CPU by its cache, so its batches are small and go to as many threads as it was given, each of
which works on its own. What is held at once is bounded by `batch_memory_mb`, beside the tables' bells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from diffan.likelihood.entropy import statistics_of
from diffan.likelihood.exact import (
    inverse,
    leave_one_out,
    leave_one_out_from_factors,
    likelihood_slope_weights,
    require_factored,
)
from diffan.likelihood.factors import inverse_factors
from diffan.likelihood.fits import Fit
from diffan.likelihood.kernel import ColumnKernels, kernel_matrix, multiplied, sent
from diffan.likelihood.lines import Lines, promised_lines
from diffan.likelihood.low_rank import BLOCK_CELLS, low_rank_residuals
from diffan.likelihood.plan import Plan
from diffan.likelihood.relaxation import relaxed_weights
from diffan.threads import one_thread

FloatArray = npt.NDArray[np.float64]
CACHE_CELLS = 2**18  # of kernels that a core's cache holds beside what is made of them; choice
LINE = 10.0  # what a line adds counts for so much more than a slope, which promises several times what it gives; choice
LOW_RANK_TENSORS = 4  # of rows x landmarks that a low-rank fit holds: kernel, bell, features, turned features
LOW_RANK_SQUARES = 12  # of landmarks x landmarks, those in double precision counted twice


class Columns:
    """One table's columns on the device, and the bells between its stored rows."""

    def __init__(self, rows: Tensor, n_nodes: int, plan: Plan, bandwidths: Sequence[float]) -> None:
        """`rows` is [n, columns], of which the first `n_nodes` may be fitted; all may be parents."""
        self.points = rows.T.contiguous()  # [columns, n]
        self.n_nodes, self.plan = n_nodes, plan
        self.kernels = {h: ColumnKernels(rows[: plan.stored_rows], h) for h in bandwidths}


class Wanted(NamedTuple):
    """A fit, and what of it is wanted."""

    columns: Columns
    fit: Fit
    landmarks: int | None  # that its residuals are fitted with; None for all rows
    residuals: bool = False
    slopes: bool = False
    weights: bool = False  # not a fit: its parents are candidates to be weighed
    kept: bool = False  # the residuals themselves, not only their statistics


class Batch(NamedTuple):
    """Places among the wanted whose residuals were found, with these, and the same for what ranks columns."""

    fitted: list[int]
    residuals: Tensor | None  # [fitted, n]
    ranked: list[int]
    ranks: Tensor | None  # [ranked, nodes]: slopes, or weights
    failures: list[Tensor]  # a yes among them: some matrix could not be factored

    def at(self, places: Sequence[int]) -> Batch:
        """The same with places in a longer list, of which those given were solved."""
        fitted, ranked = ([places[k] for k in some] for some in (self.fitted, self.ranked))
        return self._replace(fitted=fitted, ranked=ranked)


class Answers(NamedTuple):
    """What was found of each fit that was wanted."""

    statistics: FloatArray  # of the residuals, [fits, 4]; NaN where none were wanted
    ranks: list[list[float] | None]  # slopes or weights [nodes], where they were wanted
    kept: list[FloatArray | None]  # the residuals themselves [n], where they were wanted


Solver = Callable[[Sequence[Wanted]], Batch]


def solve(wanted: Sequence[Wanted], threads: int = 1) -> Answers:
    """Everything that is wanted, in as few batches as there can be; a GPU is waited for once, at the end."""
    found = list(batches(wanted, threads))
    by_rows: dict[int, list[Batch]] = {}
    for batch in found:
        if batch.residuals is not None:
            by_rows.setdefault(batch.residuals.shape[1], []).append(batch)
    of_rows = [
        statistics_of(torch.cat([batch.residuals for batch in some if batch.residuals is not None]))
        for some in by_rows.values()
    ]
    copies = [copy for batch in found if (copy := _kept_of(batch, wanted)) is not None]
    solved = _on_its_way(of_rows)
    ranked = _on_its_way([batch.ranks for batch in found if batch.ranks is not None])
    failed = _on_its_way([failed[None] for batch in found for failed in batch.failures])
    if wanted and wanted[0].columns.points.is_cuda:
        torch.cuda.current_stream(wanted[0].columns.points.device).synchronize()
    if failed is not None:
        require_factored(failed.any())
    statistics = np.full((len(wanted), 4), np.nan)
    ranks: list[list[float] | None] = [None] * len(wanted)
    if solved is not None:
        statistics[[place for some in by_rows.values() for batch in some for place in batch.fitted]] = (
            solved.numpy()
        )
    if ranked is not None:
        places = [place for batch in found for place in batch.ranked]
        for place, row in zip(places, ranked.double().tolist(), strict=True):
            ranks[place] = row
    kept: list[FloatArray | None] = [None] * len(wanted)
    for places, copied in copies:
        for place, residuals in zip(places, copied.double().numpy(), strict=True):
            kept[place] = residuals
    return Answers(statistics, ranks, kept)


def _kept_of(batch: Batch, wanted: Sequence[Wanted]) -> tuple[list[int], Tensor] | None:
    """Places whose residuals are wanted themselves, and these on their way to the CPU's memory: [places, n]."""
    chosen = [k for k, place in enumerate(batch.fitted) if wanted[place].kept]
    if batch.residuals is None or not chosen:
        return None
    residuals = batch.residuals[_index(chosen, batch.residuals)]
    return [batch.fitted[k] for k in chosen], residuals.to("cpu", non_blocking=True)


def _on_its_way(parts: Sequence[Tensor]) -> Tensor | None:
    """The parts as one tensor that is being copied to the CPU's memory; not to be read before it has arrived."""
    return torch.cat(list(parts)).to("cpu", non_blocking=True) if parts else None


def batches(wanted: Sequence[Wanted], threads: int = 1) -> Iterator[Batch]:
    """The answers batch by batch; a fit with slopes and landmarks is answered in two."""
    work = list(_shared_out(wanted))

    def run(job: tuple[Solver, list[int]]) -> list[Batch]:
        return list(_in_parts(job[0], wanted, job[1]))

    on_cpu = bool(wanted) and wanted[0].columns.points.device.type == "cpu"
    if threads == 1 or len(work) == 1 or not on_cpu:
        for job in work:
            yield from run(job)
        return
    with one_thread(), ThreadPoolExecutor(min(threads, len(work))) as pool:
        found = list(pool.map(run, work))
    for some in found:
        yield from some


def _shared_out(wanted: Sequence[Wanted]) -> Iterator[tuple[Solver, list[int]]]:
    """What can be solved at once, and how."""
    low_rank: dict[tuple[int, int, int, bool], list[int]] = {}  # (rows, landmarks, parents, lines) -> places
    exact: dict[tuple[int, int, bool], list[int]] = {}  # (rows, stored rows, with slopes) -> places
    relaxed: dict[int, list[int]] = {}  # stored rows -> places
    on_cpu = bool(wanted) and wanted[0].columns.points.device.type == "cpu"
    for place, want in enumerate(wanted):
        plan = want.columns.plan
        if want.residuals and want.landmarks is not None:
            lines = on_cpu and want.fit.kernel.lines > 0  # there no fit's bits may hang on those beside it
            low_rank.setdefault((plan.rows, want.landmarks, len(want.fit.parents), lines), []).append(place)
        if want.weights:
            relaxed.setdefault(plan.stored_rows, []).append(place)
        elif want.slopes or (want.residuals and want.landmarks is None):
            exact.setdefault((plan.rows, plan.stored_rows, want.slopes), []).append(place)
    for solver, groups in ((_relaxed, relaxed.values()), (_exact, exact.values())):
        for places in groups:
            size = 1 if on_cpu else wanted[places[0]].columns.plan.batch
            yield from ((solver, part) for part in _parts(places, size))
    for (rows, landmarks, *_), places in low_rank.items():
        held = wanted[places[0]].columns.plan.batch_cells
        per_fit = LOW_RANK_TENSORS * rows * landmarks + LOW_RANK_SQUARES * landmarks**2
        size = max(1, CACHE_CELLS // (rows * landmarks) if on_cpu else held // per_fit)
        cells = held // LOW_RANK_TENSORS
        in_blocks = partial(_low_rank, cells=min(cells, BLOCK_CELLS) if on_cpu else cells)
        yield from ((in_blocks, part) for part in _parts(places, size))


def _parts(places: list[int], size: int) -> Iterator[list[int]]:
    return (places[k : k + size] for k in range(0, len(places), size))


def _in_parts(solver: Solver, wanted: Sequence[Wanted], places: list[int]) -> Iterator[Batch]:
    """A batch, in halves if the GPU's memory does not hold it."""
    try:
        yield solver([wanted[place] for place in places]).at(places)
        return
    except torch.cuda.OutOfMemoryError:
        if len(places) == 1:
            raise
    half = len(places) // 2  # after the exception is gone, and with it what the failed attempt held
    yield from _in_parts(solver, wanted, places[:half])
    yield from _in_parts(solver, wanted, places[half:])


def _low_rank(wanted: Sequence[Wanted], *, cells: int) -> Batch:
    """Residuals from landmarks; as many parents and landmarks for all."""
    points, targets = _gathered(wanted)
    failures: list[Tensor] = []
    residuals = low_rank_residuals(
        points.mT,  # [fits, n, P]
        targets.contiguous(),
        n_landmarks=wanted[0].landmarks or 0,
        ridge=sent([want.fit.kernel.ridge for want in wanted], points),
        interaction=sent([want.fit.kernel.interaction for want in wanted], points),
        bandwidth=sent([want.fit.kernel.bandwidth for want in wanted], points),
        lines=sent([want.fit.kernel.lines for want in wanted], points) if _with_lines(wanted) else None,
        cells=cells,
        failures=failures,
    )
    return Batch(list(range(len(wanted))), residuals, [], None, failures)


def _exact(wanted: Sequence[Wanted]) -> Batch:
    """Residuals where this engine is the one that counts, and slopes, which all want or none; on the stored rows."""
    steep = wanted[0].slopes
    kernels, targets = _kernels(wanted)
    shifted = kernels.clone() if steep else kernels
    ridges = sent([want.fit.kernel.ridge for want in wanted], targets)
    shifted.diagonal(dim1=-2, dim2=-1).add_(ridges[:, None])
    mine = [k for k, want in enumerate(wanted) if want.residuals and want.landmarks is None]
    straight = _straight(wanted) if _with_lines(wanted) else None
    if not steep:
        factors, failed = inverse_factors(shifted)
        return Batch(mine, leave_one_out_from_factors(factors, targets, straight), [], None, [failed])
    failures: list[Tensor] = []
    inverses = inverse(shifted, failures)
    promised = None
    if straight is not None:
        lines = Lines(straight, inverses @ straight)
        inverses.baddbmm_(lines.taken, lines.taken.mT, alpha=-1.0)
        promised = _promised(wanted, inverses, targets, lines)
    residuals = leave_one_out(inverses, targets)[_index(mine, targets)] if mine else None
    weights = likelihood_slope_weights(inverses, targets).mul_(kernels)
    slopes = targets.new_empty((len(wanted), wanted[0].columns.n_nodes))
    for bells, some in _by_bells(wanted):
        chosen = slice(some[0], some[-1] + 1) if some[-1] - some[0] < len(some) else _index(some, weights)
        slopes[chosen] = bells.slopes(weights[chosen], slopes.shape[1])
    shares = sent([0.5 * want.fit.kernel.interaction for want in wanted], targets)
    slopes *= shares[:, None]
    if promised is not None:
        slopes += promised
    return Batch(mine, residuals, list(range(len(wanted))), slopes, failures)


def _with_lines(wanted: Sequence[Wanted]) -> bool:
    return any(want.fit.kernel.lines > 0 for want in wanted)


def _straight(wanted: Sequence[Wanted]) -> Tensor:
    """Each fit's parents on the stored rows, in units of its lines: [fits, rows, most parents]."""
    points = _gathered(wanted)[0][..., : wanted[0].columns.plan.stored_rows]
    sizes = sent([want.fit.kernel.lines**0.5 for want in wanted], points)
    return (points * sizes[:, None, None]).mT


def _promised(wanted: Sequence[Wanted], inverses: Tensor, targets: Tensor, lines: Lines) -> Tensor:
    """What a straight line in each column adds, beside the slope towards its bell: [fits, nodes]; 0 for fits without lines."""
    rows, n_nodes = wanted[0].columns.plan.stored_rows, wanted[0].columns.n_nodes
    points = torch.stack([want.columns.points[:n_nodes, :rows] for want in wanted])  # [fits, nodes, rows]
    found = promised_lines(points, inverses, targets)
    scale = ((inverses @ targets[..., None])[..., 0] * targets).mean(dim=-1)  # [fits]
    needed = lines.gains(targets, scale)
    found = functional.pad(found, (0, 1)).scatter_(1, _places_of_parents(wanted, found), needed)[:, :n_nodes]
    counted = sent([LINE if want.fit.kernel.lines > 0 else 0.0 for want in wanted], found)
    return found * counted[:, None]


def _places_of_parents(wanted: Sequence[Wanted], into: Tensor) -> Tensor:
    """Each fit's parents, filled up with a column after the last node: [fits, most parents]. Shuffled columns are there too."""
    n_nodes, most = wanted[0].columns.n_nodes, max(len(want.fit.parents) for want in wanted)
    places = [[min(p, n_nodes) for p in sorted(want.fit.parents)] for want in wanted]
    return _index([own + [n_nodes] * (most - len(own)) for own in places], into)


def _relaxed(wanted: Sequence[Wanted]) -> Batch:
    """The weights of everyone's candidates, from the stored rows."""
    rows, n_nodes = wanted[0].columns.plan.stored_rows, wanted[0].columns.n_nodes
    points, targets = _gathered(wanted)
    failures: list[Tensor] = []
    weights = relaxed_weights(points[..., :rows].mT.contiguous(), targets[:, :rows], failures)
    ranks = weights.new_zeros((len(wanted), n_nodes + 1))
    ranks.scatter_(1, _places_of_parents(wanted, weights), weights)
    return Batch([], None, list(range(len(wanted))), ranks[:, :n_nodes], failures)


def _kernels(wanted: Sequence[Wanted]) -> tuple[Tensor, Tensor]:
    """K_P between the stored rows, and the targets there: [fits, rows, rows] and [fits, rows]."""
    rows = wanted[0].columns.plan.stored_rows
    if wanted[0].columns.points.is_cuda:
        points, targets = _gathered(wanted)
        rows_of = points[..., :rows].mT  # [fits, rows, P]
        shares = sent([want.fit.kernel.interaction for want in wanted], points)
        widths = sent([want.fit.kernel.bandwidth for want in wanted], points)
        return kernel_matrix(rows_of, rows_of, shares, widths), targets[:, :rows]
    targets = torch.stack([want.columns.points[want.fit.node, :rows] for want in wanted])
    kernels = targets.new_ones((len(wanted), rows, rows))
    for product, want in zip(kernels.unbind(0), wanted, strict=True):
        bells = want.columns.kernels[want.fit.kernel.bandwidth].each
        multiplied(product, (bells[p] for p in sorted(want.fit.parents)), want.fit.kernel.interaction)
    return kernels, targets


def _gathered(wanted: Sequence[Wanted]) -> tuple[Tensor, Tensor]:
    """Each fit's parents and its node: [fits, most parents, n], filled up with columns of zeros, and [fits, n]."""
    tables = [of_one[0].columns.points for of_one in _by_table(wanted)]
    zeros, most = sum(map(len, tables)), max(len(want.fit.parents) for want in wanted)
    stacked = torch.cat([*tables, tables[0].new_zeros((1, tables[0].shape[1]))])
    places, offset = list[list[int]](), 0
    for of_one in _by_table(wanted):
        for want in of_one:
            own = [offset + p for p in sorted(want.fit.parents)]
            places.append([*own, *[zeros] * (most - len(own)), offset + want.fit.node])
        offset += len(of_one[0].columns.points)
    found = stacked[_index(places, stacked)]
    return found[:, :-1], found[:, -1]


def _index(places: Sequence[int] | Sequence[Sequence[int]], into: Tensor) -> Tensor:
    """Places on the device of the tensor they are taken from, without waiting for what it is busy with."""
    here = torch.tensor(places, dtype=torch.int64)
    return here if into.device.type == "cpu" else here.pin_memory().to(into.device, non_blocking=True)


def _by_table(wanted: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Runs of fits over the same table."""
    for _, run in groupby(wanted, key=lambda want: id(want.columns)):
        yield list(run)


def _by_bells(wanted: Sequence[Wanted]) -> Iterator[tuple[ColumnKernels, list[int]]]:
    """Places of fits over the same table with the same bandwidth, and that table's bells."""
    found: dict[int, tuple[ColumnKernels, list[int]]] = {}
    for place, want in enumerate(wanted):
        bells = want.columns.kernels[want.fit.kernel.bandwidth]
        found.setdefault(id(bells), (bells, []))[1].append(place)
    yield from found.values()
