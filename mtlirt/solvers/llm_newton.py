"""Newton steps of the LLM-NRM in what belongs to models, the items eliminated, by conjugate gradients on a sample of
the items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtlirt.core.llm_cells import Cells, ModelGradient, ModelSide, carried, item_gradient, model_gradient
from mtlirt.core.llm_nrm import LLMObjective, LLMParameters
from mtlirt.solvers.llm_items import ItemState, item_curvature
from mtlirt.solvers.llm_models import ModelCurvature, arrow, free_parameters

_STEPS = 40
_TOL = 0.1  # of the residual in the metric of the preconditioner; a quasi-Newton method corrects the rest


@dataclass(frozen=True)
class Piece:
    """Items with K options at a point, each standing for `times` items.  observed : (I, N) or None."""

    state: ItemState
    observed: np.ndarray | None
    times: float


@dataclass(frozen=True)
class Reduced:
    """Gauss-Newton curvature of the objective as a function of what belongs to models, each item at its best:

        S = A + penalties - sum over items of B' H^-1 B,

    A the curvature with items held, H an item's own and B the mixed one; never formed. The arrow matrix A is the
    preconditioner: S differs from it in the few directions that the items can follow.

    pieces : items that stand for all.  inverses : their H^-1, (I, 2K, 2K) each.  penalties : (V,).  free : (P + 2,).
    """

    pieces: list[Piece]
    inverses: list[np.ndarray]
    models: ModelSide
    at: LLMParameters
    held: ModelCurvature
    penalties: np.ndarray
    free: np.ndarray
    objective: LLMObjective

    def solve(self, vector: np.ndarray, damping: float) -> np.ndarray:
        """(S + damping diag A)^-1 times a vector, to a tenth, within the gauge."""
        penalties = self.penalties + damping * self.held.diagonal
        inverse = arrow(self.held, penalties, self.at, self.objective)
        out, left = np.zeros_like(vector), vector.copy()
        turned = inverse.solve(left)
        direction, size = turned, float(left @ turned)
        goal = _TOL**2 * size
        for _ in range(_STEPS):
            if not size > goal:
                break
            image = self.times(direction) + penalties * direction
            curved = float(direction @ image)
            if not curved > 0:
                break
            out += size / curved * direction
            left -= size / curved * image
            turned = inverse.solve(left)
            size, before = float(left @ turned), size
            direction = turned + size / before * direction
        return out if out.any() else turned

    def times(self, vector: np.ndarray) -> np.ndarray:
        """S less its penalties, times a vector."""
        N, Kmax = self.at.delta.shape
        tangent = _tangent(self.at, vector)
        sums = ModelGradient.zero(N, Kmax)
        for piece, inverse in zip(self.pieces, self.inverses, strict=True):
            sums.add(_reduced_product(self.models, piece, inverse, tangent), piece.times)
        rows = np.concatenate([sums.theta[:, None], sums.log_s[:, None], sums.delta.T, sums.rho.T], axis=1)
        return np.concatenate([(rows * self.free[:-2]).ravel(), sums.gate * self.free[-2:]])


def reduced(
    pieces: list[Piece], models: ModelSide, at: LLMParameters, penalties: np.ndarray, objective: LLMObjective
) -> Reduced:
    """The curvature at a point."""
    N, Kmax = at.delta.shape
    held = ModelCurvature.zero(N, Kmax)
    inverses = []
    for piece in pieces:
        held.add(models, piece.observed, piece.state, piece.times)
        inverses.append(np.linalg.inv(item_curvature(models, piece.observed, piece.state, objective)))
    free = free_parameters(2 + 2 * Kmax, objective)
    return Reduced(pieces, inverses, models, at, held, penalties, free, objective)


@dataclass(frozen=True)
class _Tangent:
    """How the `ModelSide` changes along a vector: utility and gap (Kmax, 3, N), theta (N,), w0 and log kappa."""

    utility: np.ndarray
    gap: np.ndarray
    theta: np.ndarray
    w0: float
    log_kappa: float


def _tangent(at: LLMParameters, vector: np.ndarray) -> _Tangent:
    K = at.delta.shape[1]
    rows = vector[:-2].reshape(len(at.theta), -1)
    s, theta, log_s, delta, rho = at.s, rows[:, 0], rows[:, 1], rows[:, 2 : 2 + K], rows[:, 2 + K :]
    shape = (K, len(theta))
    by_delta = (s[:, None] * (delta + at.delta * log_s[:, None])).T
    utility = np.stack(
        [np.broadcast_to(s * (theta + at.theta * log_s), shape), np.broadcast_to(s * log_s, shape), by_delta], axis=1
    )
    gap = -utility
    gap[:, 2] += rho.T
    return _Tangent(utility, gap, theta, float(vector[-2]), float(vector[-1]))


def _reduced_product(models: ModelSide, piece: Piece, inverse: np.ndarray, tangent: _Tangent) -> ModelGradient:
    """What a piece adds to S times a vector: the logits move with the models, the items follow, and the covariance
    carries the net motion back."""
    state, cells = piece.state, piece.state.cells
    K, n_items, _ = cells.q.shape
    left = np.stack([state.a.T, state.c.T, np.ones((K, n_items))], axis=2)
    z = left @ tangent.utility[:K]
    if cells.gate is not None and cells.gap is not None:
        far = tangent.theta + tangent.log_kappa * (models.theta - state.index.b[:, None])
        z += cells.gate * (left @ tangent.gap[:K])
        z += ((tangent.w0 - models.kappa * far) * cells.gate * (1.0 - cells.gate)) * cells.gap
    by_a, by_c, by_b = item_gradient(models, cells, carried(models, cells, _covariance(cells, piece.observed, z)))
    by_index = np.concatenate([state.index.by_a, state.index.by_c], axis=1)
    pushed = np.concatenate([by_a, by_c], axis=1) + by_b[:, None] * by_index
    answer = (inverse @ pushed[:, :, None])[:, :, 0]
    both = np.stack([answer[:, :K].T, answer[:, K:].T], axis=2)
    z -= (both @ np.stack([models.theta, np.ones_like(models.theta)])) * cells.weight(models)
    slope = cells.slope(models)
    if slope is not None and cells.gap is not None:
        z -= (slope * (by_index * answer).sum(axis=1)[:, None]) * cells.gap
    residual = carried(models, cells, _covariance(cells, piece.observed, z))
    return model_gradient(models, cells, residual, state.a, state.c, state.index.b)


def _covariance(cells: Cells, observed: np.ndarray | None, z: np.ndarray) -> np.ndarray:
    """(diag q - q q') z, 0 where nothing was answered."""
    out = z - (cells.q * z).sum(axis=0)
    out *= cells.q
    if observed is not None:
        out *= observed
    return out
