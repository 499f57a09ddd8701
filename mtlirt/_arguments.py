"""Checks of arguments: each returns a plain value or raises InputError naming the argument."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from mtlirt.errors import InputError


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        n = int(value)
        if low <= n and (high is None or n <= high):
            return n
    limits = f"{low} or more" if high is None else f"from {low} to {high}"
    raise InputError(f"{name} must be a whole number, {limits}, not {value!r}")


def number(name: str, value: object, low: float, high: float) -> float:
    """A finite number from `low` to `high`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """One of the `allowed` words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def require(what: str, checks: Iterable[tuple[bool, str]]) -> None:
    """Every check of `what`, pairs of a truth and the message where it does not hold."""
    for good, message in checks:
        if not good:
            raise InputError(f"{what}: {message}")


_SMALLEST_LAM, _LARGEST_LAM = 1e-12, 1e12  # beyond these the penalty is lost in rounding, or the loss is


def penalty_weight(value: object) -> float:
    """lam: 0, infinity, or a number between."""
    if isinstance(value, Real) and not isinstance(value, bool):
        lam = float(value)
        if lam in (0, math.inf) or _SMALLEST_LAM <= lam <= _LARGEST_LAM:
            return lam
        if lam > 0:
            raise InputError(
                f"lam = {value!r} is out of reach: take 0 for separate domains, infinity for complete pooling, or a "
                f"number from {_SMALLEST_LAM:g} to {_LARGEST_LAM:g}"
            )
    raise InputError(f"lam must be a number from 0 to infinity, or 'cv', not {value!r}")
