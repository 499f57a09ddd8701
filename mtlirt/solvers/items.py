"""The item step: slopes and intercepts given the traits, one bounded two-parameter logistic regression per item."""

from dataclasses import dataclass

import numpy as np

_CHUNK_ITEMS = 512  # nodes x items in float64 stay in the second-level cache
_RIDGE = 1e-8  # share of an item's weight added to the Hessian's diagonal, where an item has no information
_CURVATURE = 0.5  # accept a step if the slope along it has turned by at most this share (strong Wolfe condition)


@dataclass(frozen=True)
class ItemStep:
    """a, d : (J,) new slopes and intercepts.  decrement : (J,) decrease that the quadratic model promised at the start,
    half the squared projected-gradient norm in the metric of the Hessian."""

    a: np.ndarray
    d: np.ndarray
    decrement: np.ndarray


def item_step(
    x: np.ndarray,
    weights: np.ndarray,
    right_x: np.ndarray,
    right: np.ndarray,
    a: np.ndarray,
    d: np.ndarray,
    C: float,
    max_passes: int,
    groups: np.ndarray | None = None,
) -> ItemStep:
    """Lower sum_k w_kj softplus(a_j x_k + d_j) - a_j right_x_j - d_j right_j over 0 <= a <= C, |d| <= C.

    Projected Newton: each pass solves the 2 x 2 quadratic model in the box exactly, and a step is taken if the slope
    along it has not turned too far, which needs no logarithm; the losses are convex.

    Parameters
    ----------
    x : (K,) positions of nodes (or traits).
    weights : (K, J) weight of each position for each item; or (T, K) with `groups` (J,) naming each item's row.
    right_x, right : (J,) sums over models of score * trait and of score.
    """
    new_a, new_d, decrement = np.array(a), np.array(d), np.zeros(len(a))
    for start in range(0, len(a), _CHUNK_ITEMS):
        s = slice(start, start + _CHUNK_ITEMS)
        w = weights[:, s] if groups is None else weights[groups[s]].T
        new_a[s], new_d[s], decrement[s] = _newton(
            x, np.ascontiguousarray(w), right_x[s], right[s], a[s], d[s], C, max_passes
        )
    return ItemStep(new_a, new_d, decrement)


def _newton(
    x: np.ndarray,
    w: np.ndarray,
    right_x: np.ndarray,
    right: np.ndarray,
    a: np.ndarray,
    d: np.ndarray,
    C: float,
    max_passes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    answers = np.abs(w).sum(axis=0)
    ridge = _RIDGE * np.where(answers > 0, answers, 1.0)
    powers = np.stack([np.ones_like(x), x, np.square(x)])

    def model(a: np.ndarray, d: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, ...]:
        z = np.multiply.outer(x, a)
        z += d
        np.exp(z, out=z)
        q = 1 / (1 + z)
        z *= q
        z *= w if len(j) == w.shape[1] else w[:, j]
        gd, ga = powers[:2] @ z
        z *= q
        hdd, had, haa = powers @ z
        return ga - right_x[j], gd - right[j], haa + ridge[j], had, hdd + ridge[j]

    a, d = a.copy(), d.copy()
    todo = np.arange(len(a))
    ga, gd, haa, had, hdd = model(a, d, todo)
    sa, sd = _box_step(ga, gd, haa, had, hdd, a, d, C)
    slope = ga * sa + gd * sd
    decrement = -slope - 0.5 * (haa * sa**2 + 2 * had * sa * sd + hdd * sd**2)
    enough = 1e-14 * (np.abs(right) + ridge / _RIDGE)
    length = np.ones(len(a))
    for _ in range(max_passes):
        keep = -slope > enough[todo]
        todo, sa, sd, slope, length = todo[keep], sa[keep], sd[keep], slope[keep], length[keep]
        if not len(todo):
            break
        ta = np.clip(a[todo] + length * sa, 0.0, C)
        td = np.clip(d[todo] + length * sd, -C, C)
        ga, gd, haa, had, hdd = model(ta, td, todo)
        turned = ga * sa + gd * sd
        good = turned <= -_CURVATURE * slope
        a[todo[good]], d[todo[good]] = ta[good], td[good]
        na, nd = _box_step(ga, gd, haa, had, hdd, ta, td, C)
        length = np.where(good, 1.0, length * slope / (slope - turned))
        sa, sd = np.where(good, na, sa), np.where(good, nd, sd)
        slope = np.where(good, ga * na + gd * nd, slope)
    return a, d, decrement


def _box_step(
    ga: np.ndarray,
    gd: np.ndarray,
    haa: np.ndarray,
    had: np.ndarray,
    hdd: np.ndarray,
    a: np.ndarray,
    d: np.ndarray,
    C: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the quadratic model within the box, exactly.

    If the free minimum leaves the box, the minimum lies on a side that the free minimum crosses, so at most two
    candidates are compared.
    """
    det = haa * hdd - had**2
    free_a, free_d = (had * gd - hdd * ga) / det, (had * ga - haa * gd) / det
    a1 = np.clip(free_a, -a, C - a)
    d1 = np.clip(-(gd + had * a1) / hdd, -C - d, C - d)
    d2 = np.clip(free_d, -C - d, C - d)
    a2 = np.clip(-(ga + had * d2) / haa, -a, C - a)

    def loss(sa: np.ndarray, sd: np.ndarray) -> np.ndarray:
        return ga * sa + gd * sd + 0.5 * (haa * sa**2 + 2 * had * sa * sd + hdd * sd**2)

    second = loss(a2, d2) < loss(a1, d1)
    return np.where(second, a2, a1), np.where(second, d2, d1)
