"""The LLM Nominal Response Model (LLM-NRM) as an estimation problem: parameters, objective, exact derivatives.

    u_k = s (a_k theta + c_k + delta_k)                    utility of option k, s the model's sharpness
    G   = sigma(w0 - kappa (theta - b))                    fallback gate, b the item's difficulty index
    P(option k) proportional to exp((1 - G) u_k + G rho_k)

Source: "Every Wrong Answer Counts" (LLM-NRM paper), eqs. 6 to 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mtlirt.core.llm_cells import ModelGradient, ModelSide, evaluate, item_gradient, model_gradient, residuals
from mtlirt.core.llm_difficulty import difficulty_index
from mtlirt.core.options import OptionGroup, OptionProblem, centred

_CHUNK_CELLS = 131_072  # large enough that numpy's calls cost little, and a chunk's dozen arrays stay in the last cache


@dataclass(frozen=True)
class LLMParameters:
    """theta, log_s : (N,).  delta, rho : (N, Kmax) by displayed position.  w0, log_kappa : the gate's intercept and the
    logarithm of its slope.  a, c : (J, Kmax), 0 beyond an item's own options."""

    theta: np.ndarray
    log_s: np.ndarray
    delta: np.ndarray
    rho: np.ndarray
    w0: float
    log_kappa: float
    a: np.ndarray
    c: np.ndarray

    @property
    def s(self) -> np.ndarray:
        """(N,) sharpness."""
        return np.exp(self.log_s)

    @property
    def kappa(self) -> float:
        """Slope of the gate."""
        return float(np.exp(self.log_kappa))


@dataclass(frozen=True, kw_only=True)
class LLMObjective:
    """What is minimised: the cross-entropy of all answered cells plus

        prior_theta / 2 * sum theta**2  +  ridge / 2 * sum (a**2 + c**2)  +  ridge_s / 2 * sum (log s)**2
        + ridge_position / 2 * sum (delta**2 + rho**2)  +  ((w0 - m) / sd)**2 / 2  +  ((log kappa - m) / sd)**2 / 2

    with a, c centred over an item's options and delta, rho over all positions.

    Parameters
    ----------
    sharpness, position, fallback : whether models have s, delta, and the gate with rho. All off: Bock's NRM.
    unit : theta is held at mean 0 and mean square 1, and log s at mean 0, inside the loss, and no prior on theta is
        needed. Without it (and with no ridge) the loss has no minimiser: theta shrinks while slopes grow.
    difficulty : "smooth", b = 6 tanh(num den / (den**2 + eps**2) / 6), or "clamp", the paper's b = num / den with
        |den| kept above .05 and b within -6 and 6, which is discontinuous where den changes its sign.
    eps : of the smooth index, positive.
    w0_prior, log_kappa_prior : mean and standard deviation of weak normal priors, infinite for none.

    >>> LLMObjective(fallback=False).ridge
    0.04
    """

    sharpness: bool = True
    position: bool = True
    fallback: bool = True
    unit: bool = True
    ridge: float = 0.04
    ridge_s: float = 1.0
    ridge_position: float = 1.0
    prior_theta: float = 1.0
    difficulty: Literal["smooth", "clamp"] = "smooth"
    eps: float = 0.5
    w0_prior: tuple[float, float] = (-2.0, 2.0)
    log_kappa_prior: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("ridge", "ridge_s", "ridge_position", "prior_theta"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"LLMObjective: {name} must be 0 or positive, not {getattr(self, name)!r}")
        for name in ("w0_prior", "log_kappa_prior"):
            mean, sd = getattr(self, name)
            if not (np.isfinite(mean) and sd > 0):
                raise ValueError(f"LLMObjective: {name} must be a finite mean and a positive sd, not {mean!r}, {sd!r}")
        if self.difficulty not in ("smooth", "clamp"):
            raise ValueError(f"LLMObjective: difficulty must be 'smooth' or 'clamp', not {self.difficulty!r}")
        if not 0 < self.eps < np.inf:
            raise ValueError(f"LLMObjective: eps must be positive, not {self.eps!r}")

    @classmethod
    def free(cls, **changes: Any) -> LLMObjective:
        """Theta under its N(0, 1) prior, s under its ridge, no prior on the gate."""
        return replace(cls(unit=False, w0_prior=(0.0, np.inf), log_kappa_prior=(0.0, np.inf)), **changes)

    @classmethod
    def paper(cls, **changes: Any) -> LLMObjective:
        """Eq. 15 as printed: no ridge at all, the clamped difficulty index."""
        return replace(cls.free(ridge=0.0, ridge_s=0.0, ridge_position=0.0, difficulty="clamp"), **changes)


