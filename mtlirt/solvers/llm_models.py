"""The models' side of the LLM-NRM with the items held: curvature in what belongs to models, an arrow matrix (one block
per model, bordered by the gate's two parameters), and its inverse within the gauge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtlirt.core.llm_cells import ModelSide
from mtlirt.core.llm_nrm import LLMObjective, LLMParameters
from mtlirt.solvers.llm_items import ItemState

_DAMPING = 1e-6  # share of a block's mean curvature added to its diagonal: the gauge has none of its own


@dataclass(frozen=True)
class ModelCurvature:
    """Sums over items of J' (diag q - q q') J, J the derivatives of the logits by a model's P = 2 + 2 Kmax parameters
    (theta, log s, delta, rho) and by (w0, log kappa).  blocks : (N, P, P).  border : (N, P, 2).  corner : (2, 2)."""

    blocks: np.ndarray
    border: np.ndarray
    corner: np.ndarray

    @classmethod
    def zero(cls, n_models: int, n_positions: int) -> ModelCurvature:
        """Nothing yet."""
        P = 2 + 2 * n_positions
        return cls(np.zeros((n_models, P, P)), np.zeros((n_models, P, 2)), np.zeros((2, 2)))

    @property
    def diagonal(self) -> np.ndarray:
        """(V,) in the order of `as_vector`."""
        return np.concatenate([np.einsum("npp->np", self.blocks).ravel(), np.diag(self.corner)])

    def add(self, models: ModelSide, observed: np.ndarray | None, state: ItemState, times: float) -> None:
        """Add items with K options, each counted `times` times."""
        q = state.cells.q
        weight = times * q if observed is None else times * q * observed
        scalars, position, fallback = _derivatives(models, state)
        turned = scalars - (q * scalars).sum(axis=1, keepdims=True)
        turned *= weight
        gram = np.einsum("skin,tkin->nst", turned, scalars, optimize=True)
        K, Kmax = len(q), (self.blocks.shape[1] - 2) // 2
        own = np.concatenate([2 + np.arange(K), 2 + Kmax + np.arange(K)])
        cross = np.concatenate([(turned * x).sum(axis=2).transpose(2, 1, 0) for x in (position, fallback)], axis=1)
        self.blocks[:, :2, :2] += gram[:, :2, :2]
        self.blocks[:, own, :2] += cross[:, :, :2]
        self.blocks[:, :2, own] += cross[:, :, :2].transpose(0, 2, 1)
        self.border[:, :2] += gram[:, :2, 2:]
        self.border[:, own] += cross[:, :, 2:]
        self.corner[:] += gram[:, 2:, 2:].sum(axis=0)
        self.blocks[:, own[:, None], own] += _by_options(q, weight, position, fallback)


def _derivatives(models: ModelSide, state: ItemState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(4, K, I, N) of the logits by theta, log s, w0, log kappa, and (I, N) by the option's own delta and rho."""
    cells, b = state.cells, state.index.b
    K, n_items, N = cells.q.shape
    weight = np.broadcast_to(cells.weight(models), (n_items, N))
    left = np.stack([state.a.T, state.c.T, np.ones((K, n_items))], axis=2)
    out = np.zeros((4, K, n_items, N))
    out[0] = left[:, :, :1] * weight
    out[1] = (left @ models.utility[:K]) * (weight / models.s)
    if cells.gate is None or cells.gap is None:
        return out, weight, np.zeros((n_items, N))
    out[2] = cells.gate * (1.0 - cells.gate) * cells.gap
    out[0] -= models.kappa * out[2]
    out[3] = -models.kappa * (models.theta - b[:, None]) * out[2]
    return out, weight, cells.gate


def _by_options(q: np.ndarray, weight: np.ndarray, position: np.ndarray, fallback: np.ndarray) -> np.ndarray:
    """(N, 2K, 2K) curvature by delta and rho of the items' K options."""
    K = len(q)
    both = np.concatenate([weight * position, weight * fallback])
    plain = np.concatenate([q * position, q * fallback])
    out = -(both.transpose(2, 0, 1) @ plain.transpose(2, 1, 0))
    options = np.arange(K)
    mixed = (both[:K] * fallback).sum(axis=1).T
    out[:, options, options] += (both[:K] * position).sum(axis=1).T
    out[:, options, K + options] += mixed
    out[:, K + options, options] += mixed
    out[:, K + options, K + options] += (both[K:] * fallback).sum(axis=1).T
    return out


