"""Values of lam worth trying, and its scales."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mtlirt._arguments import number, penalty_weight, whole
from mtlirt.core.problem import Problem
from mtlirt.errors import InputError

_ROUNDING = 1e-9  # of thresholds, in the units of the loss
_PAPER = np.arange(1, 21) / 10


def paper_scale(n_models: int, sizes: Sequence[int] | np.ndarray) -> float:
    """max_t N / sqrt(min(N, J_t)): lam is C_lambda times this in the R-MTL paper's programs."""
    return n_models / math.sqrt(min(n_models, *sizes))


def threshold_grid(lam_max: float, n: int, ratio: float) -> np.ndarray:
    """`n` values from the largest fusion threshold down to `ratio` times it, in equal steps of log lam.

    None where the threshold is rounding: then all domains order the models alike, or not at all.
    """
    n, ratio = whole("n", n, 2), number("ratio", ratio, 1e-6, 0.999)
    return np.empty(0) if lam_max < _ROUNDING else lam_max * np.geomspace(1, ratio, n)


def paper_grid(problem: Problem) -> np.ndarray:
    """C_lambda = 2.0, 1.9, ..., 0.1 in the units of lam."""
    return _PAPER[::-1] * paper_scale(problem.n_models, problem.sizes)


def values_of(lams: object) -> list[float]:
    """`lams` as numbers, or InputError."""
    if isinstance(lams, str) or not isinstance(lams, Iterable):
        raise InputError(f"lams must be a list of numbers, not {lams!r}")
    return [penalty_weight(lam) for lam in lams]


def with_ends(lams: Sequence[float] | np.ndarray) -> np.ndarray:
    """Distinct values in descending order, infinity first and 0 last."""
    return np.unique([math.inf, *lams, 0.0])[::-1]
