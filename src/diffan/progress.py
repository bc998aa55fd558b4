"""Progress as a thing passed in: silent by default, a rich bar when the command line asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Task(Protocol):
    """One bar: advance it by some steps, with a short note on where it stands."""

    def advance(self, steps: int = 1, note: str = "") -> None: ...


class Progress(Protocol):
    """Opens a bar for a stage; `total=None` when the length is not known beforehand."""

    def task(self, label: str, total: int | None = None) -> AbstractContextManager[Task]: ...


class _SilentTask:
    def advance(self, steps: int = 1, note: str = "") -> None:
        pass


class Silent:
    """Shows nothing."""

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Task]:
        yield _SilentTask()


class RichProgress:
    """Bars on the terminal's standard error; nothing when it is not a terminal."""

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Task]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
            bar = bars.add_task(label, total=total, note="")

            class _Bar:
                def advance(self, steps: int = 1, note: str = "") -> None:
                    bars.update(bar, advance=steps, note=note)

            yield _Bar()
