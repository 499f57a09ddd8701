"""Values of lam worth trying, and its scales."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mtlirt.core.problem import Problem
from mtlirt.errors import InputError
from mtlirt.models.settings import check_lam

_PAPER = np.arange(1, 21) / 10


def paper_scale(n_models: int, sizes: Sequence[int] | np.ndarray) -> float:
    """max_t N / sqrt(min(N, J_t)): lam is C_lambda times this in the R-MTL paper's programs."""
    return n_models / math.sqrt(min(n_models, *sizes))


def threshold_grid(lam_max: float, n: int, ratio: float) -> np.ndarray:
    """`n` values from the largest fusion threshold down to `ratio` times it, in equal steps of log lam."""
    if not (isinstance(n, int) and n >= 2):
        raise InputError(f"n must be a whole number, 2 or more, not {n!r}")
    if not 0 < ratio < 1:
        raise InputError(f"ratio must lie between 0 and 1, not {ratio!r}")
    return lam_max * np.geomspace(1, ratio, n)


def paper_grid(problem: Problem) -> np.ndarray:
    """C_lambda = 2.0, 1.9, ..., 0.1 in the units of lam."""
    return _PAPER[::-1] * paper_scale(problem.n_models, problem.sizes)


def with_ends(lams: Sequence[float] | np.ndarray) -> np.ndarray:
    """Distinct values in descending order, infinity first and 0 last."""
    return np.unique([math.inf, *(check_lam(lam) for lam in lams), 0.0])[::-1]
