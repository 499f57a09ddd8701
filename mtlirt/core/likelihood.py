"""The exact likelihood, cell by cell in float64: what every solver's result is measured with."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mtlirt.core.field import softplus
from mtlirt.core.problem import Problem


@dataclass(frozen=True)
class CellSums:
    """Sums over the answered items of a domain.

    nll : (T,) unweighted negative log-likelihood.
    gradient : (T, N) its derivative in each trait, sum of a (P - score).
    information : (T, N) sum of a**2 P (1 - P).
    """

    nll: np.ndarray
    gradient: np.ndarray
    information: np.ndarray


def cell_sums(problem: Problem, theta: np.ndarray, a: np.ndarray, d: np.ndarray) -> CellSums:
    """Sums at theta (T, N), slopes a (J,) and intercepts d (J,)."""
    T = len(problem.domains)
    nll = np.zeros(T)
    gradient, information = np.zeros((T, problem.n_models)), np.zeros((T, problem.n_models))
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        trait, slopes = theta[t], a[items]
        for rows, right, observed in answers.chunks():
            z = np.multiply.outer(trait[rows], slopes)
            z += d[items]
            loss = softplus(z)
            p = expit(z, out=z)
            if observed is not None:
                loss *= observed
                p *= observed
            right_slope = right @ slopes
            nll[t] += loss.sum() - trait[rows] @ right_slope - (right @ d[items]).sum()
            gradient[t, rows] = p @ slopes - right_slope
            p *= 1 - p
            information[t, rows] = p @ np.square(slopes)
    return CellSums(nll, gradient, information)
