"""Wall seconds, processor seconds and peak memory of a piece of work."""

import os
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Clock:
    """wall, cpu : seconds, filled in when the block ends."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    out, wall, cpu = Clock(), time.perf_counter(), time.process_time()
    yield out
    out.wall, out.cpu = time.perf_counter() - wall, time.process_time() - cpu


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
