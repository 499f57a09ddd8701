"""The LLM-NRM from a fit's frames: its parameters, its predictions, and the traits of new models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from mtlirt.core.llm_cells import ModelGradient, carried, evaluate, model_gradient
from mtlirt.core.llm_nrm import (
    LLMObjective,
    LLMParameters,
    chunks,
    difficulty_index,
    model_rows,
    model_side,
    option_shares,
    with_rows,
)
from mtlirt.core.options import OptionProblem
from mtlirt.data import Responses
from mtlirt.data.options import option_answers
from mtlirt.errors import InputError
from mtlirt.results.tables import item_positions

if TYPE_CHECKING:
    from mtlirt.results.nominal import NominalFit

_STARTS = (-1.0, 0.0, 1.0)  # of theta: the gate makes the posterior have several modes
_LEAST_SD = 0.05  # a fleet whose models all behave alike still leaves new ones some room
_TINY = 1e-300
_LIMITS = {"ftol": 1e-15, "gtol": 1e-7, "maxiter": 1000, "maxfun": 2000}  # tight: all models are scored in one go
_H = 1e-3


def llm_objective(fit: NominalFit) -> LLMObjective:
    """The components and the difficulty index of the fit."""
    on = fit.settings["components"]
    base = LLMObjective.paper() if fit.settings["objective"] == "paper" else LLMObjective.free()
    return replace(base, sharpness="sharpness" in on, position="position" in on, fallback="fallback" in on)


def llm_parameters(fit: NominalFit) -> LLMParameters:
    """Parameters of the fitted models and items."""
    frame, gate = fit.model_parameters, fit.gate or {"w0": 0.0, "kappa": 1.0}
    assert frame is not None
    delta, rho = (frame.filter(regex=f"^{name}:").to_numpy(dtype=np.float64) for name in ("delta", "rho"))
    a, c, _ = fit.bank
    log_s = np.log(frame["s"].to_numpy(dtype=np.float64))
    return LLMParameters(fit.general.to_numpy(), log_s, delta, rho, gate["w0"], float(np.log(gate["kappa"])), a, c)


def llm_probabilities(
    fit: NominalFit, rows: np.ndarray, models: np.ndarray, theta: np.ndarray | None = None
) -> np.ndarray:
    """(len(rows), K, len(models)) probabilities of the options of some items, 0 beyond their own, for some models, at
    their own traits or at theta (len(models),)."""
    at, goal = llm_parameters(fit), llm_objective(fit)
    own = {name: getattr(at, name)[models] for name in ("theta", "log_s", "delta", "rho")}
    own |= {} if theta is None else {"theta": theta}
    side = model_side(replace(at, **own), goal)
    number, key = fit.items["n_options"].to_numpy()[rows], fit.bank[2][rows]
    out = np.zeros((len(rows), at.a.shape[1], len(models)))
    for K in np.unique(number):
        some = np.flatnonzero(number == K)
        a, c = at.a[rows[some], :K], at.c[rows[some], :K]
        out[some, :K] = option_shares(side, a, c, key[some], goal).transpose(1, 0, 2)
    return out


@dataclass(frozen=True)
class _Fleet:
    """Mean and standard deviation (P,) of the fitted models' (theta, log s, delta, rho)."""

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, at: LLMParameters, goal: LLMObjective) -> _Fleet:
        """Of absent components the standard deviation is 0: new models have none either."""
        rows, K = model_rows(at), at.delta.shape[1]
        on = np.repeat([True, goal.sharpness, goal.position, goal.fallback], [1, 1, K, K])
        return cls(rows.mean(axis=0), np.where(on, np.maximum(rows.std(axis=0), _LEAST_SD), 0.0))


