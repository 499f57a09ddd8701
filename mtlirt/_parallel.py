"""The only door to threads and processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


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
