"""Run the same recipe on parts of the rows, many times, and count what comes out.

Subsamples are complementary pairs of halves: a half is what the error bound of stability selection asks for, and the
kernel fits of a half cost an eighth. A score model that was trained on all rows is not trained again: its derivatives
are taken at the replicate's rows, and the order is then mended, and the edges are chosen, from these rows alone. What
that does to the frequencies is measured in benchmarks/confidence.py and told in docs/confidence.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

import diffan
from diffan.checkpoint import checksum
from diffan.confidence import Confidence, Replicate, Scheme, count
from diffan.context import Context
from diffan.errors import InputError
from diffan.executors import run_tasks
from diffan.files import write_text
from diffan.finish import is_wide
from diffan.likelihood.work import Work, finish
from diffan.ordering.result import Ordering
from diffan.recipe import Model, Recipe
from diffan.table import Table
from diffan.table_checks import MIN_ROWS
from diffan.threads import no_collection, one_thread

MOST_WITHOUT_MODEL = (
    16  # choice: replicates that train first take long, and a stopped run loses those under way
)
RunTasks = Callable[..., Iterator[tuple[int, Any]]]
"""run(function, tasks, workers=..., scheduler=...) yields (index of a task, its result or the exception it raised)."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceSettings:
    """How many replicates, of what kind, and where they run."""

    replicates: int = 100  # choice: frequencies are then known to about 0.05
    scheme: Scheme = (
        "subsample"  # choice: the error bound needs it, and repeated rows mislead leave-one-out fits
    )
    expected_false: float = 1.0  # choice: the threshold expects at most this many edges by chance
    reuse: bool = True  # measured: see docs/confidence.md; False trains every replicate's score anew
    workers: int = 0  # processes; 0 computes in this one
    scheduler: str | None = None  # address of a Dask cluster to run on instead, such as "tcp://host:8786"
    folder: str | os.PathLike[str] | None = (
        None  # where finished replicates are kept, so that a run can be resumed
    )

    def __post_init__(self) -> None:
        if self.scheme not in get_args(Scheme):
            raise InputError(
                f"The 'scheme' parameter must be 'subsample' or 'bootstrap'. Got {self.scheme!r} instead."
            )
        step = 2 if self.scheme == "subsample" else 1
        if not _whole(self.replicates) or self.replicates < 2 or self.replicates % step:
            kind = "an even number (pairs of halves)" if step == 2 else "a whole number"
            raise InputError(
                f"The number of replicates must be {kind} of 2 or more. Got {self.replicates!r} instead."
            )
        if not _whole(self.workers) or self.workers < 0:
            raise InputError(
                f"The 'workers' parameter must be a whole number of 0 or more. Got {self.workers!r} instead."
            )
        if not self.expected_false > 0:
            raise InputError(
                f"The 'expected_false' parameter must be above 0. Got {self.expected_false!r} instead."
            )

    def kept_beside(self, checkpoint: str | os.PathLike[str] | None) -> ConfidenceSettings:
        """The same with finished replicates kept in the checkpoint, unless a folder for them was named."""
        if checkpoint is None or self.folder is not None:
            return self
        return replace(self, folder=Path(checkpoint) / "replicates")

    @classmethod
    def of(cls, given: int | ConfidenceSettings) -> ConfidenceSettings | None:
        """Settings as they are, a number of replicates, or None for 0."""
        if isinstance(given, ConfidenceSettings):
            return given
        if _whole(given) and given == 0:
            return None
        return cls(replicates=given)


@dataclass(frozen=True, eq=False)
class Job:
    """Everything a replicate needs; sent to the process that runs it."""

    table: Table  # columns in canonical order
    recipe: Recipe
    context: Context  # the seed of the whole run, its device and constraints; silent
    scheme: Scheme
    model: Model | None = field(default=None, repr=False)

    def run(self, index: int) -> Replicate:
        """The replicate of that number: the same on one thread of any process."""
        with one_thread():
            return finish(self._steps(*self._drawn(index)))

    def run_together(self, indices: Sequence[int]) -> Iterator[tuple[int, Replicate]]:
        """(place among the indices, replicate) as they end, all in lockstep: what they ask for shares batches.

        A replicate does not depend on those beside it but by the rounding of a GPU's batched products: on a CPU it has
        the same bits as alone.
        """
        from diffan.likelihood.search import in_lockstep

        with one_thread(), no_collection():
            drawn = [self._drawn(index) for index in indices]
            tables, contexts = [part for part, _ in drawn], [context for _, context in drawn]
            orders = self.recipe.orders_together(tables, contexts, self.model)
            works = [
                self._steps(part, context, orders[k] if orders else None)
                for k, (part, context) in enumerate(drawn)
            ]
            yield from in_lockstep(works)

    def at_once(self) -> int:
        """How many replicates may run in lockstep: as many as the memory for stored kernels holds, 1 for no gain.

        Only a GPU gains, and only from kernel fits: it computes many in the time of one.
        """
        wide = is_wide(self.table) if self.recipe.wide is None else self.recipe.wide
        if wide or not self.recipe.fits_kernels:
            return 1
        device = self.context.torch_device()
        if device.type == "cpu":
            return 1
        from diffan.likelihood.passes import tables_at_once

        rows = self.table.n_samples // (2 if self.scheme == "subsample" else 1)
        held = tables_at_once(rows, self.table.n_variables, device, self.recipe.likelihood_settings)
        trained = self.model and self.recipe.reuses_model(self.table)
        return held if trained else min(held, MOST_WITHOUT_MODEL)

    def _drawn(self, index: int) -> tuple[Table, Context]:
        """A replicate's rows and its surroundings."""
        part = self.table.rows(drawn_rows(self.table.n_samples, self.context.seed, self.scheme, index))
        seed = int(_stream(self.context.seed, "run", index).integers(2**31))
        return part, replace(self.context, seed=seed)

    def _steps(self, part: Table, context: Context, first: Ordering | None = None) -> Work[Replicate]:
        """Order, mend and choose as any run does; `first` is the order to mend, where it is known already."""
        find_order, mend, judge = self.recipe.steps(self.model)
        rules = context.rules(part.n_variables)
        ordering = find_order(part, context) if first is None else first
        ordering = replace(ordering, order=rules.mended(ordering.order))
        if mend is not None:
            ordering = yield from mend(ordering, part, context)
        evidence = (yield from judge(ordering, part, context)).settled(rules, ordering.order)
        edges = tuple((int(i), int(j)) for i, j in np.argwhere(evidence.chosen))
        return Replicate(tuple(int(i) for i in ordering.order), edges)

    def key(self, index: int) -> str:
        """A name that no replicate of another table, recipe, seed or version shares."""
        rules = self.context.rules(self.table.n_variables)
        told = (diffan.__version__, repr(self.recipe), self.context.seed, self.context.device, self.scheme)
        digest = hashlib.sha256(repr((*told, self.model is not None, index)).encode())
        digest.update(self.table.fingerprint().encode())
        for name in ("must_precede", "required", "forbidden", "ancestors", "not_ancestors"):
            digest.update(getattr(rules, name).tobytes())
        return digest.hexdigest()[:32]


