"""Local: leaves found by small denoisers that know every marginal, recomputed only where a removal was felt."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diffan.additive.gram import SplineGram
from diffan.algorithm import LeafFinder, topological_order
from diffan.context import Context
from diffan.ordering.choice import choose, criterion_of
from diffan.ordering.leaves import kept_leaves
from diffan.ordering.result import Ordering
from diffan.pruning import gram_of
from diffan.score.local_batches import SCHEDULE
from diffan.score.local_network import Group, score_derivative
from diffan.score.local_training import train_local
from diffan.score.screening import Screen, screen
from diffan.settings import DiffanSettings, OrderSettings
from diffan.table import Table

Array = npt.NDArray[np.float64]
VALUES_AT_ONCE = 2**26  # hidden values held at once while derivatives are taken
MOST_WITH_EVIDENCE = 1000  # variables; beyond them d^2 criteria would make the saved run too large
WORTH_A_GPU_EACH = 200  # variables per GPU below which one is enough


def find_local_order(table: Table, settings: DiffanSettings, context: Context) -> Ordering:
    """Screen the pairs, train a denoiser for every column, peel leaves; the screen goes along for the edges."""
    device = context.torch_device()
    values = table.values if table.standardized else table.values / table.scale
    started = time.perf_counter()
    rules = context.rules(table.n_variables)
    found, gram = kept_screen(table, settings, context)
    neighbours = found.neighbours | rules.required | rules.required.T
    screened = time.perf_counter()
    groups, losses = train_local(
        values,
        neighbours,
        settings.local,
        context.rng("local"),
        _devices(device, table),
        context.progress,
        context.keeper.stage("train"),
    )
    trained = time.perf_counter()
    criteria = LocalCriteria(groups, ordering_rows(values, settings, context), settings.order, _units(table))
    with context.progress.task("order", max(table.n_variables - 1, 0)) as task:
        finder = kept_leaves(local_finder(criteria), context.keeper.stage("leaves"))

        def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
            task.advance(1)
            return finder(remaining, removed)

        order, evidence = topological_order(find_leaf, table.n_variables, rules.leaves_among)
    finished = time.perf_counter()
    return Ordering(
        order=order,
        evidence=evidence if table.n_variables <= MOST_WITH_EVIDENCE else None,
        neighbours=neighbours,
        gram=gram,
        screened=found.summary(),
        losses=losses,
        timings={
            "screen": screened - started,
            "train": trained - screened,
            "order": finished - trained,
        },
        warnings=_warnings(found, table),
        model=_arrays(groups),
    )


def kept_screen(table: Table, settings: DiffanSettings, context: Context) -> tuple[Screen, SplineGram | None]:
    """The screen, and the Gram matrix it was made from; a screen from a checkpoint comes without."""
    place = context.keeper.stage("screen")
    saved = place.load()
    if saved is not None:
        arrays = saved.arrays
        return Screen(arrays["neighbours"], arrays["strength"], float(arrays["ridge"][0])), None
    gram = gram_of(table, context)
    found = screen(gram, settings.local, context.torch_device())
    place.save(
        {},
        {"neighbours": found.neighbours, "strength": found.strength, "ridge": np.array([found.ridge])},
    )
    return found, gram


class LocalCriteria:
    """The leaf criterion of every variable as candidates disappear; only those who lose one are computed anew."""

    def __init__(
        self,
        groups: Sequence[Group],
        points: npt.NDArray[np.floating],
        settings: OrderSettings,
        scale: Array | None = None,
    ) -> None:
        self._groups, self.settings = groups, settings
        d = points.shape[1]
        self._square = np.ones(d) if scale is None else np.square(scale)
        rows, levels = len(points), settings.noise_levels
        columns = torch.tensor(np.asarray(points, dtype=np.float32)).T.repeat(1, len(levels))  # [d, L k]
        sigma = torch.tensor(levels, dtype=torch.float32).repeat_interleave(rows)
        self._columns = {g.device: columns.to(g.device) for g in groups}
        self._sigma = {g.device: sigma.to(g.device) for g in groups}
        self._present = [group.there.clone() for group in groups]
        self._users: list[list[tuple[int, int, int]]] = [[] for _ in range(d)]  # group, place, slot
        for k, group in enumerate(groups):
            there = group.there.cpu().numpy() > 0
            candidates = group.candidates.cpu().numpy()
            for place, slot in np.argwhere(there):
                self._users[candidates[place, slot]].append((k, int(place), int(slot)))
        self.levels = np.full((len(levels), d), np.nan)  # criteria per noise level
        for k, group in enumerate(groups):
            self._compute(k, list(range(len(group.nodes))))

    def remove(self, column: int) -> None:
        """Take a variable away from everyone who had it as a candidate."""
        felt: dict[int, list[int]] = {}
        for k, place, slot in self._users[column]:
            self._present[k][place, slot] = 0.0
            felt.setdefault(k, []).append(place)
        for k, places in felt.items():
            self._compute(k, places)

    def _compute(self, k: int, places: list[int]) -> None:
        group = self._groups[k]
        device, depth = group.device, len(self.settings.noise_levels)
        columns, sigma = self._columns[device], self._sigma[device]
        at_once = max(1, VALUES_AT_ONCE // (len(sigma) * group.weights[0].shape[1]))
        for first in range(0, len(places), at_once):
            some = torch.tensor(places[first : first + at_once], device=device)
            with torch.no_grad():
                part = group.subset(some)
                inputs = part.inputs(columns, sigma, self._present[k][some][:, :, None], SCHEDULE)
                slope = score_derivative(part.own_derivative(inputs), sigma)  # [a, L k]
            self._keep(part.nodes, slope.view(len(some), depth, -1))

    def _keep(self, nodes: npt.NDArray[np.intp], slopes: Tensor) -> None:
        """Criteria of some nodes from their derivatives [a, L, k]."""
        for level in range(slopes.shape[1]):
            in_units = slopes[:, level].T / torch.as_tensor(self._square[nodes], device=slopes.device)
            self.levels[level, nodes] = criterion_of(in_units, self.settings)


def local_finder(criteria: LocalCriteria) -> LeafFinder:
    """The remaining variable with the least criterion; the last one removed is taken away first."""
    gone: set[int] = set()

    def find_leaf(remaining: Sequence[int], removed: Sequence[int]) -> tuple[int, Array]:
        for column in removed[len(gone) :]:
            criteria.remove(column)
            gone.add(column)
        place, combined = choose(criteria.levels[:, list(remaining)], criteria.settings)
        return remaining[place], combined

    return find_leaf


def ordering_rows(values: npt.NDArray[np.floating], settings: DiffanSettings, context: Context) -> Array:
    """The rows at which derivatives are compared, the same at every step."""
    rng = context.rng("order")
    n = len(values)
    chosen = np.sort(rng.choice(n, min(n, settings.local.local_points), replace=False))
    return np.asarray(values[chosen], dtype=np.float64)


def _units(table: Table) -> Array | None:
    return None if table.standardized else table.scale


def _devices(device: torch.device, table: Table) -> list[torch.device]:
    """Every GPU when the variables are many and no single one was named."""
    if str(device) != "cuda" or torch.cuda.device_count() < 2:
        return [device]
    count = min(torch.cuda.device_count(), max(1, table.n_variables // WORTH_A_GPU_EACH))
    return [torch.device("cuda", k) for k in range(count)]


def _warnings(found: Screen, table: Table) -> tuple[str, ...]:
    if not found.ridge:
        return ()
    return (
        f"{table.n_samples} rows are few for {table.n_variables} variables: the screen of candidate causes was "
        "stabilised and may miss weak ones; give more rows.",
    )


def _arrays(groups: Sequence[Group]) -> dict[str, npt.NDArray[np.float32]]:
    arrays: dict[str, npt.NDArray[np.float32]] = {}
    for k, group in enumerate(groups):
        arrays[f"group{k}.nodes"] = group.nodes.astype(np.float32)
        arrays[f"group{k}.candidates"] = group.candidates.cpu().numpy().astype(np.float32)
        arrays[f"group{k}.there"] = group.there.cpu().numpy()
        for layer, (weight, bias) in enumerate(zip(group.weights, group.biases, strict=True)):
            arrays[f"group{k}.weight{layer}"] = weight.detach().cpu().numpy()
            arrays[f"group{k}.bias{layer}"] = bias.detach().cpu().numpy()
    return arrays