@dataclass(frozen=True)
class Arrow:
    """The inverse of an arrow matrix on vectors `as_vector`, restricted to steps that keep the gauge.

    inverse : (N, P, P) of the blocks.  tail : (N, P, 2) inverse times border.  corner : (2, 2) inverse of the Schur
    complement.  normals : (V, E) directions in which the gauge forbids to go.
    """

    inverse: np.ndarray
    tail: np.ndarray
    corner: np.ndarray
    normals: np.ndarray

    def solve(self, vector: np.ndarray) -> np.ndarray:
        """The inverse times a vector, without its part along the normals."""
        out = self._plain(vector)
        if self.normals.shape[1]:
            lifted = np.stack([self._plain(x) for x in self.normals.T], axis=1)
            out -= lifted @ np.linalg.solve(self.normals.T @ lifted, self.normals.T @ out)
        return out

    def _plain(self, vector: np.ndarray) -> np.ndarray:
        N, P, _ = self.inverse.shape
        rows = vector[:-2].reshape(N, P)
        inner = (self.inverse @ rows[:, :, None])[:, :, 0]
        gate = self.corner @ (vector[-2:] - np.einsum("npg,np->g", self.tail, rows))
        return np.concatenate([(inner - self.tail @ gate).ravel(), gate])


def arrow(curvature: ModelCurvature, penalties: np.ndarray, at: LLMParameters, objective: LLMObjective) -> Arrow:
    """Invert the curvature with the penalties' (V,) added to its diagonal."""
    N, P, _ = curvature.blocks.shape
    free = free_parameters(P, objective)
    blocks, border, corner = curvature.blocks.copy(), curvature.border * free[:P, None], curvature.corner.copy()
    diagonal = np.einsum("npp->np", blocks)
    diagonal += penalties[:-2].reshape(N, P)
    diagonal += _DAMPING * (diagonal.mean(axis=1, keepdims=True) + _DAMPING)
    blocks *= free[:P, None] * free[:P]
    diagonal += ~free[:P]
    corner[[0, 1], [0, 1]] += penalties[-2:] + _DAMPING * np.trace(corner) + (not objective.fallback)
    inverse = np.linalg.inv(blocks)
    tail = inverse @ border
    corner -= np.einsum("npg,nph->gh", border, tail)
    return Arrow(inverse, tail, np.linalg.inv(corner), gauge_normals(at, objective))


def penalty_curvature(at: LLMParameters, gradient: LLMParameters, objective: LLMObjective) -> np.ndarray:
    """(V,) second derivatives of the penalties by what belongs to models.  `gradient` is that of the objective before
    it passes the gauge: where theta lies on a sphere, its part along theta bends the surface."""
    N, K = at.delta.shape
    rows = np.full((N, 2 + 2 * K), objective.ridge_position)
    rows[:, 0] = max(0.0, -(gradient.theta @ at.theta) / N) if objective.unit else objective.prior_theta
    rows[:, 1] = objective.ridge_s
    gate = [1.0 / sd**2 for _, sd in (objective.w0_prior, objective.log_kappa_prior)]
    return np.concatenate([rows.ravel(), gate])


def free_parameters(n_own: int, objective: LLMObjective) -> np.ndarray:
    """(P + 2,) bool, which of (theta, log s, delta, rho, w0, log kappa) the objective has."""
    free, K = np.ones(n_own + 2, dtype=bool), (n_own - 2) // 2
    free[1], free[2 : 2 + K] = objective.sharpness, objective.position
    free[2 + K :] = objective.fallback
    return free


def gauge_normals(at: LLMParameters, objective: LLMObjective) -> np.ndarray:
    """(V, E) normals of the surface {theta standardised, log s centred} at a point; E = 0 if theta is free."""
    N, K = at.delta.shape
    columns = []
    if objective.unit:
        columns = [(0, np.ones(N)), (0, at.theta)] + [(1, np.ones(N))] * objective.sharpness
    out = np.zeros((N, 2 + 2 * K, len(columns)))
    for number, (place, values) in enumerate(columns):
        out[:, place, number] = values
    return np.concatenate([out.reshape(N * (2 + 2 * K), -1), np.zeros((2, len(columns)))])
