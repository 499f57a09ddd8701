"""Moves of the traits within one sweep of `Block`: each trait alone, all together, and the general trait.

All functions take a `Traits` and return one whose objective is not higher.
"""

from dataclasses import dataclass, replace

import numpy as np

from mtlirt.core.angle import SAME_LINE, nearby_line_median, sines
from mtlirt.core.field import Derivatives, Field
from mtlirt.core.projection import project, standardise
from mtlirt.solvers.traits import BOUND, newton_direction, penalty_on_centre, penalty_on_each

_ARMIJO = 1e-4
_HALVINGS = 14
_ROUNDING = 1e-15
_WIDEST_TURN = 0.5  # radians
_HOLD = 1 + 1e-5  # a fused domain is let go where its gradient exceeds the kink by more than the gradient's own error


@dataclass(frozen=True)
class Space:
    """Constraints and penalty weights.

    C : bound.  lam : (T,) penalty weight of each domain.
    ones : (T, N) 0 where a model is absent from a domain, else 1.
    """

    C: float
    lam: np.ndarray
    ones: np.ndarray

    def project(self, theta: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Project rows that belong to the domains `groups`."""
        ones = self.ones[groups]
        return project(theta, self.C, None if ones.all() else ones > 0)


@dataclass(frozen=True)
class Traits:
    """theta : (T, N).  general : (N,).  fused : (T,) bool.  value, sine : (T,) loss and sine of each domain.
    decrement : decrease that the quadratic models still promised when the traits were last looked at."""

    theta: np.ndarray
    general: np.ndarray
    fused: np.ndarray
    value: np.ndarray
    sine: np.ndarray
    decrement: float = 0.0


def move_each(
    field: Field, traits: Traits, space: Space, groups: np.ndarray, centre: np.ndarray, max_steps: int
) -> Traits:
    """Newton steps of the domains `groups` about a fixed `centre` (N,); domains fuse with it and leave it.

    A fused domain stays while sqrt(N) times its tangent gradient is at most lam: the penalty's kink. A domain fuses
    where taking the centre as its trait is no worse.
    """
    theta, value, sine = traits.theta.copy(), traits.value.copy(), traits.sine.copy()
    lam, N = space.lam, theta.shape[1]
    boxed = np.abs(centre).max() <= space.C
    active = groups
    decrement = 0.0
    for _ in range(max_steps):
        der = field.derivatives(theta[active], active)
        step = np.zeros_like(der.gradient)
        slope = np.zeros(len(active))
        at_centre = (sine[active] == 0) & (lam[active] > 0)
        for joined in (True, False):
            rows = np.flatnonzero(at_centre == joined)
            if not len(rows):
                continue
            g = active[rows]
            if joined:
                step[rows], slope[rows] = _leave(der.gradient[rows], der.curvature[rows], centre, lam[g], space.C)
            else:
                penalty = penalty_on_each(theta[g], centre, lam[g]) if lam[g].any() else None
                direction = newton_direction(
                    theta[g], der.gradient[rows], der.curvature[rows], space.ones[g], space.C, penalty
                )
                step[rows], slope[rows] = direction.step, direction.slope
        decrement = -0.5 * np.minimum(slope, 0.0).sum()
        moving = slope < -_ROUNDING * np.abs(value[active])
        active, step, slope = active[moving], step[moving], slope[moving]
        if not len(active):
            break
        active = _line_search(field, theta, value, sine, space, active, step, slope, centre)
    apart = groups[(sine[groups] > 0) & (lam[groups] > 0)]
    if boxed and len(apart):
        at = field.value(np.broadcast_to(centre, (len(apart), N)), apart)
        better = at <= value[apart] + lam[apart] * sine[apart]
        fusing = apart[better]
        theta[fusing], value[fusing], sine[fusing] = centre, at[better], 0.0
    fused = traits.fused.copy()
    fused[groups] = (sine[groups] == 0) & (lam[groups] > 0)
    return replace(traits, theta=theta, value=value, sine=sine, fused=fused, decrement=decrement)


def _leave(
    gradient: np.ndarray, curvature: np.ndarray, centre: np.ndarray, lam: np.ndarray, C: float
) -> tuple[np.ndarray, np.ndarray]:
    """Steps of fused domains off their centre: the tangent gradient, soft-thresholded by lam / sqrt(N)."""
    N = len(centre)
    rows = np.broadcast_to(centre, gradient.shape)
    residual = newton_direction(rows, gradient, curvature, np.ones_like(gradient), C).residual
    norm = np.linalg.norm(residual, axis=1)
    excess = np.maximum(1 - _HOLD * lam / (np.sqrt(N) * np.maximum(norm, 1e-300)), 0.0)
    size = np.maximum(curvature.mean(axis=1), 1e-300)
    return -(excess / size)[:, None] * residual, -np.square(excess * norm) / size


def _line_search(
    field: Field,
    theta: np.ndarray,
    value: np.ndarray,
    sine: np.ndarray,
    space: Space,
    groups: np.ndarray,
    step: np.ndarray,
    slope: np.ndarray,
    centre: np.ndarray,
) -> np.ndarray:
    """Halve each domain's step until its objective falls; write what was accepted; return the domains that moved."""
    total = value[groups] + space.lam[groups] * sine[groups]
    step, slope = _within_reach(step, slope)
    length = 1.0
    pending = np.arange(len(groups))
    moved = []
    for _ in range(_HALVINGS):
        g = groups[pending]
        candidate = space.project(theta[g] + length * step[pending], g)
        new_value = field.value(candidate, g)
        new_sine = sines_apart(centre, candidate) if space.lam[g].any() else np.zeros(len(g))
        good = new_value + space.lam[g] * new_sine <= total[pending] + _ARMIJO * length * slope[pending]
        theta[g[good]], value[g[good]], sine[g[good]] = candidate[good], new_value[good], new_sine[good]
        moved.append(g[good])
        pending = pending[~good]
        if not len(pending):
            break
        length *= 0.5
    return np.sort(np.concatenate(moved))


def _within_reach(step: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps no longer than the traits themselves: beyond that a projected step only turns further."""
    length = np.linalg.norm(step, axis=1)
    scale = np.minimum(1.0, np.sqrt(step.shape[1]) / np.maximum(length, 1e-300))
    return scale[:, None] * step, scale * slope


def move_fused(field: Field, traits: Traits, space: Space) -> Traits:
    """One Newton step of the general trait with the domains fused to it, the other traits fixed."""
    fused, apart = np.flatnonzero(traits.fused), np.flatnonzero(~traits.fused)
    if not len(fused):
        return traits
    N, lam = len(traits.general), space.lam[apart]
    general, others = traits.general, traits.theta[apart]
    der = field.derivatives(np.broadcast_to(general, (len(fused), N)), fused)
    penalty = penalty_on_centre(others, general, lam) if len(apart) else None
    direction = newton_direction(
        general[None],
        der.gradient.sum(axis=0, keepdims=True),
        der.curvature.sum(axis=0, keepdims=True),
        np.ones((1, N)),
        space.C,
        penalty,
    )
    traits = replace(traits, decrement=traits.decrement - 0.5 * min(float(direction.slope[0]), 0.0))
    (step,), (slope,) = _within_reach(direction.step, direction.slope)
    total = der.value.sum() + lam @ traits.sine[apart]
    length = 1.0
    while slope < -_ROUNDING * total and length > 0.5**_HALVINGS:
        candidate = project((general + length * step)[None], space.C)[0]
        value = field.value(np.broadcast_to(candidate, (len(fused), N)), fused)
        sine = sines_apart(candidate, others)
        if value.sum() + lam @ sine <= total + _ARMIJO * length * slope:
            theta, new_value, new_sine = traits.theta.copy(), traits.value.copy(), traits.sine.copy()
            theta[fused], new_value[fused], new_sine[apart] = candidate, value, sine
            return replace(traits, theta=theta, general=candidate, value=new_value, sine=new_sine)
        length *= 0.5
    return traits


def move_together(field: Field, traits: Traits, space: Space) -> Traits:
    """Rotate the general trait and every domain trait in one plane (general, u).

    No sine changes, so u is a Newton direction on the likelihood alone. The other moves change traits one by one and
    creep where all should move.
    """
    der = field.derivatives(traits.theta)
    g, N = traits.general, len(traits.general)
    cosine = traits.theta @ g / N
    box = _box_forces(der, traits, space)
    own = der.gradient + box
    gradient = cosine @ own - (own @ g / N) @ traits.theta
    tie = space.lam / (N * np.maximum(traits.sine, SAME_LINE))
    curvature = np.square(cosine) @ np.where(box == 0, der.curvature, tie[:, None])
    bound = space.C if traits.fused.any() else np.inf
    direction = newton_direction(g[None], gradient[None], curvature[None], np.ones((1, N)), bound)
    u, slope = direction.step[0], float(direction.slope[0])
    total = traits.value.sum() + space.lam @ traits.sine
    if slope > -_ROUNDING * total:
        return traits
    length = np.linalg.norm(u)
    angle = min(length / np.sqrt(N), _WIDEST_TURN)
    for _ in range(_HALVINGS):
        moved = _rotate(field, traits, space, u / length, angle, box != 0)
        if moved.value.sum() + space.lam @ moved.sine <= total + _ARMIJO * slope * angle * np.sqrt(N) / length:
            return moved
        angle *= 0.5
    return traits


def _box_forces(der: Derivatives, traits: Traits, space: Space) -> np.ndarray:
    """(T, N) what the box pushes back with where it holds a coordinate of an unfused trait, else 0.

    A common move leaves such a coordinate where it is; less the general trait's pull, this cancels its gradient.
    """
    box = np.zeros_like(der.gradient)
    rows = np.flatnonzero((np.abs(traits.theta).max(axis=1) >= space.C * (1 - BOUND)) & ~traits.fused)
    if len(rows):
        theta = traits.theta[rows]
        penalty = penalty_on_each(theta, traits.general, space.lam[rows])
        box[rows] = newton_direction(
            theta, der.gradient[rows], der.curvature[rows], space.ones[rows], space.C, penalty
        ).box
    return box


def _rotate(field: Field, traits: Traits, space: Space, unit: np.ndarray, angle: float, held: np.ndarray) -> Traits:
    """Rotate by `angle` in the plane (general, unit), but for the coordinates `held` by the box; then project."""
    e1, cos, sin = traits.general / np.sqrt(len(unit)), np.cos(angle), np.sin(angle)

    def turn(x: np.ndarray) -> np.ndarray:
        p1, p2 = x @ e1, x @ unit
        return x + np.multiply.outer((cos - 1) * p1 - sin * p2, e1) + np.multiply.outer((cos - 1) * p2 + sin * p1, unit)

    turned = standardise(turn(traits.general)[None])
    general = (project(turned, space.C) if traits.fused.any() else turned)[0]
    theta = space.project(np.where(held, traits.theta, turn(traits.theta)), np.arange(len(traits.theta)))
    theta[traits.fused] = general
    sine = np.where(traits.fused, 0.0, sines_apart(general, theta))
    return replace(traits, theta=theta, general=general, value=field.value(theta), sine=sine)


def sines_apart(centre: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Sines of lines that do not count as fused: never 0, which is the mark of those that do."""
    return np.maximum(sines(centre, theta), SAME_LINE)


def move_general(traits: Traits, space: Space) -> Traits:
    """Put a general trait that no domain is fused to on the median of the lines, or on the line nearest to it."""
    best = traits
    line = nearby_line_median(traits.theta, space.lam, traits.general)
    vertex = int(sines(line, traits.theta).argmin())
    for candidate in (line, traits.theta[vertex].copy()):
        sine = sines(candidate, traits.theta)
        same = sine < SAME_LINE
        if space.lam @ sine < (space.lam @ best.sine) * (1 - 1e-13):
            theta = np.where(same[:, None], candidate, traits.theta)
            best = replace(traits, theta=theta, general=candidate, sine=np.where(same, 0.0, sine), fused=same)
    return best
