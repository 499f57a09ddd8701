"""The item step of the LLM-NRM: safeguarded Newton steps of the items of a chunk, models held fixed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mtlirt.core.llm_cells import Cells, ModelSide, Residuals, evaluate, item_gradient, residuals
from mtlirt.core.llm_difficulty import Difficulty, difficulty_curvature, difficulty_index
from mtlirt.core.llm_nrm import LLMObjective

_ARMIJO = 1e-4
_SHORTEN = 0.3
_TRIES = 8
_DAMPING = 1e-8  # share of the mean curvature added to the diagonal: only the gauge has none of its own
_ROUNDING = 1e-14
_MORE_STEPS = 2
_SCREENING_STEPS, _RELOCATION_STEPS = 2, 6
_ELSEWHERE = 0.5  # difficulties that differ by more are on their way to different minima
_ON_THE_WAY = 1e-4  # an item whose step promised more than this share of its loss takes another
_LEAST = 0.1  # a Newton step must promise from a tenth to ten times what Gauss-Newton promises


@dataclass(frozen=True)
class Chunk:
    """Items with K options and what was answered.  key : (I,).  target : (K, I, N).  observed : (I, N) or None."""

    key: np.ndarray
    target: np.ndarray
    observed: np.ndarray | None

    def take(self, items: np.ndarray) -> Chunk:
        """Some of the items."""
        observed = None if self.observed is None else self.observed[items]
        return Chunk(self.key[items], self.target[:, items], observed)


@dataclass(frozen=True)
class ItemState:
    """Parameters a, c (I, K) of a chunk, their difficulty indices, the cells there, and the items' losses (I,) with
    the ridge."""

    a: np.ndarray
    c: np.ndarray
    index: Difficulty
    cells: Cells
    value: np.ndarray

    def take(self, items: np.ndarray) -> ItemState:
        """Some of the items."""
        index = Difficulty(self.index.b[items], self.index.by_a[items], self.index.by_c[items])
        return ItemState(self.a[items], self.c[items], index, self.cells.take(items), self.value[items])

    @classmethod
    def joined(cls, parts: list[ItemState]) -> ItemState:
        """Chunks of items with the same number of options, one after the other."""
        a, c, value = (np.concatenate([getattr(part, name) for part in parts]) for name in ("a", "c", "value"))
        index = Difficulty(
            *(np.concatenate([getattr(part.index, name) for part in parts]) for name in ("b", "by_a", "by_c"))
        )
        return cls(a, c, index, Cells.joined([part.cells for part in parts]), value)

    def put(self, items: np.ndarray, other: ItemState) -> None:
        """Overwrite some of the items by `other`."""
        self.a[items], self.c[items], self.value[items] = other.a, other.c, other.value
        self.index.b[items], self.index.by_a[items], self.index.by_c[items] = (
            other.index.b,
            other.index.by_a,
            other.index.by_c,
        )
        self.cells.put(items, other.cells)


def item_state(models: ModelSide, chunk: Chunk, a: np.ndarray, c: np.ndarray, objective: LLMObjective) -> ItemState:
    """Everything about a chunk at given parameters, which are centred first."""
    a, c = a - a.mean(axis=1, keepdims=True), c - c.mean(axis=1, keepdims=True)
    index = difficulty_index(a, c, chunk.key, objective)
    cells = evaluate(models, a, c, index.b, chunk.target, chunk.observed)
    value = cells.loss + objective.ridge / 2 * (np.square(a) + np.square(c)).sum(axis=1)
    return ItemState(a, c, index, cells, value)


def improved(models: ModelSide, chunk: Chunk, state: ItemState, objective: LLMObjective) -> ItemState:
    """The chunk after one step of every item and up to two more of those that are still on their way."""
    out, slope = _stepped(models, chunk, state, objective)
    for _ in range(_MORE_STEPS):
        moving = np.flatnonzero(-slope > _ON_THE_WAY * np.abs(out.value))
        if not len(moving):
            break
        few, slope_of_few = _stepped(models, chunk.take(moving), out.take(moving), objective)
        out.put(moving, few)
        slope = np.zeros_like(slope)
        slope[moving] = slope_of_few
    return out


def relocated(models: ModelSide, chunk: Chunk, state: ItemState, objective: LLMObjective) -> ItemState:
    """The chunk after every item was tried anew from slopes 0, the point between the two signs of its difficulty; it
    moves where that ends lower. An item's loss may have two minima, on either side of the gate."""
    trial = item_state(models, chunk, np.zeros_like(state.a), state.c, objective)
    for _ in range(_SCREENING_STEPS):
        trial, _ = _stepped(models, chunk, trial, objective)
    elsewhere = np.flatnonzero(np.abs(trial.index.b - state.index.b) > _ELSEWHERE)
    if not len(elsewhere):
        return state
    few, some = chunk.take(elsewhere), trial.take(elsewhere)
    for _ in range(_RELOCATION_STEPS):
        some, _ = _stepped(models, few, some, objective)
    lower = some.value < state.value[elsewhere]
    state.put(elsewhere[lower], some.take(np.flatnonzero(lower)))
    return state


