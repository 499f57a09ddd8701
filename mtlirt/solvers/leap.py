"""Extrapolation over sweeps: three points in a row say where the sweeps are creeping to.

Squared extrapolation (SQUAREM; Varadhan and Roland 2008, Scandinavian Journal of Statistics 35, scheme S3): with the
differences r of the first two points and v of the differences, the point older + 2 s r + s**2 v with s = |r| / |v|.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mtlirt.core.projection import project, standardise
from mtlirt.solvers.coupling import Space, Traits, sines_apart


@dataclass(frozen=True)
class Point:
    """Where a sweep ended."""

    traits: Traits
    a: np.ndarray
    d: np.ndarray


def stretch(older: Point, old: Point, now: Point) -> float:
    """The factor s by which to stretch the sweeps' steps; 1 and less is no gain."""
    first = second = 0.0
    for x, y, z in zip(*map(_arrays, (older, old, now)), strict=True):
        r = y - x
        first += float(np.square(r).sum())
        second += float(np.square(z - y - r).sum())
    return float(np.sqrt(first / second)) if second > 0 else 1.0


def leap(
    older: Point,
    old: Point,
    now: Point,
    s: float,
    space: Space,
    feasible: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Point:
    """The extrapolated point, made feasible (its slopes and intercepts by `feasible`); the losses of its traits are not
    known yet."""
    theta, general, a, d = (
        x + 2 * s * (y - x) + s**2 * (z - 2 * y + x) for x, y, z in zip(*map(_arrays, (older, old, now)), strict=True)
    )
    C, fused, T = space.C, now.traits.fused, len(theta)
    theta = space.project(theta, np.arange(T))
    if T <= 2:
        general = theta[0].copy()
    elif space.lam.any():
        general = (project(general[None], C) if fused.any() else standardise(general[None]))[0]
    theta[fused] = general
    sine = now.traits.sine
    if space.lam.any():
        sine = np.where(fused, 0.0, sines_apart(general, theta))
    return Point(replace(now.traits, theta=theta, general=general, sine=sine), *feasible(a, d))


def _arrays(point: Point) -> tuple[np.ndarray, ...]:
    return point.traits.theta, point.traits.general, point.a, point.d
