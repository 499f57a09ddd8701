"""`fit_llm_nrm`: the nominal response model with sharpness, position and fallback of each language model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from mtlirt._arguments import number, one_of
from mtlirt._parallel import one_blas_thread
from mtlirt._progress import track
from mtlirt.core.llm_nrm import LLMObjective, LLMParameters, penalty
from mtlirt.core.options import OptionProblem
from mtlirt.data import Responses
from mtlirt.data.options import Channel
from mtlirt.errors import InputError
from mtlirt.models.assemble import assemble_nominal
from mtlirt.models.mtl import report_status
from mtlirt.models.nrm import RIDGE, NominalSettings
from mtlirt.results.nominal import NominalFit
from mtlirt.solvers.adam_options import AdamOptions
from mtlirt.solvers.llm_nrm import LLMSolution, LLMSolver, solve_from_starts
from mtlirt.solvers.solution import Solution

LLMSolvers = LLMSolver | AdamOptions
Scale = Literal["unit", "prior"]
ObjectiveName = Literal["ridge", "paper"]


def fit_llm_nrm(
    responses: Responses,
    *,
    channel: Channel = "auto",
    sharpness: bool | None = None,
    position: bool = True,
    fallback: bool | None = None,
    scale: Scale = "unit",
    objective: ObjectiveName = "ridge",
    ridge: float = RIDGE,
    solver: LLMSolvers | None = None,
    on_fail: Literal["warn", "raise", "ignore"] = "warn",
) -> NominalFit:
    """Fit the LLM nominal response model, one trait for all items (LLM-NRM paper, equations 6 to 15).

        u_k = s (a_k theta + c_k + delta_k)          s: the model's sharpness, delta: its preference for positions
        G = sigma(w0 - kappa (theta - b))            how far it falls back on rho, its pattern of guessing
        P(option k) proportional to exp((1 - G) u_k + G rho_k)

    with b the item's difficulty index, a function of its a and c (equation 10).

    Parameters
    ----------
    responses, channel, ridge : as for `fit_nrm`.
    sharpness, position, fallback : components that the model has; without any it is Bock's. Sharpness and fallback are
        on in the soft channel and off in the hard one unless you say so. Chosen options alone do not hold them: a
        single model's s grows until the items fit its answers, and the gate closes to a step; both predict held-out
        answers worse (vignettes/wrong-answers).
    scale : "unit" holds theta at mean 0 and mean square 1 and log s at mean 0, with weak normal priors on w0 and log
        kappa. "prior" leaves the scale to a N(0, 1) prior on theta and the ridges, without priors on the gate.
    objective : "ridge" has ridges on a and c (`ridge`), log s, delta and rho (1 each) and a smooth difficulty index;
        the gate is started from w0 = -3 and -1, and the losses of both are in `settings["starts"]`. "paper" is
        equation 15 to the letter: a N(0, 1) prior on theta whatever `scale`, a clamped index and no ridge. It has no
        minimiser, and goes with `AdamOptions`, which stops after its steps.
    solver : `LLMSolver` (default), or `AdamOptions`, the paper's.
    on_fail : as for `fit_nrm`.

    Returns
    -------
    NominalFit: as of `fit_nrm`, and `model_parameters` (model, theta, s, delta and rho by position) and `gate` (w0,
    kappa). Information, curves and distractors are those of the nominal part, s = 1 and G = 0.

    Convergence
    -----------
    The objective has several minima. `LLMSolver` never raises it and stops when no theta moves; see there.

    Raises
    ------
    InputError for answers that an option model cannot use; FitError with on_fail="raise".

    >>> rng = np.random.default_rng(1)
    >>> rows = [(f"m{i}", "math", f"q{j}", "ABC"[rng.integers(3)], "ABC"[j % 3]) for i in range(8) for j in range(6)]
    >>> table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key"])
    >>> answers = Responses.from_long(table, score=None, option="option", key="key")
    >>> list(fit_llm_nrm(answers).model_parameters)
    ['model', 'theta', 's', 'delta:A', 'delta:B', 'delta:C', 'rho:A', 'rho:B', 'rho:C']
    """
    one_of("on_fail", on_fail, ("warn", "raise", "ignore"))
    one_of("scale", scale, ("unit", "prior"))
    one_of("objective", objective, ("ridge", "paper"))
    base = LLMObjective() if scale == "unit" else LLMObjective.free()
    base = LLMObjective.paper() if objective == "paper" else replace(base, ridge=number("ridge", ridge, 1e-3, 1e3))
    for name, value in (("sharpness", sharpness), ("position", position), ("fallback", fallback)):
        if value not in (True, False, None) or (value is None and name == "position"):
            raise InputError(f"{name} must be True or False, not {value!r}")
    if solver is not None and not isinstance(solver, LLMSolver | AdamOptions):
        raise InputError(f"solver must be LLMSolver(...) or AdamOptions(...), not {solver!r}")
    chosen = solver or (AdamOptions() if objective == "paper" else LLMSolver())
    if objective == "paper" and not isinstance(chosen, AdamOptions):
        raise InputError('objective="paper" has no minimiser: it goes with AdamOptions, which stops after its steps')
    settings = NominalSettings(channel=channel, one_trait=True)
    prepared = settings.prepare(responses)
    problem = settings.problem(prepared)
    soft = problem.channel == "soft"
    goal = replace(
        base,
        sharpness=soft if sharpness is None else sharpness,
        position=position,
        fallback=soft if fallback is None else fallback,
    )
    components = [name for name in ("sharpness", "position", "fallback") if getattr(goal, name)]
    with track("fit of the LLM-NRM") as show, one_blas_thread():
        solution, losses = solve_from_starts(problem, goal, solver=chosen, on_step=show)
    record = {
        "verb": "fit_llm_nrm" if components else "fit_nrm",
        "channel": problem.channel,
        "ridge": goal.ridge,
        "scale": "unit" if goal.unit else "prior",
        "objective": objective,
        "components": components,
        "solver": {"name": type(chosen).__name__, **vars(chosen)},
        "C": settings.C,
        "starts": list(losses),
    }
    fit = _fit(prepared, problem, goal, solution, record)
    report_status(fit, on_fail)
    return fit


def _fit(
    prepared: Responses, problem: OptionProblem, goal: LLMObjective, solution: LLMSolution, record: dict[str, Any]
) -> NominalFit:
    at = solution.parameters
    T = len(problem.domains)
    as_nominal = Solution(
        np.repeat(at.theta[None], T, axis=0), at.theta, at.a, at.c, np.full(T, True), solution.status, solution.trace
    )
    nominal = assemble_nominal(prepared, problem, math.inf, np.zeros(T), as_nominal, record)
    return replace(
        nominal,
        loss=solution.loss,
        log_likelihood=-(solution.loss - penalty(at, goal)),
        model_parameters=_model_parameters(prepared, at) if record["components"] else None,
        gate={"w0": at.w0, "kappa": at.kappa} if goal.fallback else None,
    )


def _model_parameters(prepared: Responses, at: LLMParameters) -> pd.DataFrame:
    labels = prepared.labels[: at.delta.shape[1]]
    return pd.DataFrame(
        {
            "model": prepared.models,
            "theta": at.theta,
            "s": at.s,
            **{f"delta:{label}": at.delta[:, k] for k, label in enumerate(labels)},
            **{f"rho:{label}": at.rho[:, k] for k, label in enumerate(labels)},
        }
    )
