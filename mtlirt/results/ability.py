"""`score_nrm`: one trait of new models from all they chose, from right or wrong, or from wrong answers alone."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from scipy.interpolate import CubicSpline

from mtlirt._arguments import one_of
from mtlirt.core.option_likelihood import option_probabilities
from mtlirt.core.options import OptionProblem
from mtlirt.data import Responses
from mtlirt.errors import InputError
from mtlirt.results.llm import llm_ability
from mtlirt.results.nominal import NominalFit
from mtlirt.results.scoring import nominal_problem

_SPACING = 0.05  # of the traits at which the posterior is computed; splines between them are right to 1e-5
_HALVINGS = 30

Use = Literal["all", "binary", "incorrect"]


def score_nrm(fit: NominalFit, responses: Responses, *, use: Use = "all") -> pd.DataFrame:
    """Traits of new models with the options held fixed: the mode of the posterior under a N(0, 1) prior, or for the
    LLM-NRM under a normal prior with the fitted models' mean and spread.

    Parameters
    ----------
    fit : of `fit_nrm` or `fit_llm_nrm`: one trait. For the LLM-NRM the new models' s, delta and rho are estimated with
        theta, drawn to the fitted models' mean as strongly as those spread about it.
    responses : answers of the new models to (some of) the fitted items, in the channel of the fit.
    use : "all" the chosen options: log P(option k). "binary" right or wrong: log P(key) or log(1 - P(key)).
        "incorrect" which wrong option was chosen: log P(option k) / (1 - P(key)), on wrong answers alone; in the soft
        channel an answer counts by the probability that it gives to wrong options.

    Returns
    -------
    Frame with model, theta (within [-C, C], or within one more than the largest fitted trait), se (of the mode,
    1 / sqrt of the posterior's curvature; in the soft channel it is not the sampling error of theta), n_answers, and
    n_wrong (sum of the shares of wrong options).

    Raises
    ------
    InputError for fits with several traits, items that were not fitted or have another key, or models without options.

    Source: LLM-NRM paper, "Ability Estimation from Incorrect Responses" and table 3.

    >>> from mtlirt import LLMNRMDesign, fit_nrm, simulate_llm_nrm
    >>> answers = simulate_llm_nrm(LLMNRMDesign(N=20, J=30), seed=1).responses
    >>> fit = fit_nrm(answers)
    >>> scores = score_nrm(fit, answers, use="incorrect")
    >>> bool(scores["theta"].corr(fit.general.reset_index(drop=True), method="spearman") > 0)
    True
    """
    one_of("use", use, ("all", "binary", "incorrect"))
    if not isinstance(fit, NominalFit):
        raise InputError(f"score_nrm needs a NominalFit, not {type(fit).__name__}")
    if "mtl" in fit.settings["verb"]:
        raise InputError("score_nrm scores one trait; use fit.score() for domain traits")
    problem, a, c = nominal_problem(fit, responses)
    if fit.model_parameters is not None:
        theta, se = llm_ability(fit, problem, use)
    else:
        C = max(float(fit.settings["C"]), float(fit.general.abs().max()) + 1)
        x = np.linspace(-C, C, 2 * round(C / _SPACING) + 1)
        theta, se = _mode(x, _log_likelihood(problem, x, a, c, use) - np.square(x) / 2)
    right, answers = problem.right_per_model.sum(axis=0), problem.answers_per_model.sum(axis=0)
    return pd.DataFrame(
        {
            "model": responses.models,
            "theta": theta,
            "se": se,
            "n_answers": answers.astype(np.int64),
            "n_wrong": answers - right,
        }
    )


def _log_likelihood(problem: OptionProblem, x: np.ndarray, a: np.ndarray, c: np.ndarray, use: Use) -> np.ndarray:
    """(N, M) log-likelihood of each model at each trait."""
    out = np.zeros((problem.n_models, len(x)))
    for group in problem.groups:
        for some, target in group.chunks():
            items, key = group.items[some], group.key[some]
            _, K, N = target.shape
            p = option_probabilities(np.broadcast_to(x, (len(items), len(x))), a[items, :K], c[items, :K])
            log_p = np.log(np.maximum(p, np.finfo(np.float64).tiny))
            rows = np.arange(len(items))
            wrong = np.log(np.maximum(1 - p[rows, key], np.finfo(np.float64).tiny))
            if use == "binary":
                right = log_p[rows, key]
                log_p[:] = wrong[:, None]
                log_p[rows, key] = right
            elif use == "incorrect":
                log_p -= wrong[:, None]
                log_p[rows, key] = 0.0
            out += target.reshape(-1, N).T @ log_p.reshape(-1, len(x))
    return out


def _mode(x: np.ndarray, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) modes, the highest where there are several, and 1 / sqrt of minus the second derivatives there."""
    coefficients = CubicSpline(x, posterior, axis=1).c
    rows = np.arange(len(posterior))

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cell = np.clip(np.searchsorted(x, theta, side="right") - 1, 0, len(x) - 2)
        cubic, square, linear, _ = coefficients[:, cell, rows]
        u = theta - x[cell]
        return (3 * cubic * u + 2 * square) * u + linear, 6 * cubic * u + 2 * square

    best = posterior.argmax(axis=1)
    low, high = x[np.maximum(best - 1, 0)], x[np.minimum(best + 1, len(x) - 1)]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = derivatives(middle)[0] > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    theta = (low + high) / 2
    return theta, 1 / np.sqrt(np.maximum(-derivatives(theta)[1], 1e-12))