def gauged(parameters: LLMParameters, options: np.ndarray, objective: LLMObjective) -> LLMParameters:
    """The point at which the loss is taken: a, c, delta, rho centred, absent components neutral, and with
    `objective.unit` theta standardised and log s centred.

    options : (J, Kmax) bool, True for an item's own options.
    """
    theta, log_s = parameters.theta, parameters.log_s
    delta, rho = (x - x.mean(axis=1, keepdims=True) for x in (parameters.delta, parameters.rho))
    if objective.unit:
        theta = (theta - theta.mean()) / theta.std()
        log_s = log_s - log_s.mean()
    return replace(
        parameters,
        theta=theta,
        log_s=log_s if objective.sharpness else np.zeros_like(log_s),
        delta=delta if objective.position else np.zeros_like(delta),
        rho=rho if objective.fallback else np.zeros_like(rho),
        a=centred(parameters.a, options),
        c=centred(parameters.c, options),
    )


def model_side(at: LLMParameters, objective: LLMObjective) -> ModelSide:
    """What the cells need of the models, of gauged parameters."""
    s = at.s
    delta, rho = (s[:, None] * at.delta).T, at.rho.T
    utility = np.stack([np.broadcast_to(s * at.theta, delta.shape), np.broadcast_to(s, delta.shape), delta], axis=1)
    gap = None
    if objective.fallback:
        gap = -utility
        gap[:, 2] += rho
    return ModelSide(at.theta, s, utility, gap, at.w0, at.kappa)


