"""The item step of nominal models: slopes and intercepts of all options given the traits, one ridge-penalised
multinomial regression per item."""

import numpy as np

from mtlirt.core.options import OptionProblem
from mtlirt.solvers.items import ItemStep

_CHUNK_CELLS = 131_072  # items x options x nodes in float64 stay in the second-level cache
_ARMIJO = 1e-4
_HALVINGS = 14
_ENOUGH = 1e-14  # share of an item's loss below which a promised decrease is rounding


def option_step(
    problem: OptionProblem,
    x: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray | None,
    theta: np.ndarray,
    a: np.ndarray,
    c: np.ndarray,
    max_passes: int,
) -> ItemStep:
    """Lower, item by item, sum_m w_m log sum_k exp(a_k x_m + c_k) - a . R - c . S + ridge / 2 (|a|**2 + |c|**2).

    Newton on all 2 K parameters of an item at once; the loss is convex, and a step is halved until the loss falls.

    Parameters
    ----------
    x : (M,) positions of nodes (or traits).
    weights : (M, J) weight of each position for each item; or (T, M) with `groups` (J,) naming each item's row.
    theta : (T, N) traits, for R = sum over models of the options' shares times the trait; S is that of the shares.
    a, c : (J, K).
    """
    new_a, new_c, decrement = a.copy(), c.copy(), np.zeros(len(a))
    right = problem.target_by_trait(theta)
    for group in problem.groups:
        K = group.target.shape[1]
        step = max(1, _CHUNK_CELLS // (K * len(x)))
        for start in range(0, len(group.items), step):
            items = group.items[start : start + step]
            w = weights[:, items].T if groups is None else weights[groups[items]]
            sums = np.stack([right[items, :K], problem.counts[items, :K]], axis=1)
            begin = np.stack([a[items, :K], c[items, :K]], axis=1)
            end, decrement[items] = _newton(x, w, sums, begin, problem.ridge, max_passes)
            new_a[items, :K], new_c[items, :K] = end[:, 0], end[:, 1]
    return ItemStep(new_a, new_c, decrement)


def _newton(
    x: np.ndarray, w: np.ndarray, sums: np.ndarray, begin: np.ndarray, ridge: float, max_passes: int
) -> tuple[np.ndarray, np.ndarray]:
    """(I, 2, K) parameters, from `begin`, and the decrease (I,) promised there.  w : (I, M).  sums : (I, 2, K)."""
    powers = np.stack([np.ones_like(x), x, np.square(x)])
    at = begin.copy()
    todo = np.arange(len(at))
    promised = np.zeros(len(at))
    for number in range(max_passes):
        value, p = _loss(powers[1], w[todo], sums[todo], at[todo], ridge)
        gradient, step = _direction(powers, w[todo], p, sums[todo], at[todo], ridge)
        slope = (gradient * step).sum(axis=(1, 2))
        if number == 0:
            promised = -slope / 2
        moving = -slope > _ENOUGH * np.abs(value)
        todo = todo[moving]
        if not len(todo):
            break
        at[todo] = _line_search(
            powers[1], w[todo], sums[todo], at[todo], step[moving], slope[moving], value[moving], ridge
        )
    return at, promised


def _loss(
    x: np.ndarray, w: np.ndarray, sums: np.ndarray, at: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """(I,) losses and (I, K, M) probabilities of the options at the nodes."""
    p = at[:, 0, :, None] * x + at[:, 1, :, None]
    top = p.max(axis=1, keepdims=True)
    p -= top
    np.exp(p, out=p)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    lse = (np.log(total) + top)[:, 0]
    value = np.einsum("im,im->i", w, lse) - (at * sums).sum(axis=(1, 2))
    return value + ridge / 2 * np.square(at).sum(axis=(1, 2)), p


def _direction(
    powers: np.ndarray, w: np.ndarray, p: np.ndarray, sums: np.ndarray, at: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """(I, 2, K) gradients and Newton steps."""
    n_items, K, _ = p.shape
    q = w[:, None, :] * p
    by_power = q @ powers.T
    gradient = by_power[:, :, 1::-1].transpose(0, 2, 1) - sums + ridge * at
    hessian = np.zeros((n_items, 2, K, 2, K))
    diagonal = np.arange(K)
    for u, v in ((0, 0), (0, 1), (1, 1)):
        power = 2 - u - v
        block = -(q * powers[power]) @ p.transpose(0, 2, 1)
        block[:, diagonal, diagonal] += by_power[:, :, power] + (ridge if u == v else 0.0)
        hessian[:, u, :, v] = block
        if u != v:
            hessian[:, v, :, u] = block.transpose(0, 2, 1)
    step = np.linalg.solve(hessian.reshape(n_items, 2 * K, 2 * K), -gradient.reshape(n_items, 2 * K, 1))
    return gradient, step.reshape(n_items, 2, K)


def _line_search(
    x: np.ndarray,
    w: np.ndarray,
    sums: np.ndarray,
    at: np.ndarray,
    step: np.ndarray,
    slope: np.ndarray,
    value: np.ndarray,
    ridge: float,
) -> np.ndarray:
    """Points (I, 2, K) at which the losses are lower; an item whose loss never falls stays."""
    out = at.copy()
    pending, length = np.arange(len(at)), 1.0
    for _ in range(_HALVINGS):
        there = at[pending] + length * step[pending]
        lower = (
            _loss(x, w[pending], sums[pending], there, ridge)[0] <= value[pending] + _ARMIJO * length * slope[pending]
        )
        out[pending[lower]] = there[lower]
        pending = pending[~lower]
        if not len(pending):
            break
        length *= 0.5
    return out
