"""The exact likelihood of option models, cell by cell in float64."""

from collections.abc import Iterator

import numpy as np

from mtlirt.core.likelihood import CellSums
from mtlirt.core.links import log_sum_exp
from mtlirt.core.options import OptionProblem


def option_cell_sums(problem: OptionProblem, theta: np.ndarray, a: np.ndarray, c: np.ndarray) -> CellSums:
    """As `cell_sums`, at theta (T, N), slopes a and intercepts c (J, K).

    The information of an answer is the variance of the slopes under the options' probabilities.
    """
    nll = np.zeros(len(problem.domains))
    gradient, information = np.zeros_like(theta), np.zeros_like(theta)
    for items, target in _pieces(problem):
        K, t = target.shape[1], problem.item_domain[items]
        slopes, p = a[items, :K], option_probabilities(theta[t], a[items, :K], c[items, :K])
        observed = target.any(axis=1)
        expected, square = np.einsum("ik,ikn->in", slopes, p), np.einsum("ik,ikn->in", np.square(slopes), p)
        np.add.at(nll, t, _losses(theta[t], a[items, :K], c[items, :K], target).sum(axis=1))
        np.add.at(gradient, t, observed * expected - np.einsum("ik,ikn->in", slopes, target))
        np.add.at(information, t, observed * (square - np.square(expected)))
    return CellSums(nll, gradient, information)


def held_out_option_nll(
    problem: OptionProblem, held: np.ndarray, theta: np.ndarray, a: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """(T,) negative log-likelihood of the answers where `held` (N, J) is True."""
    nll = np.zeros(len(problem.domains))
    for items, target in _pieces(problem):
        K, t = target.shape[1], problem.item_domain[items]
        loss = _losses(theta[t], a[items, :K], c[items, :K], target)
        np.add.at(nll, t, (loss * held[:, items].T).sum(axis=1))
    return nll


def _losses(theta: np.ndarray, a: np.ndarray, c: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(I, N) negative log-likelihoods, 0 where the answer is missing."""
    z = a[:, :, None] * theta[:, None, :] + c[:, :, None]
    return log_sum_exp(z, axis=1) * target.any(axis=1) - (target * z).sum(axis=1)


def option_probabilities(theta: np.ndarray, a: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(I, K, N) probabilities of the options of I items at traits theta (I, N), slopes and intercepts (I, K)."""
    p = a[:, :, None] * theta[:, None, :] + c[:, :, None]
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def _pieces(problem: OptionProblem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for group in problem.groups:
        for some, target in group.chunks():
            yield group.items[some], target