def measure(
    job: Job, settings: ConfidenceSettings, context: Context, *, run: RunTasks = run_tasks
) -> Confidence:
    """Run the replicates that are not there yet, show how far it is, and count them all."""
    _refuse_unfit(job, settings)
    store = _Store(job, settings.folder)
    wanted = range(settings.replicates)
    found = {index: replicate for index in wanted if (replicate := store.read(index)) is not None}
    missing = [index for index in wanted if index not in found]
    with context.progress.task("confidence", total=settings.replicates) as task:
        task.advance(len(found))
        ended = _ended(job, missing, settings, run)
        for place, outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome
            found[missing[place]] = outcome
            store.write(missing[place], outcome)
            task.advance()
    rules = context.rules(job.table.n_variables)
    return count(
        [found[index] for index in wanted],
        job.table.names,
        rules,
        scheme=settings.scheme,
        expected_false=settings.expected_false,
    )


def _ended(
    job: Job, indices: Sequence[int], settings: ConfidenceSettings, run: RunTasks
) -> Iterator[tuple[int, Any]]:
    """(place among the indices, replicate or exception) as they end."""
    here = run is run_tasks and not settings.workers and settings.scheduler is None
    together = job.at_once() if here and indices else 1
    if together == 1:
        yield from run(partial(_run, job), indices, workers=settings.workers, scheduler=settings.scheduler)
        return
    for first in range(0, len(indices), together):
        for place, replicate in job.run_together(indices[first : first + together]):
            yield first + place, replicate


def drawn_rows(n: int, seed: int, scheme: Scheme, index: int) -> npt.NDArray[np.intp]:
    """The rows of a replicate: halves come in pairs 2k, 2k + 1 that share no row; a bootstrap repeats rows."""
    if scheme == "bootstrap":
        return np.sort(_stream(seed, "bootstrap", index).integers(n, size=n))
    shuffled = _stream(seed, "halves", index // 2).permutation(n)
    half = n // 2
    return np.sort(shuffled[:half] if index % 2 == 0 else shuffled[half : 2 * half])


class _Store:
    """Finished replicates as small JSON files; one that cannot be read is run again."""

    def __init__(self, job: Job, folder: str | os.PathLike[str] | None) -> None:
        self._job, self._folder = job, None if folder is None else Path(folder)

    def read(self, index: int) -> Replicate | None:
        if self._folder is None:
            return None
        try:
            content = json.loads(self._file(index).read_text(encoding="utf-8"))
            if content.pop("checksum") != checksum(content):
                return None
            order = tuple(int(i) for i in content["order"])
            edges = tuple((int(i), int(j)) for i, j in content["edges"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        d = self._job.table.n_variables
        place = {node: k for k, node in enumerate(order)}
        fits = sorted(order) == list(range(d)) and all(
            i in place and j in place and place[i] < place[j] for i, j in edges
        )
        return Replicate(order, edges) if fits else None

    def write(self, index: int, replicate: Replicate) -> None:
        if self._folder is not None:
            content = {"order": replicate.order, "edges": replicate.edges}
            write_text(self._file(index), json.dumps(content | {"checksum": checksum(content)}) + "\n")

    def _file(self, index: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._job.key(index)}.json"


def _run(job: Job, index: int) -> Replicate:
    return job.run(index)


def _refuse_unfit(job: Job, settings: ConfidenceSettings) -> None:
    if settings.scheme == "subsample" and job.table.n_samples < 2 * MIN_ROWS:
        raise InputError(
            f"Confidence from halves of the rows needs {2 * MIN_ROWS} rows or more. "
            f"Got {job.table.n_samples}; collect more rows."
        )
    if settings.scheme == "bootstrap" and job.recipe.fits_kernels:
        raise InputError(
            "A bootstrap repeats rows, and a leave-one-out fit sees a repeated row's twin; take scheme='subsample', or "
            "edges='additive' with refine='additive' or False."
        )


def _stream(seed: int, use: str, index: int) -> np.random.Generator:
    return np.random.default_rng([int(seed), zlib.crc32(f"confidence {use}".encode()), index])


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
