"""`fit_mtl`: the multi-domain 2PL with domain traits tied to a general trait."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np
import pandas as pd

from mtlirt._arguments import one_of, penalty_weight
from mtlirt._parallel import one_blas_thread
from mtlirt._progress import track
from mtlirt.core.problem import Problem
from mtlirt.core.start import Start, cold_start, warm_start
from mtlirt.data import Responses
from mtlirt.data.checks import same_layout
from mtlirt.errors import ConvergenceWarning, FitError, InputError
from mtlirt.models.assemble import assemble, domain_index, thresholds
from mtlirt.models.settings import BLOCK, AnyFit, MissingWeight, PenaltyWeights, Settings, Solver
from mtlirt.results.base import TraitFit
from mtlirt.results.fit import Fit
from mtlirt.solvers.adam import Adam
from mtlirt.solvers.block import Block
from mtlirt.solvers.solution import Solution, Status

_POOLED = Block(tol=1e-13)  # thresholds are gradients, whose error is the root of the objective's: 1e-6 needs 1e-12


def fit_mtl(
    responses: Responses,
    lam: float | Literal["cv"] = "cv",
    *,
    solver: Solver = BLOCK,
    C: float = 4.0,
    missing_weight: MissingWeight = "observed",
    penalty_weights: PenaltyWeights = None,
    init: Fit | None = None,
    on_fail: Literal["warn", "raise", "ignore"] = "warn",
) -> Fit:
    """Fit one trait per domain and a general trait to the answers of many models.

    Model: logit P(model i answers item j of domain t right) = a_j * theta_it + d_j. The fit minimises

        sum_t weight_t * NLL_t  +  lam * sum_t penalty_weight_t * sin(general, theta_t)

    over traits of mean 0, mean square 1 and |theta| <= C, slopes 0 <= a <= C and intercepts |d| <= C (Xie, Xu, Feng and
    Chen, "LLM Benchmarking via Representation Multi-task Learning", arXiv 2610.05613, equation 4).

    Parameters
    ----------
    responses : scores of at least 3 models; each domain needs 2 items with an answer. Scores between 0 and 1 are
        fitted as fractions.
    lam : penalty weight, from 0 (each domain separately) to math.inf (one trait for all domains). It has the units of
        the loss, so useful values grow with the number of models; `fusion_thresholds` gives the value from which
        nothing changes any more, and .03 to 1 times it is the usual range. "cv" chooses it by 5-fold cross-validation:
        `cv_mtl` with its defaults, which see for the curve, more processes and other folds.
    solver : `Block()` by default, or `Adam()`, the paper's.
    C : bound of traits, slopes and intercepts; 4 is usual, and results hardly depend on it unless slopes sit on it.
    missing_weight : "observed" gives domain t the weight 1 / (J_t * share of its cells that are answered), so that lam
        means the same with and without missing cells; "paper" gives 1 / J_t.
    penalty_weights : weight of each domain in the penalty, by name; default 1 each.
    init : a fit of the same models and items to start from, where lam is given.
    on_fail : what to do if the solver stops before its rule holds: a ConvergenceWarning, a FitError, or nothing.

    Returns
    -------
    Fit. A model without any answer in a domain is legal: at lam = 0 it has no trait there, at lam > 0 the penalty
    carries one over from the other domains (see `Fit.gaps`). For one domain the penalty is 0 and the general trait is
    the domain's; for two it is lam * sin(theta_1, theta_2), and the general trait is their normalised mean.

    Convergence
    -----------
    `fit.status` says how the fit ended and `fit.trace` how it got there; see `Block` and `Adam` for their rules. The
    problem is not convex. Fits started cold, from the pooled and from the separate fit have agreed on all data tried so
    far; pass `init` to try others.

    Raises
    ------
    InputError for arguments or answers that cannot be fitted; FitError with on_fail="raise".

    >>> import mtlirt
    >>> demo = mtlirt.datasets.demo()
    >>> fit = mtlirt.fit_mtl(demo, lam=1.0)  # lam="cv" or nothing: chosen by cross-validation
    >>> fit.converged
    True
    """
    one_of("on_fail", on_fail, ("warn", "raise", "ignore"))
    settings = Settings(solver, C, missing_weight, penalty_weights)
    responses = settings.prepare(responses)
    if isinstance(lam, str) and lam == "cv":
        if init is not None:
            raise InputError('init goes with a given lam, not with lam="cv"')
        fit = _cross_validated(responses, settings)
        report_status(fit, on_fail)
        return fit
    lam = penalty_weight(lam)
    problem = settings.problem(responses)
    pooled, lam_max = _pooled(problem, responses, init, settings)
    start = _start(problem, responses, lam, init, pooled, solver)
    if lam == math.inf and init is None and pooled is not None and solver == BLOCK:
        solution = pooled
    else:
        solution = solve(problem, lam, start, solver)
    fit = assemble(responses, problem, lam, lam_max, solution, settings.record())
    report_status(fit, on_fail)
    return fit


def fusion_thresholds(
    responses: Responses,
    *,
    C: float = 4.0,
    missing_weight: MissingWeight = "observed",
    penalty_weights: PenaltyWeights = None,
) -> pd.Series:
    """The penalty weight from which each domain stays fused to the general trait, at the pooled fit.

    lam_max_t = sqrt(N) |h_t| / penalty_weight_t, with h_t the gradient of the weighted loss of domain t with respect to
    its trait, less its parts along the mean, the norm and the box. From the largest of them upward the pooled fit
    solves the whole problem.

    Returns
    -------
    Series over domains, in the units of `lam`; 0 for a single domain. Arguments are those of `fit_mtl`.

    >>> import mtlirt
    >>> bool((mtlirt.fusion_thresholds(mtlirt.datasets.demo()) > 0).all())
    True
    """
    settings = Settings(BLOCK, C, missing_weight, penalty_weights)
    problem = settings.problem(settings.prepare(responses))
    solution = pooled_solution(problem)
    return pd.Series(thresholds(problem, solution), index=domain_index(responses), name="lam_max")


def pooled_solution(problem: Problem) -> Solution:
    """The pooled fit, exact enough for the thresholds."""
    return solve(problem, math.inf, cold_start(problem, borrow=True), _POOLED)


def fit_start(fit: AnyFit) -> Start:
    """The point of a fit, to start from; NaN where a model has no trait."""
    a, d = (fit.items[c].to_numpy() for c in ("a", "d")) if isinstance(fit, Fit) else fit.bank[:2]
    return Start(np.ascontiguousarray(fit.theta.to_numpy().T), fit.general.to_numpy(), a, d)


def _cross_validated(responses: Responses, settings: Settings) -> Fit:
    if len(responses.domains) == 1:
        return fit_mtl(responses, 0.0, **vars(settings), on_fail="ignore")
    from mtlirt.selection.cv import cv_mtl

    chosen = cv_mtl(responses, **vars(settings)).fit
    assert isinstance(chosen, Fit)
    return chosen


def solve(problem: Problem, lam: float, start: Start, solver: Solver) -> Solution:
    """Solve with progress shown, BLAS on one thread."""
    what = "pooled fit" if lam == math.inf else f"fit at lam = {lam:g}"
    with track(what) as show, one_blas_thread():
        return solver.solve(problem, lam, start, show)


def _pooled(
    problem: Problem, responses: Responses, init: Fit | None, settings: Settings
) -> tuple[Solution | None, np.ndarray]:
    """The pooled fit, a start for all others, and the fusion thresholds; taken from `init` if it knows them."""
    if len(problem.domains) == 1:
        return None, np.zeros(1)
    record = settings.record()
    same = ("C", "missing_weight", "penalty_weights")
    if (
        init is not None
        and init.data.fingerprint == responses.fingerprint
        and all(init.settings[k] == record[k] for k in same)
    ):
        return None, init.lam_max.to_numpy()
    pooled = pooled_solution(problem)
    return pooled, thresholds(problem, pooled)


def _start(
    problem: Problem, responses: Responses, lam: float, init: Fit | None, pooled: Solution | None, solver: Solver
) -> Start:
    """From `init`; else `Block` starts from the pooled fit, and the reference and the ends of the path start cold."""
    if init is not None:
        _check_init(init, responses)
        return warm_start(problem, fit_start(init), lam)
    if pooled is None or lam in (0, math.inf) or isinstance(solver, Adam):
        return cold_start(problem, borrow=lam > 0)
    return pooled.start


def _check_init(init: Fit, responses: Responses) -> None:
    if not same_layout(init.models, init.items, responses):
        raise InputError("init is a fit of other models or items (or in another order) than these responses")


def report_status(fit: TraitFit, on_fail: str) -> None:
    """Warn or raise, as `on_fail` says, if the fit did not converge."""
    if not np.isfinite(fit.objective):
        raise FitError("the fit ended with an objective that is not finite; please report this with the data's summary")
    if fit.status is Status.CONVERGED or on_fail == "ignore":
        return
    if on_fail == "raise":
        raise FitError(fit.status.value)
    warnings.warn(fit.status.value, ConvergenceWarning, stacklevel=3)
