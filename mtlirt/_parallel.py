"""The only door to threads and processes."""

import os
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from mtlirt._arguments import whole
from mtlirt._version import __version__
from mtlirt.errors import InputError

_ANSWER_WITHIN = 10  # seconds
_ADDRESS = re.compile(r"\w+://(?P<host>[^/]+):(?P<port>\d+)/?")
_LOOK_EVERY = 0.3  # seconds between two looks at what the processes have done

Tick = Callable[[], None]


@cache
def _controller() -> ThreadpoolController:
    import numpy  # noqa: F401  its BLAS must be loaded before it can be found

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread within this block.

    Sums then come out the same on any machine, and small products are not slowed by threads that wait for each other.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


def check_jobs(n_jobs: object) -> int:
    """A number of processes: positive, or -1 for one per core."""
    jobs = whole("n_jobs (--jobs)", n_jobs, -1)
    if jobs == 0:
        raise InputError("n_jobs (--jobs) must be a positive whole number, or -1 for all cores, not 0")
    return jobs


def _processes(n_jobs: object) -> int:
    """How many processes there will be: 1 where -1 finds one core, or where this is itself a task."""
    jobs = check_jobs(n_jobs)
    if jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def run_tasks(
    function: Callable[[Any, Tick], Any],
    tasks: Sequence[Any],
    n_jobs: int,
    advance: Callable[[int], None] | None = None,
) -> list[Any]:
    """[function(task, tick) for each task], in the order of the tasks, on `n_jobs` processes (-1: one for each core).

    Each task calls tick() whenever a step of its work is done; `advance` is told the number of ticks. BLAS runs on one
    thread in every task, so the numbers do not depend on n_jobs.
    """
    n_jobs = _processes(n_jobs)
    if n_jobs == 1 or len(tasks) == 1:
        with one_blas_thread():
            return [function(task, _silent if advance is None else lambda: advance(1)) for task in tasks]
    from joblib import Parallel, delayed

    with _ticks(advance) as tick:
        return list(Parallel(n_jobs=n_jobs)(delayed(_on_one_thread)(function, task, tick) for task in tasks))


def _on_one_thread(function: Callable[[Any, Tick], Any], task: Any, tick: Tick) -> Any:
    with one_blas_thread():
        return function(task, tick)


def as_done(
    function: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int = 1, scheduler: str | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (position of the task, function(task)) as tasks end, in any order.

    They run on `n_jobs` processes as in `run_tasks`, or on the workers of a running dask scheduler at the address
    `scheduler`. A task whose worker dies is run by another.
    """
    n_jobs = _processes(n_jobs)
    if scheduler is not None:
        yield from _on_cluster(function, tasks, scheduler)
    elif n_jobs == 1 or len(tasks) == 1:
        with one_blas_thread():
            for number, task in enumerate(tasks):
                yield number, function(task)
    elif tasks:
        from joblib import Parallel

        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(_calls(function, tasks, os.getpid()))


def _calls(function: Callable[[Any], Any], tasks: Sequence[Any], parent: int | None) -> Iterator[Any]:
    from joblib import delayed

    return (delayed(_numbered)(function, number, task, parent) for number, task in enumerate(tasks))


def _numbered(function: Callable[[Any], Any], number: int, task: Any, parent: int | None) -> tuple[int, Any]:
    if parent is not None:
        _stop_orphan(parent)
    _controller().limit(limits=1, user_api="blas")  # for good: other threads of a worker may be within a task
    return number, function(task)


def check_scheduler(scheduler: object) -> None:
    """InputError unless `scheduler` is None, or the address of something that answers."""
    if scheduler is None:
        return
    match = _ADDRESS.fullmatch(scheduler) if isinstance(scheduler, str) else None
    if match is None:
        raise InputError(f"a scheduler's address looks like tcp://host:8786, not {scheduler!r}")
    try:
        socket.create_connection((match["host"], int(match["port"])), timeout=_ANSWER_WITHIN).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"no dask scheduler answers at {scheduler!r} ({error})") from error


def _on_cluster(function: Callable[[Any], Any], tasks: Sequence[Any], scheduler: str) -> Iterator[tuple[int, Any]]:
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise InputError("a scheduler needs the extra dask: pip install 'mtlirt[dask]'") from error
    from joblib import Parallel, parallel_config

    try:
        client = Client(scheduler, timeout=_ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no dask scheduler answers at {scheduler!r} ({error})") from error
    with client:
        _check_workers(client, scheduler)
        if tasks:
            with parallel_config("dask", client=client):
                results = Parallel(return_as="generator_unordered")(_calls(function, tasks, None))
            yield from results


def _check_workers(client: Any, scheduler: str) -> None:
    try:
        versions = client.run(_version)
    except ModuleNotFoundError as error:
        raise InputError(f"a worker of {scheduler!r} cannot import what it needs ({error})") from error
    other = sorted({v for v in versions.values() if v != __version__})
    if other:
        raise InputError(f"workers of {scheduler!r} have mtlirt {', '.join(other)}, and this is {__version__}")


def _version() -> str:
    return __version__


def _silent() -> None:
    """Nobody counts."""


def _stop_orphan(parent: int) -> None:
    """End this process if it was started by `parent` and that has gone; a task may also run in `parent` itself."""
    if parent not in (os.getpid(), os.getppid()):
        os._exit(1)


class _Tick:
    """Counts across processes: every tick appends one byte to a file. A process whose parent has gone stops."""

    def __init__(self, path: str | None) -> None:
        self.path, self.parent = path, os.getpid()

    def __call__(self) -> None:
        _stop_orphan(self.parent)
        if self.path is not None:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            os.write(handle, b".")
            os.close(handle)


@contextmanager
def _ticks(advance: Callable[[int], None] | None) -> Iterator[Tick]:
    """A tick that can be sent to other processes, and a thread that passes the counts on to `advance`."""
    if advance is None:
        yield _Tick(None)
        return
    with tempfile.NamedTemporaryFile(prefix="mtlirt-ticks-") as file:
        done = threading.Event()

        def watch() -> None:
            seen, last = 0, False
            while not last:
                last = done.wait(_LOOK_EVERY)
                now = Path(file.name).stat().st_size
                if now > seen:
                    advance(now - seen)
                seen = now

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield _Tick(file.name)
        finally:
            done.set()
            watcher.join()
