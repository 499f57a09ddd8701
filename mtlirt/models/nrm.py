"""`fit_nrm` and `fit_mtl_nrm`: Bock's nominal response model with one trait, and with one per domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from mtlirt._arguments import number, one_of, penalty_weight
from mtlirt.core.options import OptionProblem
from mtlirt.core.problem import Problem
from mtlirt.core.start import cold_start
from mtlirt.data import Responses
from mtlirt.data.options import Channel, option_answers
from mtlirt.data.responses import Blocks
from mtlirt.errors import InputError
from mtlirt.models.assemble import assemble_nominal, thresholds
from mtlirt.models.mtl import pooled_solution, report_status, solve
from mtlirt.models.settings import BLOCK, MissingWeight, PenaltyWeights, Settings, Solver
from mtlirt.results.nominal import NominalFit
from mtlirt.solvers.block import Block
from mtlirt.solvers.solution import Solution

Model = Literal["2pl", "nrm"]
RIDGE = 0.04
_RIDGES = (1e-3, 1e3)  # with less, slopes of separable items outgrow the grid


@dataclass(frozen=True)
class NominalSettings(Settings):
    """channel and ridge as in `fit_nrm`, one_trait True for its loss, the rest as in `Settings`."""

    channel: Channel = "auto"
    ridge: float = RIDGE
    one_trait: bool = False
    kind: ClassVar[type] = NominalFit

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("channel", self.channel, ("auto", "hard", "soft"))
        number("ridge", self.ridge, *_RIDGES)
        if not isinstance(self.solver, Block):
            raise InputError(f"solver must be Block(...) for a nominal model, not {self.solver!r}")

    def record(self) -> dict[str, Any]:
        """The settings as plain values, for a manifest."""
        verb = "fit_nrm" if self.one_trait else "fit_mtl_nrm"
        return {**super().record(), "channel": self.channel, "ridge": float(self.ridge), "verb": verb}

    def prepare(self, responses: Responses) -> Responses:
        """The answers to the items that option models can use, with notes of what was left out."""
        answers = option_answers(super().prepare(responses), self.channel)
        return answers.responses.with_notes(*answers.notes)

    def problem(self, responses: Responses) -> OptionProblem:
        """The estimation problem of prepared answers; InputError if they cannot be fitted."""
        answers = option_answers(responses, self.channel)
        scores = super().problem(replace(answers.responses, blocks=Blocks(answers.right)))
        return OptionProblem.of(scores, answers.groups, float(self.ridge))

    def weighted(self, problem: Problem) -> Problem:
        """All answers alike for one trait, else each domain as `missing_weight` says."""
        if self.one_trait:
            return replace(problem, weights=np.ones(len(problem.domains)))
        return super().weighted(problem)

    def assemble(
        self, responses: Responses, problem: Problem, lam: float, lam_max: np.ndarray, solution: Solution
    ) -> NominalFit:
        """The fit that a solution for prepared answers makes."""
        assert isinstance(problem, OptionProblem)
        record = {**self.record(), "channel": problem.channel}
        return assemble_nominal(responses, problem, lam, lam_max, solution, record)


def settings_of(
    model: Model,
    solver: Solver,
    C: float,
    missing_weight: MissingWeight,
    penalty_weights: PenaltyWeights,
    channel: Channel,
    ridge: float,
) -> Settings:
    """Settings of the model by name; InputError for options that only the nominal model has."""
    one_of("model", model, ("2pl", "nrm"))
    if model == "nrm":
        return NominalSettings(solver, C, missing_weight, penalty_weights, channel, ridge)
    if (channel, ridge) != ("auto", RIDGE):
        raise InputError('channel and ridge go with model="nrm"')
    return Settings(solver, C, missing_weight, penalty_weights)


def fit_nrm(
    responses: Responses,
    *,
    channel: Channel = "auto",
    ridge: float = RIDGE,
    scale: Literal["unit", "prior"] = "unit",
    objective: Literal["ridge", "paper"] = "ridge",
    C: float = 4.0,
    solver: Block = BLOCK,
    on_fail: Literal["warn", "raise", "ignore"] = "warn",
) -> NominalFit:
    """Fit Bock's nominal response model, one trait for all items.

    P(option k) = exp(a_k theta + c_k) / sum_l exp(a_l theta + c_l), with a and c summing to 0 over an item's options.
    Minimised over theta, with mean 0, mean square 1 and |theta| <= C, and over all a and c:

        sum over answers of -sum_k p_k log P(option k) + ridge / 2 * sum (a**2 + c**2)

    with p_k = 1 at the chosen option (hard channel) or the option's probability (soft). The sign of theta is that of
    better models.

    Parameters
    ----------
    responses : answers with options (or probabilities) and keys. Items without a key, with fewer than two options or
        never answered are left out; an answer without an option is missing; both are counted in the fit's notes.
    channel : "hard" the chosen option, "soft" the probabilities, "auto" soft where there are probabilities.
    ridge : keeps slopes and intercepts of options that nobody chose finite, .001 to 1000; .04 is weak, a prior with
        variance 25, and too weak to predict well with a few dozen models (see `compare_channels`).
    scale : "unit" as above. "prior" drops the constraints on theta and adds sum theta**2 / 2, a N(0, 1) prior.
    objective : "paper" is equation 15 of the LLM-NRM paper, the prior without any ridge, by 2,500 steps of Adam; it has
        no minimiser (theta shrinks while slopes grow).
    C : bound of the trait with scale="unit", in units of its standard deviation, 1 to 20.
    solver : `Block`, with scale="unit".
    on_fail : "warn" (ConvergenceWarning), "raise" (FitError) or "ignore" if the fit does not converge.

    Returns
    -------
    NominalFit: `options`, `theta`, `information`, `informative_distractors`, `curves`.

    Convergence
    -----------
    At fixed items each option's log-sum-exp is tabulated as the 2PL's softplus is, so a sweep costs two products with
    the answers; the objective never rises (see `Block`). With few models and items it has several minima, and nothing
    says that the lowest was found.

    Raises
    ------
    InputError for answers that an option model cannot use; FitError with on_fail="raise".

    Source: Bock (1972), Psychometrika 37; LLM-NRM, equations 2 and 3.

    >>> import pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> rows = [(f"m{i}", "math", f"q{j}", "ABC"[rng.integers(3)], "A") for i in range(8) for j in range(5)]
    >>> table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key"])
    >>> answers = Responses.from_long(table, score=None, option="option", key="key")
    >>> fit_nrm(answers).options.shape
    (15, 7)
    """
    one_of("on_fail", on_fail, ("warn", "raise", "ignore"))
    one_of("scale", scale, ("unit", "prior"))
    one_of("objective", objective, ("ridge", "paper"))
    settings = NominalSettings(solver, C, channel=channel, ridge=ridge, one_trait=True)
    if scale == "prior" or objective == "paper":
        if (C, solver) != (4.0, BLOCK):
            raise InputError('C and solver go with scale="unit" and objective="ridge"')
        from mtlirt.models.llm_nrm import fit_llm_nrm

        return fit_llm_nrm(
            responses,
            channel=channel,
            sharpness=False,
            position=False,
            fallback=False,
            scale=scale,
            objective=objective,
            ridge=ridge,
            on_fail=on_fail,
        )
    prepared = settings.prepare(responses)
    problem = settings.problem(prepared)
    solution = solve(problem, math.inf, cold_start(problem, borrow=True), settings.solver)
    fit = settings.assemble(prepared, problem, math.inf, thresholds(problem, solution), solution)
    report_status(fit, on_fail)
    return fit


def fit_mtl_nrm(
    responses: Responses,
    lam: float | Literal["cv"] = "cv",
    *,
    channel: Channel = "auto",
    ridge: float = RIDGE,
    solver: Block = BLOCK,
    C: float = 4.0,
    missing_weight: MissingWeight = "observed",
    penalty_weights: PenaltyWeights = None,
    on_fail: Literal["warn", "raise", "ignore"] = "warn",
) -> NominalFit:
    """Fit the nominal response model with one trait per domain, tied to a general trait by the sine penalty.

    The objective of `fit_mtl` with the loss of `fit_nrm`:

        sum_t weight_t * (sum over answers of -sum_k p_k log P(option k) + ridge / 2 * sum (a**2 + c**2))
        + lam * sum_t sin(theta_G, theta_t)

    lam = 0 fits the domains apart, lam = infinity gives all of them one trait; `lam_max` is where a domain fuses. "cv"
    chooses lam by five-fold cross-validation (`cv_mtl` with model="nrm").

    Parameters
    ----------
    responses, channel, ridge : as for `fit_nrm`.
    lam, solver, C, missing_weight, penalty_weights, on_fail : as for `fit_mtl`.

    Returns
    -------
    NominalFit.

    Convergence
    -----------
    As for `fit_nrm` within each domain, and as for `fit_mtl` between them: the objective never rises, `fit.status` says
    how it ended, and several starts may lead to several minima.

    Raises
    ------
    InputError for arguments or answers that cannot be used; FitError with on_fail="raise".

    >>> import pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> rows = [
    ...     (f"m{i}", domain, f"q{j}", "ABC"[rng.integers(3)], "A")
    ...     for i in range(8) for domain in ("law", "math") for j in range(5)
    ... ]
    >>> table = pd.DataFrame(rows, columns=["model", "domain", "item", "option", "key"])
    >>> answers = Responses.from_long(table, score=None, option="option", key="key")
    >>> fit_mtl_nrm(answers, lam=np.inf).fused.all()
    np.True_
    """
    one_of("on_fail", on_fail, ("warn", "raise", "ignore"))
    settings = NominalSettings(solver, C, missing_weight, penalty_weights, channel, ridge)
    prepared = settings.prepare(responses)
    if isinstance(lam, str) and lam == "cv":
        fit = _cross_validated(responses, len(prepared.domains), settings)
        report_status(fit, on_fail)
        return fit
    lam = penalty_weight(lam)
    problem = settings.problem(prepared)
    pooled = pooled_solution(problem)
    start = cold_start(problem, borrow=False) if lam == 0 else pooled.start
    solution = solve(problem, lam, start, settings.solver)
    fit = settings.assemble(prepared, problem, lam, thresholds(problem, pooled), solution)
    report_status(fit, on_fail)
    return fit


def _cross_validated(responses: Responses, n_domains: int, settings: NominalSettings) -> NominalFit:
    how: dict[str, Any] = {**vars(settings)}
    del how["one_trait"]
    if n_domains == 1:
        return fit_mtl_nrm(responses, 0.0, **how, on_fail="ignore")
    from mtlirt.selection.cv import cv_mtl

    chosen = cv_mtl(responses, model="nrm", **how).fit
    assert isinstance(chosen, NominalFit)
    return chosen