def chunks(group: OptionGroup) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Yield pieces of a group: which of its items, their targets (K, I, N) and the answered cells (I, N), None if all
    are."""
    _, K, N = group.target.shape
    step = max(1, _CHUNK_CELLS // (K * N))
    for start in range(0, len(group.items), step):
        some = slice(start, start + step)
        target: np.ndarray = np.array(group.target[some].transpose(1, 0, 2), dtype=np.float64, order="C")
        observed = target.max(axis=0) > 0
        yield some, target, None if observed.all() else observed.astype(np.float64)


def loss_and_gradient(
    parameters: LLMParameters, problem: OptionProblem, objective: LLMObjective
) -> tuple[float, LLMParameters]:
    """The objective and its gradient, in float64, gauges included: the loss does not change along them, and the
    gradient has no part there. Absent components have gradient 0."""
    at = gauged(parameters, problem.options, objective)
    models = model_side(at, objective)
    loss, gradient = penalty(at, objective), penalty_gradient(at, objective)
    sums = ModelGradient.zero(*at.delta.shape)
    for group in problem.groups:
        K = group.target.shape[1]
        for some, target, observed in chunks(group):
            items = group.items[some]
            a, c = at.a[items, :K], at.c[items, :K]
            index = difficulty_index(a, c, group.key[some], objective)
            cells = evaluate(models, a, c, index.b, target, observed)
            residual = residuals(models, cells, target, observed)
            by_a, by_c, by_b = item_gradient(models, cells, residual)
            gradient.a[items, :K] += by_a + by_b[:, None] * index.by_a
            gradient.c[items, :K] += by_c + by_b[:, None] * index.by_c
            sums.add(model_gradient(models, cells, residual, a, c, index.b))
            loss += float(cells.loss.sum())
    return loss, through_gauge(plus(gradient, sums), parameters, at, problem.options, objective)


def plus(gradient: LLMParameters, sums: ModelGradient) -> LLMParameters:
    """The gradient with what the cells say about the models added."""
    return replace(
        gradient,
        theta=gradient.theta + sums.theta,
        log_s=gradient.log_s + sums.log_s,
        delta=gradient.delta + sums.delta.T,
        rho=gradient.rho + sums.rho.T,
        w0=gradient.w0 + float(sums.gate[0]),
        log_kappa=gradient.log_kappa + float(sums.gate[1]),
    )


def penalty(at: LLMParameters, objective: LLMObjective) -> float:
    """Ridges and priors at gauged parameters."""
    prior = 0.0 if objective.unit else objective.prior_theta
    out = prior * _square(at.theta) + objective.ridge * (_square(at.a) + _square(at.c))
    out += objective.ridge_s * _square(at.log_s) + objective.ridge_position * (_square(at.delta) + _square(at.rho))
    if objective.fallback:
        for value, (mean, sd) in ((at.w0, objective.w0_prior), (at.log_kappa, objective.log_kappa_prior)):
            out += ((value - mean) / sd) ** 2
    return out / 2


def penalty_gradient(at: LLMParameters, objective: LLMObjective) -> LLMParameters:
    """Derivatives of `penalty` at gauged parameters, as fresh arrays."""
    prior = 0.0 if objective.unit else objective.prior_theta
    (w0, w0_sd), (log_kappa, log_kappa_sd) = objective.w0_prior, objective.log_kappa_prior
    return LLMParameters(
        theta=prior * at.theta,
        log_s=objective.ridge_s * at.log_s,
        delta=objective.ridge_position * at.delta,
        rho=objective.ridge_position * at.rho,
        w0=(at.w0 - w0) / w0_sd**2,
        log_kappa=(at.log_kappa - log_kappa) / log_kappa_sd**2,
        a=objective.ridge * at.a,
        c=objective.ridge * at.c,
    )


def _square(x: np.ndarray) -> float:
    return float(np.vdot(x, x))


def through_gauge(
    gradient: LLMParameters,
    parameters: LLMParameters,
    at: LLMParameters,
    options: np.ndarray,
    objective: LLMObjective,
) -> LLMParameters:
    """The gradient by the parameters, from that by their gauged values."""
    theta, log_s = gradient.theta, gradient.log_s
    if objective.unit:
        theta = theta - theta.mean() - at.theta * (at.theta @ theta) / len(theta)
        theta, log_s = theta / parameters.theta.std(), log_s - log_s.mean()
    delta, rho = (x - x.mean(axis=1, keepdims=True) for x in (gradient.delta, gradient.rho))
    return LLMParameters(
        theta=theta,
        log_s=log_s if objective.sharpness else np.zeros_like(log_s),
        delta=delta if objective.position else np.zeros_like(delta),
        rho=rho if objective.fallback else np.zeros_like(rho),
        w0=gradient.w0 if objective.fallback else 0.0,
        log_kappa=gradient.log_kappa if objective.fallback else 0.0,
        a=centred(gradient.a, options),
        c=centred(gradient.c, options),
    )


def probabilities(
    parameters: LLMParameters,
    problem: OptionProblem,
    objective: LLMObjective,
    items: np.ndarray,
) -> np.ndarray:
    """(N, len(items), Kmax) the options' probabilities for some items, 0 beyond an item's own options."""
    options, key = problem.options[items], problem.key[items]
    at = gauged(replace(parameters, a=parameters.a[items], c=parameters.c[items]), options, objective)
    models = model_side(at, objective)
    out = np.zeros((len(at.theta), *options.shape))
    for K in np.unique(options.sum(axis=1)):
        some = np.flatnonzero(options.sum(axis=1) == K)
        a, c = at.a[some, :K], at.c[some, :K]
        out[:, some, :K] = option_shares(models, a, c, key[some], objective).transpose(2, 1, 0)
    return out


def option_shares(
    models: ModelSide, a: np.ndarray, c: np.ndarray, key: np.ndarray, objective: LLMObjective
) -> np.ndarray:
    """(K, I, N) probabilities of the options of I items with K options: a, c (I, K), key (I,)."""
    nothing = np.zeros((a.shape[1], len(a), len(models.theta)))
    return evaluate(models, a, c, difficulty_index(a, c, key, objective).b, nothing, None).q


def as_vector(parameters: LLMParameters) -> np.ndarray:
    """What belongs to models, one after the other: N times (theta, log s, delta, rho), then w0 and log kappa."""
    return np.concatenate([model_rows(parameters).ravel(), [parameters.w0, parameters.log_kappa]])


def with_vector(parameters: LLMParameters, vector: np.ndarray) -> LLMParameters:
    """The parameters with `as_vector` replaced."""
    moved = with_rows(parameters, vector[:-2].reshape(len(parameters.theta), -1))
    return replace(moved, w0=float(vector[-2]), log_kappa=float(vector[-1]))


def model_rows(parameters: LLMParameters) -> np.ndarray:
    """(N, 2 + 2 Kmax) theta, log s, delta and rho of each model."""
    return np.concatenate(
        [parameters.theta[:, None], parameters.log_s[:, None], parameters.delta, parameters.rho], axis=1
    )


def with_rows(parameters: LLMParameters, rows: np.ndarray) -> LLMParameters:
    """The parameters with the models of `rows`, as `model_rows` gives them, in place of their own."""
    K = parameters.delta.shape[1]
    return replace(parameters, theta=rows[:, 0], log_s=rows[:, 1], delta=rows[:, 2 : 2 + K], rho=rows[:, 2 + K :])
