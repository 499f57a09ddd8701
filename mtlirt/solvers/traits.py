"""Newton steps for traits on the sphere, within the box, under the sine penalty."""

from dataclasses import dataclass

import numpy as np

BOUND = 1e-9  # a coordinate within this share of C counts as on the box
_FEWEST_FREE = 3  # two constraints leave nothing to move with fewer free coordinates
_BOX_PASSES = 5  # rounds of holding coordinates that a step would push out of the box
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
    sine = np.linalg.norm(across, axis=1) / np.sqrt(N)
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
    """Newton direction in the tangent space of {mean 0, mean square 1}, coordinates held by the box left out.

    The Hessian is diag(curvature + multiplier of the norm), plus with a penalty
    sum_r stiffness_r * (identity - away_r away_r'). The low-rank terms enter as further unknowns beside the two
    multipliers of the step.

    theta, gradient, curvature, ones : (T, N); `ones` is 0 where a model is absent, else 1.
    """
    if penalty is not None:
        gradient = gradient + penalty.gradient
    on_box = np.abs(theta) >= C * (1 - BOUND)
    residual, _ = _residual(theta, gradient, ones)
    held = on_box & (theta * residual < 0)
    for _ in range(_BOX_PASSES):
        free = np.where(held, 0.0, ones)
        residual, norm_multiplier = _residual(theta, gradient, free)
        step = _tangent_step(theta, residual, curvature, norm_multiplier, free, penalty)
        outward = on_box & ~held & (theta * step > 0)
        if not outward.any():
            break
        held |= outward
    step[outward] = 0.0
    box = np.where(held & (theta * residual < 0), -residual, 0.0)
    residual = residual * free
    return Direction(step, np.einsum("ti,ti->t", residual, step), residual, box)


def _tangent_step(
    theta: np.ndarray,
    residual: np.ndarray,
    curvature: np.ndarray,
    norm_multiplier: np.ndarray,
    free: np.ndarray,
    penalty: Penalty | None,
) -> np.ndarray:
    """Minimise the quadratic model over the free coordinates of the tangent space."""
    floor = np.maximum(_SHRINK * curvature, 1e-6 * curvature.mean(axis=1, keepdims=True) + 1e-300)
    diagonal = np.maximum(curvature + norm_multiplier[:, None], floor)
    U = np.stack([theta, np.broadcast_to(free, theta.shape)], axis=1)
    if penalty is not None:
        diagonal = diagonal + penalty.stiffness.sum(axis=1, keepdims=True)
        U = np.concatenate([U, penalty.away], axis=1)
    inverse = free / diagonal
    UD = U * inverse[:, None, :]
    system = UD @ U.transpose(0, 2, 1)
    if penalty is not None:
        R = np.arange(2, U.shape[1])
        system[:, R, R] -= 1 / penalty.stiffness
    rhs = UD @ residual[:, :, None]
    stiff = np.broadcast_to(free, theta.shape).sum(axis=1) < _FEWEST_FREE
    system[stiff] = np.eye(U.shape[1])
    unknowns = np.linalg.solve(system, rhs)
    step = (unknowns.transpose(0, 2, 1) @ UD)[:, 0] - residual * inverse
    step[stiff] = 0.0
    return step


def _residual(theta: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient plus the multipliers of norm and mean, least squares over the free coordinates: (T, N) and (T,)."""
    masked = theta * free
    n = np.broadcast_to(free, theta.shape).sum(axis=1)
    vv, v1 = np.einsum("ti,ti->t", masked, masked), masked.sum(axis=1)
    gv, g1 = np.einsum("ti,ti->t", masked, gradient), (gradient * free).sum(axis=1)
    det = np.maximum(vv * n - v1**2, 1e-300)
    norm_multiplier = -(n * gv - v1 * g1) / det
    mean_multiplier = -(vv * g1 - v1 * gv) / det
    residual = gradient + norm_multiplier[:, None] * theta + mean_multiplier[:, None]
    return residual, norm_multiplier
