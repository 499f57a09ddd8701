"""The default solver: sweeps of block Newton steps on a tabulated likelihood."""

from dataclasses import dataclass, replace

import numpy as np

from mtlirt.core.angle import SAME_LINE, line_median, line_median_with_gaps, sines
from mtlirt.core.field import Field, tabulate
from mtlirt.core.grid import Grid, Location
from mtlirt.core.masked import item_weights
from mtlirt.core.options import OptionProblem
from mtlirt.core.problem import Problem
from mtlirt.core.projection import project
from mtlirt.core.start import Start
from mtlirt.solvers.coupling import Space, Traits, move_each, move_fused, move_general, move_together
from mtlirt.solvers.items import item_step
from mtlirt.solvers.leap import Point, leap, stretch
from mtlirt.solvers.options import option_step
from mtlirt.solvers.solution import OnStep, Solution, Status

_ITEM_PASSES = 2  # more passes within a sweep do not save sweeps, fewer cost some (see benchmarks/README.md)
_TRAIT_STEPS = 2
_STALLED_SWEEPS = 3
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Block:
    """Block Newton solver, monotone, in float64 on numpy alone.

    One sweep lowers the objective in turn over the items (projected Newton, two parameters each), each domain trait
    (Newton in the tangent space of the sphere, within the box, with exact fusion to the general trait and release from
    it), the fused group, all traits together (a rotation that changes no sine), and the general trait. Within a sweep
    the likelihood is read off a grid (`mtlirt.core.grid`), so that it costs two products with the answers and
    O(nodes * items + models * domains) exponentials.

    Convergence
    -----------
    The projected gradient of all blocks, measured in the metric of their Hessians, promises a decrease of
    gradient**2 / 2. The solver stops when this and the last sweep's decrease are both below `tol` times the objective;
    usual fits need 5 to 60 sweeps. The objective never rises from sweep to sweep.

    Parameters
    ----------
    max_sweeps : positive int.
    tol : relative tolerance on the objective, positive; 1e-10 leaves traits accurate to about 1e-4.

    >>> Block(tol=1e-8)
    Block(max_sweeps=500, tol=1e-08)
    """

    max_sweeps: int = 500
    tol: float = 1e-10

    def __post_init__(self) -> None:
        if not (isinstance(self.max_sweeps, int) and self.max_sweeps >= 1):
            raise ValueError(f"Block: max_sweeps must be a positive integer, not {self.max_sweeps!r}")
        if not 0 < self.tol < 1:
            raise ValueError(f"Block: tol must lie between 0 and 1, not {self.tol!r}")

    def solve(self, problem: Problem, lam: float, start: Start, on_step: OnStep | None = None) -> Solution:
        """Minimise the objective of `Problem` at penalty weight `lam` (0 to infinity) from `start`."""
        pooled = np.isinf(lam) or len(problem.domains) == 1
        space = _space(problem, lam, pooled)
        a, d = start.a, start.d
        traits = _traits(start, space, lam, pooled)
        field = _field(problem, problem.grid.around(traits.theta, traits.general), a, d, traits.theta, pooled)
        traits = replace(traits, value=field.value(traits.theta))
        objective = _objective(traits, space)
        trace: list[dict[str, float]] = []
        points: list[Point] = []
        status, idle = Status.MAX_STEPS, 0
        for sweep in range(1, self.max_sweeps + 1):
            a, d, field, traits = _move_items(problem, a, d, field, traits, pooled)
            gradient = np.sqrt(2 * max(traits.decrement, 0.0))
            traits = _move_traits(field, traits, replace(space, C=field.grid.reach), lam, pooled)
            previous, objective = objective, _objective(traits, space)
            trace.append(_record(sweep, objective, gradient, traits, problem.at_bounds(a)))
            if on_step is not None:
                on_step(trace[-1])
            decrease = previous - objective
            points = [*points[-2:], Point(traits, a, d)]
            inside = field.grid.reach == problem.C or np.abs(traits.theta).max() < field.grid.reach
            if inside and max(decrease, gradient**2 / 2) <= self.tol * objective:
                polished = _polish(traits, space, lam, pooled)
                if polished is traits:
                    status = Status.CONVERGED
                    break
                traits = polished
            if len(points) == 3:
                a, d, field, traits = _leap(problem, space, points, field, pooled)
                objective, points = _objective(traits, space), []
            idle = idle + 1 if decrease <= _ROUNDING * objective else 0
            if idle == _STALLED_SWEEPS:
                status = Status.STALLED
                break
        return _solution(problem, traits, space, a, d, lam, status, trace)


