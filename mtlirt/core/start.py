"""Start values from the answers alone: never the truth, never answers that were held out."""

from dataclasses import dataclass, replace

import numpy as np

from mtlirt.core.angle import nearby_line_median
from mtlirt.core.problem import Problem
from mtlirt.core.projection import project, standardise


@dataclass(frozen=True)
class Start:
    """theta : (T, N).  general : (N,).  a, d : (J,), or (J, K) for options. Feasible; a fused domain has theta[t] equal
    to general."""

    theta: np.ndarray
    general: np.ndarray
    a: np.ndarray
    d: np.ndarray


def cold_start(problem: Problem, borrow: bool) -> Start:
    """Traits from the logit of each model's share right in the domain, items as `Problem.item_start` says.

    Shares are (right + 1/2) / (answers + 1). The general trait is the median of the lines. Where a model has no answer
    in a domain its trait starts at the general trait if `borrow`, else it stays 0 and out of the mean and norm.
    """
    answers, right = problem.answers_per_model, problem.right_per_model
    present = answers > 0
    logit = np.log((right + 0.5) / (answers - right + 0.5))
    flat = np.array([np.ptp(x[p]) == 0 for x, p in zip(logit, present, strict=True)])
    logit[flat] = logit.sum(axis=0) + 1e-3 * np.arange(problem.n_models)
    gaps = not present.all()
    theta = project(logit, problem.C, present if gaps else None)
    general = nearby_line_median(theta, problem.penalty_weights, standardise(theta.mean(axis=0)[None])[0])
    if gaps and borrow:
        theta = project(np.where(present, theta, general), problem.C)
    return Start(theta, general, *problem.item_start())


def warm_start(problem: Problem, start: Start, lam: float) -> Start:
    """`start`, which may come from another lam or another C, made feasible at this one.

    A NaN in theta marks a trait that a fit at lam = 0 left open: it takes the general trait, or 0 at lam = 0.
    """
    C, present = problem.C, problem.answers_per_model > 0
    general = start.general
    fused = (start.theta == general).all(axis=1)
    if np.abs(general).max() > C and (fused.any() or lam == np.inf):
        general = project(general[None], C)[0]
    theta = np.where(np.isnan(start.theta), general, start.theta)
    if lam == 0:
        theta = theta if present.all() else np.where(present, theta, 0.0)
        theta = project(theta, C, None if present.all() else present)
    else:
        theta = np.where(fused[:, None], general, project(theta, C))
    a, d = problem.feasible(start.a, start.d)
    return replace(start, theta=theta, general=general, a=a, d=d)
