"""The only door to progress bars. Off unless somebody opens `progress()`, as the command line does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_shown: ContextVar[Progress | None] = ContextVar("mtlirt_progress", default=None)


@contextmanager
def progress() -> Iterator[None]:
    """Show the progress of long work on standard error within this block.

    >>> import mtlirt
    >>> with mtlirt.progress():
    ...     pass
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        token = _shown.set(bars)
        try:
            yield
        finally:
            _shown.reset(token)


@contextmanager
def track(what: str) -> Iterator[Callable[[dict[str, float]], None]]:
    """Yield a function that takes one row of a solver's trace and shows it, or does nothing."""
    bars = _shown.get()
    if bars is None:
        yield lambda row: None
        return
    task = bars.add_task(what, total=None)

    def show(row: dict[str, float]) -> None:
        bars.update(task, description=f"{what}: step {row['step']}, objective {row['objective']:.6g}")

    try:
        yield show
    finally:
        bars.remove_task(task)


@contextmanager
def count(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told how many of `total` steps were done since the last call; None if nobody looks."""
    bars = _shown.get()
    if bars is None:
        yield None
        return
    task, done = bars.add_task(f"{what}: 0 of {total}", total=total), 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        bars.update(task, completed=done, description=f"{what}: {done} of {total}")

    try:
        yield advance
    finally:
        bars.remove_task(task)
