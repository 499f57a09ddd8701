"""A solution, measured exactly and labelled: arrays to `Fit`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from mtlirt.core.angle import sines
from mtlirt.core.field import tabulate
from mtlirt.core.likelihood import CellSums, cell_sums, information
from mtlirt.core.option_likelihood import option_cell_sums
from mtlirt.core.options import OptionProblem, centred
from mtlirt.core.problem import Problem
from mtlirt.data import Responses
from mtlirt.results.base import DataSummary
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.results.tables import item_frame, nominal_item_frame, option_frame
from mtlirt.solvers.ability import Coupling, coupling_of
from mtlirt.solvers.solution import Solution
from mtlirt.solvers.traits import newton_direction


def domain_index(responses: Responses) -> pd.Index:
    """Names of the domains."""
    return pd.Index(responses.domains, name="domain", dtype=str)


def thresholds(problem: Problem, pooled: Solution) -> np.ndarray:
    """(T,) the lam from which each domain stays fused at the pooled fit; 0 for a single domain."""
    if len(problem.domains) == 1:
        return np.zeros(1)
    field = tabulate(problem, problem.grid, pooled.a, pooled.d)
    der = field.derivatives(pooled.theta)
    ones = np.ones_like(pooled.theta)
    residual = newton_direction(pooled.theta, der.gradient, der.curvature, ones, problem.C).residual
    return np.sqrt(problem.n_models) * np.linalg.norm(residual, axis=1) / problem.sine_weights


def assemble(
    responses: Responses,
    problem: Problem,
    lam: float,
    lam_max: np.ndarray,
    solution: Solution,
    settings: dict[str, Any],
) -> Fit:
    """Measure a solution of the 2PL exactly and label it."""
    at_traits = cell_sums(problem, solution.theta, solution.a, solution.d)
    at_general = information(problem, solution.general, solution.a, solution.d)
    items = responses.items
    return Fit(
        **_common(responses, problem, lam, lam_max, solution, settings, at_traits, at_general),
        items=item_frame(
            items["domain"],
            items["item"],
            solution.a,
            solution.d,
            problem.answers_per_item,
            problem.right_per_item,
            problem.C,
        ),
    )


def assemble_nominal(
    responses: Responses,
    problem: OptionProblem,
    lam: float,
    lam_max: np.ndarray,
    solution: Solution,
    settings: dict[str, Any],
) -> NominalFit:
    """Measure a solution of the nominal response model exactly and label it; `responses` hold the problem's items."""
    a, c = centred(solution.a, problem.options), centred(solution.d, problem.options)
    at_traits = option_cell_sums(problem, solution.theta, a, c)
    one_trait = np.broadcast_to(solution.general, solution.theta.shape)
    at_general = option_cell_sums(problem, one_trait, a, c).information.sum(axis=0)
    common = _common(responses, problem, lam, lam_max, solution, settings, at_traits, at_general)
    ridge = problem.ridge / 2 * (np.square(a) + np.square(c)).sum(axis=1)
    common["loss"] += float(problem.weights[problem.item_domain] @ ridge)
    return NominalFit(
        **common,
        items=nominal_item_frame(responses.items, problem),
        options=option_frame(responses, problem, a, c),
        model_parameters=None,
        gate=None,
    )


def _common(
    responses: Responses,
    problem: Problem,
    lam: float,
    lam_max: np.ndarray,
    solution: Solution,
    settings: dict[str, Any],
    at_traits: CellSums,
    at_general: np.ndarray,
) -> dict[str, Any]:
    """What all kinds of fit have, but for their items."""
    models, domains = responses.models, domain_index(responses)
    T, theta = len(domains), solution.theta
    answers = problem.answers_per_model
    if lam == 0 and T > 1:
        theta = np.where(answers > 0, theta, np.nan)
    with np.errstate(invalid="ignore"):
        mean_score = problem.right_per_model / np.where(answers > 0, answers, np.nan)
    vertex = np.flatnonzero(solution.fused)

    def frame(x: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(x.T, index=models, columns=domains)

    def by_domain(x: np.ndarray, name: str) -> pd.Series:
        return pd.Series(x, index=domains, name=name)

    return {
        "theta": frame(theta),
        "general": pd.Series(solution.general, index=models, name="general"),
        "loss": float(problem.weights @ at_traits.nll),
        "penalty": _penalty(problem, lam, solution),
        "lam": lam,
        "lam_max": by_domain(lam_max, "lam_max"),
        "fused": by_domain(solution.fused, "fused"),
        "general_unique": bool(T != 2 or solution.fused.all()),
        "general_at": str(domains[vertex[0]]) if len(vertex) == 1 and T > 2 else None,
        "status": solution.status,
        "trace": pd.DataFrame(solution.trace),
        "settings": settings,
        "log_likelihood": -float(at_traits.nll.sum()),
        "trait_information": frame(at_traits.information),
        "general_information": pd.Series(at_general, index=models, name="general_information"),
        "weights": by_domain(problem.weights, "weights"),
        "penalty_weights": by_domain(problem.penalty_weights, "penalty_weights"),
        "coupling": _coupling(problem, lam, solution, at_traits),
        "data": DataSummary(
            frame(answers.astype(np.int64)), frame(mean_score), responses.fingerprint, tuple(responses.notes)
        ),
    }


def _penalty(problem: Problem, lam: float, solution: Solution) -> float:
    """lam times the weighted sum of sines at the solution; 0 at both ends and for one domain."""
    T = len(problem.domains)
    if lam in (0, math.inf) or T == 1 or solution.fused.all():
        return 0.0
    if T == 2:
        return float(lam * problem.sine_weights[0] * sines(solution.theta[0], solution.theta[1:])[0])
    sine = np.where(solution.fused, 0.0, sines(solution.general, solution.theta))
    return float(lam * (problem.penalty_weights @ sine))


def _coupling(problem: Problem, lam: float, solution: Solution, at_traits: CellSums) -> Coupling:
    separate = lam == 0 and len(problem.domains) > 1
    known = problem.answers_per_model > 0 if separate else np.ones_like(solution.theta, dtype=bool)
    off_box = known & (np.abs(solution.theta) < problem.C * (1 - 1e-9))
    weights = np.zeros(len(problem.domains)) if lam in (0, math.inf) else lam * problem.sine_weights
    gradient = problem.weights[:, None] * at_traits.gradient
    fused = solution.fused & (not separate)
    return coupling_of(solution.theta, solution.general, fused, weights, gradient, off_box)