def _space(problem: Problem, lam: float, pooled: bool) -> Space:
    """Penalty weights and absences. For two domains both carry the lighter weight: the penalty is one sine."""
    T, N = (1 if pooled else len(problem.domains)), problem.n_models
    weights = np.zeros(T) if pooled or lam == 0 else lam * problem.sine_weights
    separate = lam == 0 and len(problem.domains) > 1
    return Space(problem.C, weights, (problem.answers_per_model > 0).astype(float) if separate else np.ones((T, N)))


def _traits(start: Start, space: Space, lam: float, pooled: bool) -> Traits:
    """Starting traits; for two domains the general trait sits on the first, whose sine is then 0."""
    T = len(space.lam)
    theta = project(start.general[None], space.C) if pooled else start.theta.copy()
    general = theta[0].copy() if T == 2 else start.general.copy()
    if pooled or lam == 0:
        fused, sine = np.zeros(T, dtype=bool), np.zeros(T)
    else:
        sine = sines(general, theta)
        fused = sine < SAME_LINE
        theta, sine = np.where(fused[:, None], general, theta), np.where(fused, 0.0, sine)
    return Traits(theta, general, fused, np.zeros(T), sine)


def _field(problem: Problem, grid: Grid, a: np.ndarray, d: np.ndarray, theta: np.ndarray, pooled: bool) -> Field:
    around = np.broadcast_to(theta, (len(problem.domains), theta.shape[1]))
    field = tabulate(problem, grid, a, d, around)
    return field.pooled() if pooled else field


def _objective(traits: Traits, space: Space) -> float:
    return float(traits.value.sum() + space.lam @ traits.sine)


def _move_items(
    problem: Problem, a: np.ndarray, d: np.ndarray, field: Field, traits: Traits, pooled: bool
) -> tuple[np.ndarray, np.ndarray, Field, Traits]:
    """Lower the loss over the items; a domain whose loss would rise by interpolation error keeps its items."""
    grid = problem.grid.around(traits.theta, traits.general)
    theta = np.broadcast_to(traits.theta, (len(problem.domains), problem.n_models))
    weights, groups = _node_weights(problem, grid, traits.theta, theta, pooled)
    if isinstance(problem, OptionProblem):
        step = option_step(problem, grid.nodes, weights, groups, theta, a, d, _ITEM_PASSES)
    else:
        right, right_theta = problem.right_per_item, problem.right_by_trait(theta)
        step = item_step(grid.nodes, weights, right_theta, right, a, d, problem.C, _ITEM_PASSES, groups)
    new_a, new_d = step.a, step.d
    new_field = _field(problem, grid, new_a, new_d, theta, pooled)
    value = new_field.value(traits.theta)
    worse = value > traits.value
    if worse.any():
        back = np.full(len(a), True) if pooled else worse[problem.item_domain]
        new_a[back], new_d[back] = a[back], d[back]
        new_field = field if back.all() else _field(problem, grid, new_a, new_d, theta, pooled)
        value = np.where(worse, traits.value, value)
    promised = float(problem.weights[problem.item_domain] @ step.decrement)
    return new_a, new_d, new_field, replace(traits, value=value, decrement=traits.decrement + promised)


