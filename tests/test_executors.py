"""One loop over tasks, three places to run them: here, on local processes, on a Dask cluster."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from diffan.errors import FitError, InputError
from diffan.executors import RETRIES, WorkerDied, run_tasks

# A module that worker processes can import by name; a test file is none.
TASKS = """
import os, signal, time
from pathlib import Path

def threads(_):
    import torch
    return os.environ["OMP_NUM_THREADS"], torch.get_num_threads()

def die_until(task):
    folder, lives = task
    marks = Path(folder)
    count = len(list(marks.iterdir()))
    (marks / str(count)).touch()
    if count < lives:
        os.kill(os.getpid(), signal.SIGKILL)
    return count

def note_and_wait(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(60)

class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")

def raise_awkward(_):
    raise Awkward("salt", "pepper")

def give_back_a_lambda(_):
    return lambda: 0

def wait_if_told_where(folder):
    if folder is not None:
        note_and_wait(folder)

def process_id(_):
    time.sleep(0.05)
    return os.getpid()
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("importable")
    (folder / "tasks_for_workers.py").write_text(TASKS)
    sys.path.insert(0, str(folder))
    import tasks_for_workers  # type: ignore[import-not-found]

    yield tasks_for_workers
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def cluster(tasks: ModuleType) -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running:
        yield running.scheduler_address


def results(function: Callable, tasks: list, **where: object) -> list:
    return [outcome for _, outcome in sorted(run_tasks(function, tasks, **where), key=operator.itemgetter(0))]


def check_results_and_errors(**where: object) -> None:
    seen: list[int] = []
    outcomes = dict(
        run_tasks(operator.inv, [1, 2, "three", 4], on_done=lambda index, _: seen.append(index), **where)
    )
    assert sorted(seen) == [0, 1, 2, 3]
    assert (outcomes[0], outcomes[1], outcomes[3]) == (-2, -3, -5)
    assert isinstance(outcomes[2], TypeError)


def test_results_and_errors_here() -> None:
    check_results_and_errors()


def test_results_and_errors_on_processes() -> None:
    check_results_and_errors(workers=2)


def test_results_and_errors_on_a_cluster(cluster: str, tasks: ModuleType) -> None:
    check_results_and_errors(scheduler=cluster)
    assert len(set(results(tasks.process_id, list(range(6)), scheduler=cluster))) <= 2
    assert os.getpid() not in results(tasks.process_id, [0], scheduler=cluster)


def test_a_scheduler_that_is_not_there_is_said_so() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="No Dask scheduler answered"):
        list(run_tasks(abs, [1], scheduler="tcp://127.0.0.1:1?"))


def test_tasks_are_taken_only_when_a_place_is_free() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(5):
            taken.append(number)
            yield number

    ended = run_tasks(abs, tasks())
    assert next(ended) == (0, 0)
    assert taken == [0]
    assert [index for index, _ in ended] == [1, 2, 3, 4]


def test_workers_compute_on_one_thread(tasks: ModuleType) -> None:
    assert results(tasks.threads, [0], workers=1) == [("1", 1)]


def test_a_killed_worker_is_replaced_and_its_task_redone(tasks: ModuleType, tmp_path: Path) -> None:
    dying, living = tmp_path / "dying", tmp_path / "living"
    dying.mkdir(), living.mkdir()
    outcomes = results(tasks.die_until, [(dying, RETRIES), (living, 0), (living, 0)], workers=2)
    assert outcomes[0] == RETRIES
    assert sorted(outcomes[1:]) == [0, 1]


def test_a_task_that_always_kills_its_worker_is_given_up(tasks: ModuleType, tmp_path: Path) -> None:
    (outcome,) = results(tasks.die_until, [(tmp_path, 99)], workers=1)
    assert isinstance(outcome, WorkerDied)
    assert "exit code -9" in str(outcome)
    assert len(list(tmp_path.iterdir())) == 1 + RETRIES


def test_what_cannot_travel_is_told_in_words(tasks: ModuleType) -> None:
    awkward = results(tasks.raise_awkward, [0], workers=1)[0]
    assert isinstance(awkward, FitError)
    assert "salt and pepper" in str(awkward)
    assert isinstance(results(tasks.give_back_a_lambda, [0], workers=1)[0], Exception)
    assert isinstance(results(abs, [lambda: 0], workers=1)[0], Exception)


def test_who_stops_listening_stops_the_workers(tasks: ModuleType, tmp_path: Path) -> None:
    ended = run_tasks(tasks.wait_if_told_where, [None, str(tmp_path)], workers=2)
    assert next(ended) == (0, None)
    pid = wait_for_a_file(tmp_path)
    ended.close()  # type: ignore[attr-defined]
    assert not alive(pid)


def test_ctrl_c_leaves_no_worker_behind(tasks: ModuleType, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = tmp_path / "script.py"
    script.write_text(
        "import tasks_for_workers\nfrom diffan.executors import run_tasks\n"
        "if __name__ == '__main__':\n"
        f"    list(run_tasks(tasks_for_workers.note_and_wait, [{str(marks)!r}] * 3, workers=1))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.PIPE, text=True)
    pid = wait_for_a_file(marks)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in error
    assert not alive(pid)


def test_workers_die_with_a_killed_parent(tasks: ModuleType, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    code = (
        "import tasks_for_workers\nfrom diffan.executors import run_tasks\n"
        f"list(run_tasks(tasks_for_workers.note_and_wait, [{str(marks)!r}], workers=1))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    pid = wait_for_a_file(marks)
    process.kill()
    process.wait()
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.1)
    assert not alive(pid)


def test_bad_places_are_refused() -> None:
    with pytest.raises(InputError, match="whole number"):
        run_tasks(abs, [1], workers=-1)
    with pytest.raises(InputError, match="not both"):
        run_tasks(abs, [1], workers=1, scheduler="tcp://127.0.0.1:8786")


def wait_for_a_file(folder: Path) -> int:
    for _ in range(200):
        for file in folder.iterdir():
            return int(file.name)
        time.sleep(0.1)
    raise AssertionError("the worker never began")


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
