"""Many independent tasks run by one function: in this process, on local worker processes or on a Dask cluster.

All three are concurrent.futures executors, so there is one loop. Tasks are taken from their iterable only when a place
is free: an iterable that ends early stops the work early.

Local workers are spawned, never forked (a forked copy of a process that has used torch hangs), and each computes on
one thread. A worker that dies is replaced and its task given to the next one, `RETRIES` times at most.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from diffan.errors import FitError, InputError

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 2
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerDied(FitError):
    """The process that ran a task ended without an answer, every time it was tried."""


def run_tasks(
    function: Callable[[T], R],
    tasks: Iterable[T],
    *,
    workers: int = 0,
    scheduler: str | None = None,
    on_done: Callable[[int, R | Exception], None] | None = None,
) -> Iterator[tuple[int, R | Exception]]:
    """Yield (index of the task, its result or the exception it raised) as the tasks end.

    `workers=0` computes here, one task after the other; `workers=4` on four processes; `scheduler="tcp://host:8786"`
    on the Dask cluster at that address. `function` must be importable by name wherever it runs. Whoever stops
    iterating, Ctrl-C included, cancels what has not ended: local workers are killed at once.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise InputError(
            f"The 'workers' parameter must be a whole number of 0 or more. Got {workers!r} instead."
        )
    if workers and scheduler is not None:
        raise InputError("Give either 'workers' or 'scheduler', not both.")
    return _ended(function, tasks, _opened(workers, scheduler), on_done)


def _ended(
    function: Callable[[T], R],
    tasks: Iterable[T],
    opened: Any,
    on_done: Callable[[int, R | Exception], None] | None,
) -> Iterator[tuple[int, R | Exception]]:
    with opened as (executor, places):
        waiting = enumerate(tasks)
        running: dict[Future[R], int] = {}
        try:
            while True:
                for index, task in islice(waiting, places - len(running)):
                    running[executor.submit(function, task)] = index
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, outcome = running.pop(future), _outcome(future)
                    if on_done is not None:
                        on_done(index, outcome)
                    yield index, outcome
        finally:
            for future in running:
                future.cancel()


def _outcome(future: Future[R]) -> R | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, Exception):
        return error
    raise error


@contextmanager
def _opened(workers: int, scheduler: str | None) -> Iterator[tuple[Executor, int]]:
    """An executor and how many tasks it may hold at once."""
    if scheduler is not None:
        with _cluster(scheduler) as found:
            yield found
    elif workers:
        with _LocalProcesses(workers) as processes:
            yield processes, workers
    else:
        yield _ThisProcess(), 1


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "A Dask cluster needs the distributed package: pip install 'diffan[cluster]'."
        ) from None
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"No Dask scheduler answered at {address!r} ({error}); check the address.") from None
    with client:
        yield client.get_executor(pure=False), max(sum(client.nthreads().values()), 1)


class _ThisProcess(Executor):
    """Computes when asked: the future it returns has already ended."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _LocalProcesses(Executor):
    """Spawned workers, each led by a thread that hands it one task at a time and replaces it when it dies."""

    def __init__(self, workers: int) -> None:
        self._leaders = ThreadPoolExecutor(workers, thread_name_prefix="diffan-worker")
        self._own = threading.local()  # each leader's worker
        self._lock = threading.Lock()
        self._processes: list[SpawnProcess] = []
        self._closed = False

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        return self._leaders.submit(self._lead, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()
        self._leaders.shutdown(wait, cancel_futures=cancel_futures)

    def _lead(self, fn: Callable[..., R], args: Any, kwargs: Any) -> R:
        for _ in range(1 + RETRIES):
            process, connection = self._worker()
            answer = _ask(process, connection, (fn, args, kwargs))
            if answer is not None:
                worked, value = answer
                if worked:
                    return value  # type: ignore[no-any-return]
                raise value
            process.join()
        ending = f"exit code {process.exitcode}"
        raise WorkerDied(
            f"The worker process ended ({ending}) at each of {1 + RETRIES} tries; is memory short?"
        )

    def _worker(self) -> tuple[SpawnProcess, Connection]:
        """This leader's worker, a new one if there is none alive."""
        process = getattr(self._own, "process", None)
        if process is None or not process.is_alive():
            with self._lock:
                if self._closed:
                    raise WorkerDied("The workers were stopped before this task ended.")
                spawning = get_context("spawn")
                mine, theirs = spawning.Pipe()
                process = spawning.Process(target=_serve, args=(theirs,), daemon=True)
                process.start()
                theirs.close()
                self._processes = [other for other in self._processes if other.is_alive()] + [process]
            self._own.process, self._own.connection = process, mine
        return self._own.process, self._own.connection


def _ask(process: SpawnProcess, connection: Connection, call: Any) -> tuple[bool, Any] | None:
    """Send a call to a worker and wait for (worked, value); None if the worker died first."""
    message = pickle.dumps(call)  # here, so that what cannot be sent is the task's own error
    try:
        connection.send_bytes(message)
        wait_for_any([connection, process.sentinel])
        if not connection.poll():
            return None
        answer: tuple[bool, Any] = pickle.loads(connection.recv_bytes())
        return answer
    except (EOFError, OSError):
        return None


def _serve(connection: Connection) -> None:
    """A worker's life: answer calls until the other end closes; die with the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _compute_on_one_thread()
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        connection.send_bytes(_answer(message))


def _answer(message: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(message)
        return pickle.dumps((True, fn(*args, **kwargs)))
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            packed = pickle.dumps((False, error))
            pickle.loads(packed)  # some exceptions can be packed but not unpacked
            return packed
        except Exception:
            return pickle.dumps((False, FitError(f"{type(error).__name__}: {error}")))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute_on_one_thread() -> None:
    """For libraries still to be loaded by the environment of this worker, for those loaded by their own switch."""
    for name in _THREAD_VARIABLES:
        os.environ[name] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        threadpool_limits(1)