def _leap(
    problem: Problem, space: Space, points: list[Point], field: Field, pooled: bool
) -> tuple[np.ndarray, np.ndarray, Field, Traits]:
    """The point to which the last three sweeps lead, if the objective is lower there, else where they ended."""
    older, old, now = points
    s = stretch(older, old, now)
    if s > 1 and all((p.traits.fused == now.traits.fused).all() for p in (older, old)):
        there = leap(older, old, now, s, space, problem.feasible)
        grid = problem.grid.around(there.traits.theta, there.traits.general)
        new_field = _field(problem, grid, there.a, there.d, there.traits.theta, pooled)
        traits = replace(there.traits, value=new_field.value(there.traits.theta))
        if _objective(traits, space) < _objective(now.traits, space):
            return there.a, there.d, new_field, traits
    return now.a, now.d, field, now.traits


def _node_weights(
    problem: Problem, grid: Grid, own: np.ndarray, theta: np.ndarray, pooled: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights of the nodes: (T, K) with each item's row if answers are complete, else (K, J)."""
    if problem.complete:
        return grid.collapse(own), np.zeros_like(problem.item_domain) if pooled else problem.item_domain
    weights = np.zeros((len(grid.nodes), len(problem.item_domain)))
    where = grid.locate(theta)
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        if answers.observed is None:
            weights[:, items] = grid.collapse(theta[t : t + 1]).T
        else:
            weights[:, items] = item_weights(grid, answers.observed, Location(where.cell[t], where.u[t]))
    return weights, None


def _move_traits(field: Field, traits: Traits, space: Space, lam: float, pooled: bool) -> Traits:
    T = len(traits.theta)
    everyone = np.arange(T)
    if pooled:
        moved = move_each(field, traits, space, everyone, traits.general, _TRAIT_STEPS)
        return replace(moved, general=moved.theta[0].copy())
    if lam == 0:
        return move_each(field, traits, space, everyone, traits.general, _TRAIT_STEPS)
    traits = move_each(field, traits, space, everyone[1:] if T == 2 else everyone, traits.general, _TRAIT_STEPS)
    traits = move_fused(field, traits, space)
    traits = move_together(field, traits, space)
    return traits if traits.fused.any() else move_general(traits, space)


def _polish(traits: Traits, space: Space, lam: float, pooled: bool) -> Traits:
    """The same traits, unless a global search finds a line with a clearly lower sum of sines."""
    if pooled or lam == 0 or len(traits.theta) == 2:
        return traits
    median = line_median(traits.theta, space.lam)
    if median.value >= (space.lam @ traits.sine) * (1 - 1e-9):
        return traits
    sine = sines(median.line, traits.theta)
    fused = sine < SAME_LINE
    theta = np.where(fused[:, None], median.line, traits.theta)
    return replace(traits, theta=theta, general=median.line, sine=np.where(fused, 0.0, sine), fused=fused)


def _record(
    sweep: int, objective: float, gradient: float, traits: Traits, at_bounds: dict[str, float]
) -> dict[str, float]:
    """One row of the trace; the gradient is the one with which the sweep began."""
    return {
        "step": sweep,
        "objective": objective,
        "gradient": float(gradient),
        "n_fused": int(traits.fused.sum()),
        "max_abs_theta": float(np.abs(traits.theta).max()),
        **at_bounds,
    }


def _solution(
    problem: Problem,
    traits: Traits,
    space: Space,
    a: np.ndarray,
    d: np.ndarray,
    lam: float,
    status: Status,
    trace: list[dict[str, float]],
) -> Solution:
    """Undo the solver's conventions for pooled fits, separate fits and two domains."""
    T = len(problem.domains)
    if len(traits.theta) < T or T == 1:
        return Solution(np.repeat(traits.theta[:1], T, axis=0), traits.general, a, d, np.full(T, True), status, trace)
    theta, general, fused = traits.theta, traits.general, traits.fused
    if lam == 0:
        general = line_median_with_gaps(theta, space.ones > 0, problem.penalty_weights).line
    elif T == 2:
        fused = np.full(2, bool(fused.all()))
        general = theta[0] if fused.all() else line_median(theta).line
    return Solution(theta, general, a, d, fused, status, trace)
