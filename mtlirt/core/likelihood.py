"""The exact likelihood, cell by cell in float64: what every solver's result is measured with."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.field import softplus
from mtlirt.core.problem import Problem


@dataclass(frozen=True)
class CellSums:
    """nll : (T,) unweighted negative log-likelihood per domain.  information : (T, N), sum of a**2 P (1 - P) over the
    answered items of each model at its trait."""

    nll: np.ndarray
    information: np.ndarray


def cell_sums(problem: Problem, theta: np.ndarray, a: np.ndarray, d: np.ndarray) -> CellSums:
    """Negative log-likelihood and information at theta (T, N), slopes a (J,) and intercepts d (J,)."""
    T = len(problem.domains)
    nll = np.zeros(T)
    information = np.zeros((T, problem.n_models))
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        trait, slopes = theta[t], a[items]
        for rows, right, observed in answers.chunks():
            z = np.multiply.outer(trait[rows], slopes)
            z += d[items]
            loss = softplus(z)
            np.negative(np.abs(z, out=z), out=z)
            e = np.exp(z, out=z)
            pq = e / np.square(1 + e)
            if observed is not None:
                loss *= observed
                pq *= observed
            nll[t] += loss.sum() - trait[rows] @ (right @ slopes) - (right @ d[items]).sum()
            information[t, rows] = pq @ np.square(slopes)
    return CellSums(nll, information)