def llm_ability(fit: NominalFit, problem: OptionProblem, use: str) -> tuple[np.ndarray, np.ndarray]:
    """(N,) thetas of new models and their standard errors given the other parameters: the mode of the posterior in
    which theta, log s, delta and rho of a new model are normal with the mean and spread of the fitted ones.

    problem : the new models' answers to the fitted items.  use : as in `score_nrm`.
    """
    goal, fleet_at = llm_objective(fit), llm_parameters(fit)
    fleet, N = _Fleet.of(fleet_at, goal), problem.n_models
    spread = np.where(fleet.sd > 0, fleet.sd, np.inf)

    def posterior(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N,) losses and their gradients (N, P)."""
        loss, gradient = _likelihood(with_rows(fleet_at, rows), problem, goal, use)
        off = (rows - fleet.mean) / spread
        return loss + np.square(off).sum(axis=1) / 2, gradient + off / spread

    def total(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = posterior(fleet.mean + fleet.sd * flat.reshape(N, -1))
        return float(loss.sum()), (gradient * fleet.sd).ravel()

    best, lowest = np.zeros((N, len(fleet.mean))), np.full(N, np.inf)
    for theta in _STARTS:
        start = np.zeros((N, len(fleet.mean)))
        start[:, 0] = (theta - fleet.mean[0]) / fleet.sd[0]
        end = minimize(total, start.ravel(), jac=True, method="L-BFGS-B", options=_LIMITS).x
        found = fleet.mean + fleet.sd * end.reshape(N, -1)
        loss = posterior(found)[0]
        better = loss < lowest
        best[better], lowest[better] = found[better], loss[better]
    step = np.zeros_like(best)
    step[:, 0] = _H
    curvature = (posterior(best + step)[1] - posterior(best - step)[1])[:, 0] / (2 * _H)
    return best[:, 0], 1 / np.sqrt(np.maximum(curvature, 1e-12))


def confidence_and_accuracy(fit: NominalFit, responses: Responses) -> tuple[np.ndarray, np.ndarray]:
    """(N,) mean of the largest probability, and share of answers whose most probable option is the key."""
    answers = option_answers(responses, "soft")
    item_positions(fit, answers.responses)
    place = answers.responses.models.get_indexer(fit.models)
    if (place < 0).any():
        raise InputError(f"calibration: no probabilities of model {fit.models[place < 0][0]!r}")
    top, right, n = np.zeros((3, len(place)))
    for group in answers.groups:
        target = group.target[:, :, place]
        answered = target.any(axis=1)
        top += (target.max(axis=1) * answered).sum(axis=0)
        right += ((target.argmax(axis=1) == group.key[:, None]) & answered).sum(axis=0)
        n += answered.sum(axis=0)
    return top / n, right / n


def _likelihood(
    at: LLMParameters, problem: OptionProblem, goal: LLMObjective, use: str
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) negative log-likelihoods and their gradients (N, P) by what belongs to models."""
    models = model_side(at, goal)
    loss, sums = np.zeros(problem.n_models), ModelGradient.zero(*at.delta.shape)
    for group in problem.groups:
        K = group.target.shape[1]
        for some, target, observed in chunks(group):
            seen = np.asarray((target > 0).any(axis=0))
            asked = np.any(seen, axis=1)
            if not asked.any():
                continue
            target, seen = target[:, asked], seen[asked, :]
            items, key = group.items[some][asked], group.key[some][asked]
            a, c = at.a[items, :K], at.c[items, :K]
            b = difficulty_index(a, c, key, goal).b
            cells = evaluate(models, a, c, b, target, None if observed is None else observed[asked])
            own, by_logit = _of_use(cells.q, target, seen, key, use)
            loss += own.sum(axis=0)
            sums.add(model_gradient(models, cells, carried(models, cells, by_logit), a, c, b))
    gradient = np.concatenate([sums.theta[:, None], sums.log_s[:, None], sums.delta.T, sums.rho.T], axis=1)
    return loss, gradient


def _of_use(
    q: np.ndarray, target: np.ndarray, seen: np.ndarray, key: np.ndarray, use: str
) -> tuple[np.ndarray, np.ndarray]:
    """(I, N) losses and their derivatives (K, I, N) by the logits, for probabilities q and targets (K, I, N)."""
    if use == "all":
        return -(target * np.log(np.maximum(q, _TINY))).sum(axis=0), q * seen - target
    rows = np.arange(len(key))
    is_key = np.zeros(q.shape[:2], dtype=bool)
    is_key[key, rows] = True
    right, y = q[key, rows], target[key, rows]
    wrong = np.maximum(1 - right, _TINY)
    others = np.where(is_key[:, :, None], 0.0, q / wrong)
    if use == "binary":
        loss = -(y * np.log(np.maximum(right, _TINY)) + (seen - y) * np.log(wrong))
        return loss, (right * seen - y) * np.where(is_key[:, :, None], 1.0, -others)
    chosen = np.where(is_key[:, :, None], 0.0, target)
    loss = -(chosen * np.log(np.maximum(others, _TINY))).sum(axis=0)
    return loss, others * chosen.sum(axis=0) - chosen
