"""Traits of new models with the items held fixed: what `Fit.score` computes."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.field import Field

_MAX_STEPS = 100
_LONGEST_STEP = 1.0
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Coupling:
    """How the fitted penalty ties one model's traits to its general trait, to second order.

    stiffness : (T,) lam_t / (N sine_t), 0 for fused domains and at lam = 0.  cosine : (T,).  fused : (T,) bool.
    multiplier : (T,) what the fit's norm adds to each curvature, -lam_t sine_t / N.
    """

    stiffness: np.ndarray
    cosine: np.ndarray
    fused: np.ndarray
    multiplier: np.ndarray


def abilities(field: Field, coupling: Coupling, n_models: int, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Minimise, model by model, over domain traits theta_t and the general trait g,

        sum_t weighted NLL_t(theta_t) + stiffness_t / 2 * (theta_t - cosine_t g)**2 + multiplier_t / 2 * theta_t**2

    with theta_t = g where a domain is fused, |theta_t| <= C, and |g| <= C if any domain is. Newton steps on all T + 1
    unknowns at once: the Hessian is an arrow, so g is solved for first.

    Returns
    -------
    theta (T, n_models), general (n_models,). With no stiffness and nothing fused, general is 0.
    """
    q, c, fused = coupling.stiffness[:, None], coupling.cosine[:, None], coupling.fused
    apart = ~fused
    theta = np.zeros((len(fused), n_models))
    general = np.zeros(n_models)
    bound = C if fused.any() else np.inf
    for _ in range(_MAX_STEPS):
        der = field.derivatives(theta)
        gap = theta - c * general
        gradient = der.gradient + q * gap + coupling.multiplier[:, None] * theta
        hessian = np.maximum(der.curvature + q + coupling.multiplier[:, None], 1e-10)
        stuck = (np.abs(theta) >= C) & (gradient * theta < 0)
        gradient_g = der.gradient[fused].sum(axis=0) - (q * c * gap)[apart].sum(axis=0)
        hessian_g = der.curvature[fused].sum(axis=0) + (q * c**2)[apart].sum(axis=0)
        tied = np.where(stuck | fused[:, None], 0.0, q * c / hessian)
        schur = np.maximum(hessian_g - (tied * q * c).sum(axis=0), 1e-10)
        step_g = -(gradient_g + (tied * gradient).sum(axis=0)) / schur
        step_g = np.clip(step_g, -_LONGEST_STEP, _LONGEST_STEP)
        new_general = np.clip(general + step_g, -bound, bound)
        step = np.where(stuck, 0.0, -gradient / hessian + tied * (new_general - general))
        new_theta = np.clip(theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), -C, C)
        new_theta[fused] = new_general
        moved = max(np.abs(new_theta - theta).max(), np.abs(new_general - general).max())
        theta, general = new_theta, new_general
        if moved < _TOLERANCE:
            break
    return theta, general
