"""The exact likelihood, cell by cell in float64: what every solver's result is measured with."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mtlirt.core.links import softplus
from mtlirt.core.problem import Problem, row_chunks


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
    nll = np.zeros(len(problem.domains))
    gradient, information = np.zeros_like(theta), np.zeros_like(theta)
    for t, rows, right, observed, items in _pieces(problem):
        trait, slopes = theta[t, rows], a[items]
        z = np.multiply.outer(trait, slopes)
        z += d[items]
        e = np.exp(-np.abs(z))
        loss = np.log1p(e)
        loss += np.maximum(z, 0.0)
        q = 1 / (1 + e)
        e *= q
        p = np.where(z < 0, e, q)
        e *= q
        if observed is not None:
            for x in (loss, p, e):
                x *= observed
        right_slope = right @ slopes
        nll[t] += loss.sum() - trait @ right_slope - (right @ d[items]).sum()
        gradient[t, rows] = p @ slopes - right_slope
        information[t, rows] = e @ np.square(slopes)
    return CellSums(nll, gradient, information)


def information(problem: Problem, trait: np.ndarray, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(N,) sum of a**2 P (1 - P) over all answered items of each model at one trait (N,) for all domains."""
    out = np.zeros(problem.n_models)
    for _, rows, _, observed, items in _pieces(problem):
        z = np.multiply.outer(trait[rows], a[items])
        z += d[items]
        e = np.exp(np.negative(np.abs(z, out=z), out=z), out=z)
        e /= np.square(1 + e)
        if observed is not None:
            e *= observed
        out[rows] += e @ np.square(a[items])
    return out


def held_out_nll(right: np.ndarray, chosen: np.ndarray, trait: np.ndarray, a: np.ndarray, d: np.ndarray) -> float:
    """Negative log-likelihood of the `chosen` cells (N, J) of one domain's scores, at trait (N,), a and d (J,)."""
    total = 0.0
    for rows in row_chunks(*right.shape):
        cells = chosen[rows]
        z = (np.multiply.outer(trait[rows], a) + d)[cells]
        total += float(softplus(z).sum() - right[rows][cells] @ z)
    return total


def _pieces(problem: Problem) -> Iterator[tuple[int, slice, np.ndarray, np.ndarray | None, slice]]:
    """Domain number, models, scores, observed and items, in pieces that fit in cache."""
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        for rows, right in answers.chunks():
            yield t, rows, right, None if answers.observed is None else answers.observed[rows], items
