"""The default solver of the LLM-NRM: damped Newton steps on what belongs to models, the items following along."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mtlirt.core.llm_cells import ModelGradient, ModelSide, model_gradient, residuals
from mtlirt.core.llm_nrm import (
    LLMObjective,
    LLMParameters,
    as_vector,
    chunks,
    gauged,
    model_side,
    penalty,
    penalty_gradient,
    plus,
    through_gauge,
    with_vector,
)
from mtlirt.core.options import OptionGroup, OptionProblem
from mtlirt.solvers.llm_items import Chunk, ItemState, improved, item_state, relocated
from mtlirt.solvers.llm_models import penalty_curvature
from mtlirt.solvers.llm_newton import Piece, Reduced, reduced
from mtlirt.solvers.solution import OnStep, Status

_FIRST_ITEM_STEPS = 1
_ARMIJO = 1e-4
_TRIES = 12
_DAMPING, _LEAST_DAMPING = 1.0, 1e-6  # shares of the diagonal of the models' curvature
_LOCAL = 1e-2  # below this damping past steps are put to use
_MEMORY = 12
_GOOD, _POOR = 0.5, 0.2  # shares of the promised decrease above which damping falls, below which it grows
_LONGEST = 1.5  # no parameter of a model moves farther in one step
_SAMPLE = 400  # about so many items stand for all in the curvature
_QUIET = 2  # steps in a row that move no theta by more than `tol`
_SETTLED = 4  # after so many steps, and at the end, items look for another minimum
_WORTH = 1e-5  # share of the objective for which they move there
_ROUNDING = 1e-14  # share of the objective below which a promised decrease is rounding


@dataclass(frozen=True)
class LLMSolution:
    """parameters : gauged.  loss : the objective there.  trace : one dict per iteration with `step`, `objective`,
    `theta_change` (largest of any model) and `damping`."""

    parameters: LLMParameters
    loss: float
    status: Status
    trace: list[dict[str, float]]


@dataclass(frozen=True)
class _Point:
    """Gauged parameters, the objective, `as_vector` and the gradient by it, the latter also before it passed the
    gauge, and a sample of the items."""

    at: LLMParameters
    value: float
    vector: np.ndarray
    gradient: np.ndarray
    by: LLMParameters
    models: ModelSide
    pieces: list[Piece]

    def curvature(self, objective: LLMObjective) -> Reduced:
        """Of the objective as a function of what belongs to models."""
        penalties = penalty_curvature(self.at, self.by, objective)
        return reduced(self.pieces, self.models, self.at, penalties, objective)


@dataclass(frozen=True)
class LLMSolver:
    """Newton's method on theta, log s, delta, rho, w0 and kappa, with the items' parameters eliminated; on numpy alone.

    One iteration proposes a step for all models and the gate, and visits every cell once: there each item takes one to
    three safeguarded Newton steps at the new models, and the gradient by what belongs to models is summed up at the
    new items. The step solves the Gauss-Newton equations with the items' linear response built in, by a few conjugate
    gradients on a sample of 400 items, corrected by the last 12 steps (L-BFGS), and damped as in
    Levenberg-Marquardt: a step that does not lower the objective is taken back, and the damping grows.

    Convergence
    -----------
    Stops when two steps in a row move no theta by more than `tol`; 10 to 40 iterations are usual. The objective never
    rises. It has many minima, most of which differ in single items: after the fourth step, and at the end, each item
    is also tried on the other side of the gate. For the gate itself see `solve_from_starts`.

    Parameters
    ----------
    max_iterations : positive int.
    tol : largest change of any theta, positive.

    >>> LLMSolver(tol=1e-4)
    LLMSolver(max_iterations=200, tol=0.0001)
    """

    max_iterations: int = 200
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if not (isinstance(self.max_iterations, int) and self.max_iterations >= 1):
            raise ValueError(f"LLMSolver: max_iterations must be a positive integer, not {self.max_iterations!r}")
        if not self.tol > 0:
            raise ValueError(f"LLMSolver: tol must be positive, not {self.tol!r}")

    def solve(
        self, problem: OptionProblem, objective: LLMObjective, start: LLMParameters, on_step: OnStep | None = None
    ) -> LLMSolution:
        """Minimise the objective from `start`."""
        point = visit(problem, objective, gauged(start, problem.options, objective), _FIRST_ITEM_STEPS)
        memory: list[tuple[np.ndarray, np.ndarray]] = []
        trace: list[dict[str, float]] = []
        status, quiet, damping = Status.MAX_STEPS, 0, _DAMPING
        for iteration in range(1, self.max_iterations + 1):
            found, promised, damping = _search(problem, objective, point, memory, damping)
            if found is None:
                status = Status.CONVERGED if abs(promised) <= _ROUNDING * abs(point.value) else Status.STALLED
                break
            memory.append((found.vector - point.vector, found.gradient - point.gradient))
            del memory[:-_MEMORY]
            change = float(np.abs(found.at.theta - point.at.theta).max())
            trace.append({"step": iteration, "objective": found.value, "theta_change": change, "damping": damping})
            if on_step is not None:
                on_step(trace[-1])
            quiet = quiet + 1 if change <= self.tol and damping <= _LOCAL else 0
            damping = _next_damping(damping, (point.value - found.value) / promised)
            point = found
            if objective.fallback and (iteration == _SETTLED or quiet >= _QUIET):
                found = visit(problem, objective, point.at, 1, relocate=True)
                if point.value - found.value > _WORTH * abs(point.value):
                    point, quiet = found, 0
                    memory.clear()
            if quiet >= _QUIET:
                status = Status.CONVERGED
                break
        return LLMSolution(point.at, point.value, status, trace)


def _search(
    problem: OptionProblem,
    objective: LLMObjective,
    point: _Point,
    memory: list[tuple[np.ndarray, np.ndarray]],
    damping: float,
) -> tuple[_Point | None, float, float]:
    """A lower point, the decrease promised by the step to it, and its damping; or None, the decrease that the first
    step promised, and the last damping. Steps that fail empty the memory."""
    curvature = point.curvature(objective)
    first = np.nan
    for _ in range(_TRIES):
        step = _bounded(_step(point, curvature, memory if damping < _LOCAL else [], damping), len(point.at.theta))
        promised = -float(point.gradient @ step) / 2
        first = promised if np.isnan(first) else first
        if abs(first) <= _ROUNDING * abs(point.value):
            break
        if promised > 0:
            there = gauged(with_vector(point.at, point.vector + step), problem.options, objective)
            found = visit(problem, objective, there, 1)
            if found.value <= point.value - _ARMIJO * promised:
                return found, promised, damping
        memory.clear()
        damping = max(4 * damping, _LOCAL)
    return None, first, damping


def _step(point: _Point, curvature: Reduced, memory: list[tuple[np.ndarray, np.ndarray]], damping: float) -> np.ndarray:
    """The quasi-Newton step: two-loop L-BFGS around the curvature of the sample."""
    left, used = point.gradient.copy(), []
    pairs = [(s, y) for s, y in memory if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y))]
    for s, y in reversed(pairs):
        share = (s @ left) / (s @ y)
        left -= share * y
        used.append(share)
    out = curvature.solve(left, damping)
    for (s, y), share in zip(pairs, reversed(used), strict=True):
        out += (share - (y @ out) / (s @ y)) * s
    return -out


def _bounded(step: np.ndarray, n_models: int) -> np.ndarray:
    """Each model's part, and the gate's, shortened where an entry is too long."""
    rows, gate = step[:-2].reshape(n_models, -1), step[-2:]
    rows = rows / np.maximum(1.0, np.abs(rows).max(axis=1, keepdims=True) / _LONGEST)
    return np.concatenate([rows.ravel(), gate / max(1.0, np.abs(gate).max() / _LONGEST)])


def _next_damping(damping: float, gain: float) -> float:
    """Less where the promise was kept, more where it was not."""
    if gain > _GOOD:
        return damping / 4 if damping > _LEAST_DAMPING else 0.0
    return 2 * damping if gain < _POOR else damping


def visit(
    problem: OptionProblem, objective: LLMObjective, at: LLMParameters, item_steps: int, relocate: bool = False
) -> _Point:
    """Let the items take steps at the models of `at`, and sum up what the models need to know there. With `relocate`
    they also look for another minimum."""
    models = model_side(at, objective)
    at = replace(at, a=at.a.copy(), c=at.c.copy())
    sums = ModelGradient.zero(*at.delta.shape)
    every = max(1, len(problem.key) // _SAMPLE)
    loss, pieces = 0.0, []
    for group in problem.groups:
        K = group.target.shape[1]
        sample: list[tuple[ItemState, np.ndarray | None]] = []
        for some, target, observed in chunks(group):
            items, chunk = group.items[some], Chunk(group.key[some], target, observed)
            state = item_state(models, chunk, at.a[items, :K], at.c[items, :K], objective)
            for _ in range(item_steps):
                state = improved(models, chunk, state, objective)
            if relocate:
                state = relocated(models, chunk, state, objective)
            at.a[items, :K], at.c[items, :K] = state.a, state.c
            loss += float(state.cells.loss.sum())
            residual = residuals(models, state.cells, target, observed)
            sums.add(model_gradient(models, state.cells, residual, state.a, state.c, state.index.b))
            picked = np.flatnonzero(np.arange(some.start, some.start + len(items)) % every == 0)
            if len(picked):
                sample.append((state.take(picked), None if observed is None else observed[picked]))
        pieces.append(_piece(group, sample))
    by = plus(penalty_gradient(at, objective), sums)
    gradient = as_vector(through_gauge(by, at, at, problem.options, objective))
    return _Point(at, loss + penalty(at, objective), as_vector(at), gradient, by, models, pieces)


def _piece(group: OptionGroup, sample: list[tuple[ItemState, np.ndarray | None]]) -> Piece:
    """The sampled items of a group, which stand for all of them."""
    state = ItemState.joined([part for part, _ in sample])
    observed = None
    if any(part is not None for _, part in sample):
        observed = np.concatenate([np.ones(part.cells.q.shape[1:]) if seen is None else seen for part, seen in sample])
    return Piece(state, observed, len(group.items) / len(state.a))


def standard_start(problem: OptionProblem, w0: float = -3.0) -> LLMParameters:
    """Start values: theta the standardised logit of a model's mean share of the key, clipped to .01 and .99; slopes
    that favour the key; intercepts from the options' mean shares; s = kappa = 1, delta = rho = 0."""
    answers = problem.answers_per_model.sum(axis=0)
    share = np.clip(problem.right_per_model.sum(axis=0) / np.maximum(answers, 1), 0.01, 0.99)
    logit = np.log(share / (1 - share))
    logit[answers == 0] = logit[answers > 0].mean()
    logit -= logit.mean()
    spread = logit.std()
    theta = logit / spread if spread > 0 else np.linspace(-1.0, 1.0, len(logit))
    log_s, (delta, rho) = np.zeros(len(theta)), np.zeros((2, len(theta), problem.options.shape[1]))
    a, c = problem.item_start()
    return LLMParameters(theta, log_s, delta, rho, w0, 0.0, a, c)


class StartedSolver(Protocol):
    """What minimises the objective from a start."""

    def solve(
        self, problem: OptionProblem, objective: LLMObjective, start: LLMParameters, on_step: OnStep | None = None
    ) -> LLMSolution:
        """Minimise the objective from `start`."""


def solve_from_starts(
    problem: OptionProblem,
    objective: LLMObjective,
    w0s: tuple[float, ...] = (-3.0, -1.0),
    solver: StartedSolver | None = None,
    on_step: OnStep | None = None,
) -> tuple[LLMSolution, tuple[float, ...]]:
    """The best solution from several starts of the gate, and the losses of all."""
    chosen = solver or LLMSolver()
    starts = w0s if objective.fallback else w0s[:1]
    solutions = [chosen.solve(problem, objective, standard_start(problem, w0), on_step) for w0 in starts]
    return min(solutions, key=lambda one: one.loss), tuple(one.loss for one in solutions)
