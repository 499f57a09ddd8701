"""The paper's solver and our reference: Adam on all parameters, each step followed by projections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtlirt.core.angle import line_median_with_gaps
from mtlirt.core.problem import Problem
from mtlirt.core.projection import project
from mtlirt.core.start import Start
from mtlirt.solvers.solution import OnStep, Solution, Status

if TYPE_CHECKING:
    import torch

_CHUNK_CELLS = 4_000_000
_FLAT_SINE = 1e-12  # at or below it the sine passes no gradient on, as in the authors' program


@dataclass(frozen=True)
class Adam:
    """Adam with projections (R-MTL, section 3.2), full batch, by torch's automatic differentiation.

    Every step updates all parameters by their gradient and puts them back: slopes and intercepts are clipped, domain
    traits projected to {mean 0, mean square 1, |theta| <= C}, the general trait centred, scaled and oriented. The
    gradients of traits enter Adam without their parts along the mean and the norm: Adam scales coordinates one by one,
    so those parts would otherwise pull the fixed point away from the minimum where slopes sit on their bounds. The best
    iterate is returned, its general trait replaced by the median of its lines. Domains never fuse exactly unless lam is
    infinite.

    Convergence
    -----------
    Stops when the best objective has fallen by less than `tol` (relative) over the last `window` steps; a single small
    step of Adam means nothing. Some hundred steps are usual; where slopes sit on their bounds it stays about 1e-4
    (relative) above `Block`.

    Parameters
    ----------
    lr : learning rate, positive; the paper uses .01 to .02, .05 reaches the same in fewer steps.
    steps : limit of steps.
    halve_every : steps after which the learning rate is halved, again and again.
    tol, window : the stopping rule.
    device : a torch device such as "cpu" or "cuda".
    dtype : "float64", or "float32" for devices that are slow in double precision; then constraints hold to 1e-5 in the
        loop and nothing is promised about the last digits.

    >>> Adam(lr=0.02, steps=400).lr
    0.02
    """

    lr: float = 0.05
    steps: int = 4000
    halve_every: int = 400
    tol: float = 1e-9
    window: int = 100
    device: str = "cpu"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if not 0 < self.lr < np.inf:
            raise ValueError(f"Adam: lr must be positive, not {self.lr!r}")
        for name in ("steps", "halve_every", "window"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise ValueError(f"Adam: {name} must be a positive integer, not {value!r}")
        if not 0 <= self.tol < 1:
            raise ValueError(f"Adam: tol must lie in [0, 1), not {self.tol!r}")
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"Adam: dtype must be 'float64' or 'float32', not {self.dtype!r}")

    def solve(self, problem: Problem, lam: float, start: Start, on_step: OnStep | None = None) -> Solution:
        """Minimise the objective of `Problem` at penalty weight `lam` (0 to infinity) from `start`."""
        import torch

        pooled = np.isinf(lam) or len(problem.domains) == 1
        state = _State(problem, lam, start, pooled, torch.device(self.device), getattr(torch, self.dtype))
        optimiser = torch.optim.Adam(state.parameters, lr=self.lr)
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, self.halve_every, 0.5)
        trace: list[dict[str, float]] = []
        best, best_at = np.inf, state.copy()
        status = Status.MAX_STEPS
        for step in range(1, self.steps + 1):
            optimiser.zero_grad()
            objective = state.backward()
            if objective < best:
                best, best_at = objective, state.copy()
            trace.append({"step": step, "objective": objective, "best": best})
            if on_step is not None:
                on_step(trace[-1])
            if step > self.window and trace[-1 - self.window]["best"] - best <= self.tol * abs(best):
                status = Status.CONVERGED
                break
            optimiser.step()
            schedule.step()
            state.project()
        return _solution(problem, lam, pooled, best_at, status, trace)


class _State:
    """Parameters on the device, their loss and their projection."""

    def __init__(
        self, problem: Problem, lam: float, start: Start, pooled: bool, device: torch.device, dtype: torch.dtype
    ) -> None:
        import torch

        def parameter(x: np.ndarray) -> torch.Tensor:
            return torch.tensor(x, dtype=dtype, device=device, requires_grad=True)

        self.problem, self.device, self.dtype = problem, device, dtype
        self.lam = 0.0 if pooled else lam
        self.pair = len(problem.domains) == 2
        self.theta = parameter(project(start.general[None], problem.C) if pooled else start.theta)
        self.general = parameter(start.general)
        self.a, self.d = parameter(start.a), parameter(start.d)
        self.parameters = [self.theta, self.general, self.a, self.d]
        present = problem.answers_per_model > 0
        self.present = present if lam == 0 and not pooled and not present.all() else None
        self.penalty_weights = torch.tensor(problem.penalty_weights, dtype=dtype, device=device)
        self.right = [torch.tensor(answers.right, device=device) for answers in problem.domains]
        self.observed = [
            None if answers.observed is None else torch.tensor(answers.observed, device=device)
            for answers in problem.domains
        ]

    def copy(self) -> tuple[np.ndarray, ...]:
        """Theta, general, a, d as float64 arrays."""
        return tuple(p.detach().cpu().numpy().astype(np.float64) for p in self.parameters)

    def backward(self) -> float:
        """Objective at the present parameters, gradients accumulated chunk by chunk."""
        total = 0.0
        for loss in self._losses():
            loss.backward()
            total += float(loss.detach())
        self.theta.grad = _tangent(self.theta.detach(), self.theta.grad, self.problem.C)
        if self.general.grad is not None:
            self.general.grad = _tangent(self.general.detach()[None], self.general.grad[None], np.inf)[0]
        return total

    def _losses(self) -> Iterator[torch.Tensor]:
        import torch

        for t, (items, weight) in enumerate(zip(self.problem.item_slices, self.problem.weights, strict=True)):
            right, observed = self.right[t], self.observed[t]
            rows = max(1, _CHUNK_CELLS // right.shape[1])
            for i in range(0, right.shape[0], rows):
                theta = self.theta[min(t, len(self.theta) - 1), i : i + rows]
                z = torch.outer(theta, self.a[items]) + self.d[items]
                cell = torch.nn.functional.softplus(z)
                if observed is not None:
                    cell = cell * observed[i : i + rows].to(self.dtype)
                yield float(weight) * (cell - z * right[i : i + rows].to(self.dtype)).sum()
        if self.lam > 0:
            yield self.lam * self._penalty()

    def _penalty(self) -> torch.Tensor:
        """Weighted sum of sines; for two domains the one sine between them."""
        import torch

        if self.pair:
            others, centre, weights = self.theta[1:], self.theta[0], self.penalty_weights.min()[None]
        else:
            others, centre, weights = self.theta, self.general, self.penalty_weights
        cosine = (others @ centre) / (others.norm(dim=1) * centre.norm())
        square = 1 - cosine**2
        steep = square > _FLAT_SINE**2
        return (weights * torch.where(steep, torch.where(steep, square, 1.0).sqrt(), 0.0)).sum()

    def project(self) -> None:
        """Put every parameter back into its constraint set."""
        import torch

        C = self.problem.C
        with torch.no_grad():
            self.a.clamp_(0, C)
            self.d.clamp_(-C, C)
            theta = project(self.theta.cpu().numpy().astype(np.float64), C, self.present)
            self.theta.copy_(torch.as_tensor(theta))
            self.general -= self.general.mean()
            sign = -1.0 if float(self.general @ self.theta.sum(dim=0)) < 0 else 1.0
            self.general *= sign * len(self.general) ** 0.5 / self.general.norm()


def _tangent(trait: torch.Tensor, gradient: torch.Tensor, C: float) -> torch.Tensor:
    """Rows of `gradient` less their least-squares parts along ones and the trait, over coordinates off the box."""
    off = (trait.abs() < C * (1 - 1e-9)).to(trait.dtype)
    count = off.sum(dim=1, keepdim=True)
    centred = (trait - (trait * off).sum(dim=1, keepdim=True) / count) * off
    shifted = gradient - (gradient * off).sum(dim=1, keepdim=True) / count
    slope = (shifted * centred).sum(dim=1, keepdim=True) / (centred * centred).sum(dim=1, keepdim=True)
    return shifted - slope * (trait - (trait * off).sum(dim=1, keepdim=True) / count)


def _solution(
    problem: Problem,
    lam: float,
    pooled: bool,
    best: tuple[np.ndarray, ...],
    status: Status,
    trace: list[dict[str, float]],
) -> Solution:
    T = len(problem.domains)
    theta, _, a, d = best
    present = problem.answers_per_model > 0
    if pooled or lam > 0:
        present = np.ones_like(present)
    theta = project(theta, problem.C, None if present.all() else present)
    if pooled:
        return Solution(np.repeat(theta, T, axis=0), theta[0], a, d, np.full(T, True), status, trace)
    weights = problem.penalty_weights if T > 2 or lam == 0 else np.ones(2)
    general = line_median_with_gaps(theta, present, weights).line
    return Solution(theta, general, a, d, np.full(T, False), status, trace)
