"""Wall seconds, processor seconds and peak memory of a piece of work."""

import os
import platform
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Clock:
    """wall, cpu : seconds, filled in when the block ends; cpu counts child processes that have ended."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    out, wall, cpu = Clock(), time.perf_counter(), _cpu()
    yield out
    out.wall, out.cpu = time.perf_counter() - wall, _cpu() - cpu


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_gib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def machine() -> str:
    """Processor, cores, load and versions, in one line."""
    import numpy

    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    load = os.getloadavg()[0]
    return (
        f"{models[0] if models else name}, {os.cpu_count()} cores, load {load:.1f} at the start, "
        f"Python {platform.python_version()}, numpy {numpy.__version__}"
    )


@contextmanager
def memory_of_all() -> Iterator[list[float]]:
    """Watch the memory of this process and its descendants; the list then holds the peak of their sum in GiB.

    Pages that processes share are counted once (proportional set size).
    """
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], sum(map(_pss_gib, _family(os.getpid()))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _family(int(child))


def _pss_gib(pid: int) -> float:
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("Pss:"))) / 2**20
    return 0.0