def _stepped(
    models: ModelSide, chunk: Chunk, state: ItemState, objective: LLMObjective
) -> tuple[ItemState, np.ndarray]:
    """The chunk after one step, and the losses' slopes (I,) along the full step. An item whose loss would not fall is
    tried with shorter steps, and stays in the end."""
    step, slope = _step(models, chunk, state, objective)
    out = item_state(models, chunk, state.a + step[:, 0], state.c + step[:, 1], objective)
    enough = state.value + _ARMIJO * slope + _ROUNDING * np.abs(state.value)
    pending, length = np.flatnonzero(~(out.value <= enough)), 1.0
    for _ in range(_TRIES):
        if not len(pending):
            return out, slope
        length *= _SHORTEN
        a, c = state.a[pending] + length * step[pending, 0], state.c[pending] + length * step[pending, 1]
        trial = item_state(models, chunk.take(pending), a, c, objective)
        lower = trial.value <= state.value[pending] + _ARMIJO * length * slope[pending]
        out.put(pending[lower], trial.take(lower))
        pending = pending[~lower]
    out.put(pending, state.take(pending))
    return out, slope


def _step(models: ModelSide, chunk: Chunk, state: ItemState, objective: LLMObjective) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps (I, 2, K) of a and c, Gauss-Newton where the loss is not convex, and the losses' slopes along them
    (I,)."""
    n_items, K = state.a.shape
    residual = residuals(models, state.cells, chunk.target, chunk.observed)
    by_a, by_c, by_b = item_gradient(models, state.cells, residual)
    by_index = np.stack([state.index.by_a, state.index.by_c], axis=1)
    gradient = np.stack([by_a + objective.ridge * state.a, by_c + objective.ridge * state.c], axis=1)
    gradient += by_b[:, None, None] * by_index
    flat = gradient.reshape(n_items, 2 * K, 1)
    hessian = item_curvature(models, chunk.observed, state, objective)
    step = np.linalg.solve(hessian, -flat)
    slope = (flat * step).sum(axis=(1, 2))
    if state.cells.gate is not None:
        hessian += _bend(models, chunk, state, residual, by_b, objective)
        with suppress(np.linalg.LinAlgError):  # one item exactly between convex and not: all take Gauss-Newton's
            bolder = np.linalg.solve(hessian, -flat)
            along = (flat * bolder).sum(axis=(1, 2))
            good = (along < _LEAST * slope) & (along > slope / _LEAST)
            step[good], slope[good] = bolder[good], along[good]
    return step.reshape(n_items, 2, K), slope


def _bend(
    models: ModelSide,
    chunk: Chunk,
    state: ItemState,
    residual: Residuals,
    by_b: np.ndarray,
    objective: LLMObjective,
) -> np.ndarray:
    """(I, 2K, 2K) what Gauss-Newton leaves out: second derivatives of the gate, of the index, and between them."""
    cells, (n_items, K) = state.cells, state.a.shape
    by_index = np.concatenate([state.index.by_a, state.index.by_c], axis=1)
    if cells.gate is None or residual.by_gate is None:
        return np.zeros((n_items, 2 * K, 2 * K))
    pull = models.kappa * cells.gate
    mixed = -(residual.weighted * pull) @ np.stack([models.theta, np.ones_like(models.theta)], axis=1)
    mixed = mixed.transpose(1, 2, 0).reshape(n_items, 2 * K)
    gate = (pull * (1.0 - cells.gate) * (models.kappa - 2.0 * pull) * residual.by_gate).sum(axis=1)
    mixed += gate[:, None] / 2 * by_index
    cross = mixed[:, :, None] * by_index[:, None, :]
    out = by_b[:, None, None] * difficulty_curvature(state.a, state.c, chunk.key, objective)
    out += cross
    out += cross.transpose(0, 2, 1)
    return out


def item_curvature(
    models: ModelSide, observed: np.ndarray | None, state: ItemState, objective: LLMObjective
) -> np.ndarray:
    """(I, 2K, 2K) Gauss-Newton curvature of the items' losses with the ridge, barely damped."""
    by_index = np.concatenate([state.index.by_a, state.index.by_c], axis=1)
    hessian = _curvature(models, observed, state.cells, by_index)
    diagonal = np.einsum("ikk->ik", hessian)
    diagonal += objective.ridge + _DAMPING * (diagonal.mean(axis=1, keepdims=True) + _DAMPING)
    return hessian


def _curvature(models: ModelSide, observed: np.ndarray | None, cells: Cells, by_index: np.ndarray) -> np.ndarray:
    """(I, 2K, 2K) sum over models of J' (diag q - q q') J, J the derivatives of the logits by (a, c), of which the
    difficulty index is a function with derivatives `by_index` (I, 2K)."""
    q = cells.q if observed is None else cells.q * observed
    K, n_items, N = q.shape
    theta, weight = models.theta, cells.weight(models)
    both = np.empty((2 * K, n_items, N))
    np.multiply(q, weight, out=both[K:])
    np.multiply(both[K:], theta, out=both[:K])
    by_item = both.transpose(1, 0, 2)
    hessian = -(by_item @ by_item.transpose(0, 2, 1))
    powers = np.stack([np.square(theta), theta, np.ones_like(theta)], axis=1)
    own = ((both[K:] * weight) @ powers).transpose(1, 0, 2)
    options = np.arange(K)
    hessian[:, options, options] += own[:, :, 0]
    hessian[:, options, K + options] += own[:, :, 1]
    hessian[:, K + options, options] += own[:, :, 1]
    hessian[:, K + options, K + options] += own[:, :, 2]
    slope = cells.slope(models)
    if cells.gap is None or slope is None:
        return hessian
    turned = cells.gap - (cells.q * cells.gap).sum(axis=0)
    turned *= q
    curved = ((turned * cells.gap).sum(axis=0) * np.square(slope)).sum(axis=1)
    turned *= slope * weight
    mixed = (turned @ powers[:, 1:]).transpose(1, 2, 0).reshape(n_items, 2 * K)
    mixed += curved[:, None] / 2 * by_index
    cross = mixed[:, :, None] * by_index[:, None, :]
    hessian += cross
    hessian += cross.transpose(0, 2, 1)
    return hessian
