"""Traits of new models with the items held fixed: what `Fit.score` computes."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.angle import sines
from mtlirt.core.field import Field

_MAX_STEPS = 100
_LONGEST_STEP = 1.0
_SHRINK = 0.2  # as for the fit's Newton steps: the multiplier may lower a curvature to this share
_TOLERANCE = 1e-10
_SMALLEST_SINE = 1e-9


@dataclass(frozen=True)
class Coupling:
    """How a fit ties one model's traits together, to second order: its penalty, and the multipliers of its constraints.

    stiffness : (T,) lam_t / (N sine_t), 0 for fused domains and at lam = 0.  cosine : (T,).  fused : (T,) bool.
    norm, mean : (T,) multipliers of the mean square and of the mean; rows of fused domains hold their common ones.
    """

    stiffness: np.ndarray
    cosine: np.ndarray
    fused: np.ndarray
    norm: np.ndarray
    mean: np.ndarray


def coupling_of(
    theta: np.ndarray,
    general: np.ndarray,
    fused: np.ndarray,
    lam: np.ndarray,
    gradient: np.ndarray,
    off_box: np.ndarray,
) -> Coupling:
    """The coupling at a solution.

    theta, gradient, off_box : (T, N) traits, gradients of the weighted losses, and which coordinates are known and not
    held by the box.  lam : (T,) penalty weights, 0 for separate fits.  For two domains that are not fused, the first
    takes the general trait's place.
    """
    T, N = theta.shape
    if T == 2 and not fused.all() and lam.any():
        general, fused = theta[0], np.array([True, False])
    stiffness, cosine = np.zeros(T), np.ones(T)
    tied = np.flatnonzero(~fused & (lam > 0))
    sine = np.maximum(sines(general, theta[tied]), _SMALLEST_SINE) if len(tied) else np.zeros(0)
    stiffness[tied] = lam[tied] / (N * sine)
    cosine[tied] = theta[tied] @ general / N
    pull = stiffness[:, None] * (theta - cosine[:, None] * general)
    norm, mean = np.zeros(T), np.zeros(T)
    for t in np.flatnonzero(~fused):
        norm[t], mean[t] = _multipliers(theta[t], gradient[t] + pull[t], off_box[t])
    if fused.any():
        total = gradient[fused].sum(axis=0) - cosine @ pull
        norm[fused], mean[fused] = _multipliers(general, total, off_box[fused].all(axis=0))
    return Coupling(stiffness, cosine, fused, norm, mean)


def _multipliers(trait: np.ndarray, gradient: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """Least squares of -gradient on the trait and ones."""
    design = np.column_stack([trait[known], np.ones(known.sum())])
    norm, mean = np.linalg.lstsq(design, -gradient[known], rcond=None)[0]
    return float(norm), float(mean)


def abilities(field: Field, coupling: Coupling, n_models: int, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Minimise, model by model, over domain traits theta_t and the general trait g,

        sum_t weighted NLL_t(theta_t) + stiffness_t / 2 * (theta_t - cosine_t g)**2 + norm_t / 2 * theta_t**2 + mean_t
        theta_t

    with theta_t = g where a domain is fused (its last two terms once for all fused domains), |theta_t| <= C, and |g|
    <= C if any domain is fused. Newton steps on all T + 1 unknowns at once: the Hessian is an arrow, so g is solved for
    first.

    Returns
    -------
    theta (T, n_models), general (n_models,). With no stiffness and nothing fused, general is 0.
    """
    q, c, fused = coupling.stiffness[:, None], coupling.cosine[:, None], coupling.fused
    apart = ~fused
    norm, mean = coupling.norm[:, None], coupling.mean[:, None]
    norm_g, mean_g = (coupling.norm[fused][0], coupling.mean[fused][0]) if fused.any() else (0.0, 0.0)
    theta = np.zeros((len(fused), n_models))
    general = np.zeros(n_models)
    bound = C if fused.any() else np.inf
    for _ in range(_MAX_STEPS):
        der = field.derivatives(theta)
        gap = theta - c * general
        gradient = der.gradient + q * gap + norm * theta + mean
        hessian = np.maximum(der.curvature + q + norm, _SHRINK * der.curvature + 1e-10)
        stuck = (np.abs(theta) >= C) & (gradient * theta < 0)
        gradient_g = der.gradient[fused].sum(axis=0) - (q * c * gap)[apart].sum(axis=0) + norm_g * general + mean_g
        hessian_g = np.maximum(der.curvature[fused].sum(axis=0) + norm_g, 0.0) + (q * c**2)[apart].sum(axis=0)
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
