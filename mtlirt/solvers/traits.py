"""Newton steps for traits on the sphere, within the box, under the sine penalty."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.angle import SAME_LINE

BOUND = 1e-9  # a coordinate within this share of C counts as on the box
_PARALLEL = 1e-12  # share at which the trait and ones count as parallel over the free coordinates
_FEWEST_FREE = 3  # two constraints leave nothing to move with fewer free coordinates
_BOX_PASSES = 5  # rounds of landing on the box those coordinates that a step would push out of it
_FLATTEST = 1e-12  # curvature where the likelihood has none
_SHRINK = 0.2  # the norm's multiplier may lower a curvature to this share, no further


@dataclass(frozen=True)
class Direction:
    """step : (T, N) tangent Newton directions.  slope : (T,) gradient times step, <= 0.
    residual : (T, N) projected gradient: gradient plus multipliers of mean and norm, 0 at coordinates held by the box.
    box : (T, N) what those coordinates' bounds push back with, 0 elsewhere."""

    step: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    box: np.ndarray


@dataclass(frozen=True)
class Penalty:
    """Sine penalties to second order, R of them on each of T lines.

    On the sphere a sine is linear, to second order, along the direction away from its centre, and curved by
    stiffness = weight / (N sine) across it.

    gradient : (T, N).  stiffness : (T, R).  away : (T, R, N) unit tangents that lead away from the centres.
    """

    gradient: np.ndarray
    stiffness: np.ndarray
    away: np.ndarray


def penalty_on_each(theta: np.ndarray, centre: np.ndarray, lam: np.ndarray) -> Penalty:
    """lam[t] * sin(centre, theta_t) as a function of the traits (T, N), none of them at the centre (N,)."""
    stiffness, gradient, away = _sine_terms(theta, np.broadcast_to(centre, theta.shape), lam)
    return Penalty(gradient, stiffness[:, None], away[:, None])


def penalty_on_centre(theta: np.ndarray, centre: np.ndarray, lam: np.ndarray) -> Penalty:
    """sum_t lam[t] * sin(centre, theta_t) as a function of the centre (N,), none of the traits (T, N) at it."""
    stiffness, gradient, away = _sine_terms(np.broadcast_to(centre, theta.shape), theta, lam)
    return Penalty(gradient.sum(axis=0, keepdims=True), stiffness[None], away[None])


def _sine_terms(point: np.ndarray, other: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stiffness (R,), gradient (R, N) at `point` and unit tangents (R, N) of lam * sin(other, point)."""
    N = point.shape[1]
    cosine = np.einsum("ri,ri->r", point, other) / N
    across = point - cosine[:, None] * other
    sine = np.maximum(np.linalg.norm(across, axis=1) / np.sqrt(N), SAME_LINE)
    stiffness = lam / (N * sine)
    away = (cosine[:, None] * point - other) / (np.sqrt(N) * sine[:, None])
    return stiffness, stiffness[:, None] * across, away


def newton_direction(
    theta: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
    ones: np.ndarray,
    C: float,
    penalty: Penalty | None = None,
) -> Direction:
    """Newton direction in the tangent space of {mean 0, mean square 1}, landing on the box where it would cross it.

    The Hessian is diag(curvature + multiplier of the norm), plus with a penalty
    sum_r stiffness_r * (identity - away_r away_r'). The low-rank terms enter as further unknowns beside the two
    multipliers of the step.

    theta, gradient, curvature, ones : (T, N); `ones` is 0 where a model is absent, else 1.
    """
    if penalty is not None:
        gradient = gradient + penalty.gradient
    side = np.where(theta < 0, -C, C)
    residual, _ = _residual(theta, gradient, ones)
    on_box = (np.abs(theta) >= C * (1 - BOUND)) & (theta * residual < 0)
    free = np.where(on_box, 0.0, ones)
    residual, multiplier = _residual(theta, gradient, free)
    box = np.where(on_box & (theta * residual < 0), -residual, 0.0)
    first = step = _tangent_step(
        theta, residual, curvature, multiplier, free, np.where(on_box, side - theta, 0.0), penalty
    )
    landing = on_box
    for _ in range(_BOX_PASSES):
        crossing = ~landing & (np.abs(theta + step) > C)
        if not crossing.any():
            break
        side = np.where(crossing, np.copysign(C, step), side)
        landing = landing | crossing
        free = np.where(landing, 0.0, ones)
        shifted, multiplier = _residual(theta, gradient, free)
        step = _tangent_step(theta, shifted, curvature, multiplier, free, np.where(landing, side - theta, 0.0), penalty)
    slope = np.einsum("ti,ti->t", gradient, step)
    step = np.where((slope < 0)[:, None], step, first)
    mobile = np.where(on_box, 0.0, ones).sum(axis=1, keepdims=True) >= _FEWEST_FREE
    projected = residual * np.where(on_box, 0.0, ones) * mobile
    return Direction(step, np.einsum("ti,ti->t", gradient, step), projected, box)


def _tangent_step(
    theta: np.ndarray,
    residual: np.ndarray,
    curvature: np.ndarray,
    norm_multiplier: np.ndarray,
    free: np.ndarray,
    landing: np.ndarray,
    penalty: Penalty | None,
) -> np.ndarray:
    """Minimise the quadratic model over the free coordinates of the tangent space; the others step by `landing`."""
    floor = np.maximum(_SHRINK * curvature, 1e-6 * curvature.mean(axis=1, keepdims=True) + _FLATTEST)
    diagonal = np.maximum(curvature + norm_multiplier[:, None], floor)
    U = np.stack([theta, np.ones_like(theta)], axis=1)
    if penalty is not None:
        diagonal = diagonal + penalty.stiffness.sum(axis=1, keepdims=True)
        U = np.concatenate([U, penalty.away], axis=1)
    inverse = free / diagonal
    UD = U * inverse[:, None, :]
    system = UD @ U.transpose(0, 2, 1)
    if penalty is not None:
        R = np.arange(2, U.shape[1])
        system[:, R, R] -= 1 / penalty.stiffness
    rhs = UD @ residual[:, :, None] - U @ landing[:, :, None]
    parallel = system[:, 0, 0] * system[:, 1, 1] * (1 - _PARALLEL) <= system[:, 0, 1] ** 2
    system[parallel, 0, :] = system[parallel, :, 0] = rhs[parallel, 0] = 0.0
    system[parallel, 0, 0] = 1.0
    stiff = np.broadcast_to(free, theta.shape).sum(axis=1) + parallel < _FEWEST_FREE
    system[stiff] = np.eye(U.shape[1])
    unknowns = np.linalg.solve(system, rhs)
    step = (unknowns.transpose(0, 2, 1) @ UD)[:, 0] - residual * inverse + landing
    step[stiff] = 0.0
    return step


def _residual(theta: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient plus the multipliers of norm and mean, least squares over the free coordinates: (T, N) and (T,)."""
    masked = theta * free
    n = np.broadcast_to(free, theta.shape).sum(axis=1)
    vv, v1 = np.einsum("ti,ti->t", masked, masked), masked.sum(axis=1)
    gv, g1 = np.einsum("ti,ti->t", masked, gradient), (gradient * free).sum(axis=1)
    det = vv * n - v1**2
    scale = np.where(det > _PARALLEL * vv * n, 1 / np.maximum(det, 1e-300), 0.0)
    norm_multiplier = (v1 * g1 - n * gv) * scale
    mean_multiplier = (v1 * gv - vv * g1) * scale
    residual = gradient + norm_multiplier[:, None] * theta + mean_multiplier[:, None]
    return residual, norm_multiplier
