"""What options tell about ability: Fisher information split into right and wrong, and distractors that come on top."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.option_likelihood import option_probabilities


@dataclass(frozen=True)
class InformationSplit:
    """binary : (J, M) information of right or wrong.  wrong : (J, M) what the choice among wrong options adds.

    Their sum is the information of the chosen option, the variance of the slopes under the options' probabilities.
    """

    binary: np.ndarray
    wrong: np.ndarray


def information_split(
    theta: np.ndarray, a: np.ndarray, c: np.ndarray, options: np.ndarray, key: np.ndarray
) -> InformationSplit:
    """At traits theta (M,), for slopes and intercepts (J, K), own options (J, K) bool and keys (J,).

    With p the probabilities, g the key and abar the mean slope of the wrong options weighted by p:
    binary = p_g (1 - p_g) (a_g - abar)**2, wrong = (1 - p_g) * variance of the wrong options' slopes.
    """
    binary, wrong = np.zeros((len(a), len(theta))), np.zeros((len(a), len(theta)))
    number = options.sum(axis=1)
    for K in np.unique(number):
        items = np.flatnonzero(number == K)
        slopes, g = a[items, :K], key[items]
        p = option_probabilities(np.broadcast_to(theta, (len(items), len(theta))), slopes, c[items, :K])
        rows = np.arange(len(items))
        right = p[rows, g]
        p[rows, g] = 0.0
        others = p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        mean = np.einsum("ik,ikm->im", slopes, others)
        away = slopes[:, :, None] - mean[:, None, :]
        binary[items] = right * (1 - right) * np.square(slopes[rows, g][:, None] - mean)
        wrong[items] = (1 - right) * (others * np.square(away)).sum(axis=1)
    return InformationSplit(binary, wrong)


def on_top(a: np.ndarray, c: np.ndarray, options: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """(J, K) ends of the interval of traits within [low, high] in which each option is the most probable one.

    The options' logits are lines, so an option is on top between its crossings with flatter and with steeper lines. The
    interval is empty (start >= end) for options that never are, and for cells that are no options.
    """
    start, end = np.full(a.shape, low), np.full(a.shape, high)
    slope = a[:, None, :] - a[:, :, None]
    gap = c[:, :, None] - c[:, None, :]
    both = options[:, :, None] & options[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = gap / slope
    steeper, flatter = both & (slope > 0), both & (slope < 0)
    end = np.minimum(end, np.where(steeper, crossing, np.inf).min(axis=2))
    start = np.maximum(start, np.where(flatter, crossing, -np.inf).max(axis=2))
    hidden = (both & (slope == 0) & (gap <= 0) & ~np.eye(a.shape[1], dtype=bool)).any(axis=2) | ~options
    return np.where(hidden, high, start), np.where(hidden, low, end)
