"""Folds for cross-validation: which answers are held out together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mtlirt._arguments import whole
from mtlirt.data.responses import Responses, observed

_MOST_FOLDS = 100  # fold numbers are kept as int8


Scheme = Literal["cells", "items"]


@dataclass(frozen=True)
class Split:
    """Which fold, numbered from 0, holds what out.

    blocks : by domain; for "cells" (N, J_t) int8 with -1 where there is no answer, for "items" (J_t,) int8.
    domains : their names.
    """

    scheme: Scheme
    blocks: tuple[np.ndarray, ...]
    domains: tuple[str, ...]


def check_folds(folds: object, seed: object) -> tuple[int, int]:
    """A number of folds and a seed, or InputError."""
    return whole("folds", folds, 2, _MOST_FOLDS), whole("seed", seed, 0)


def make_split(responses: Responses, scheme: Scheme, folds: int, seed: int) -> Split:
    """Deal answers or items out to folds in random order.

    "cells" is stratified: each model's answers in each domain are dealt out by themselves, so the folds' shares of them
    differ by at most 1, and which folds get the larger shares is random too. "items" deals out each domain's items.
    The folds follow the order of models and items: the same answers in another order are dealt out otherwise.

    Raises
    ------
    InputError for a number of folds or a seed that cannot be used.
    """
    folds, seed = check_folds(folds, seed)
    rng = np.random.default_rng(seed)
    blocks = []
    for domain in responses.domains:
        scores = responses.block(domain)
        if scheme == "items":
            blocks.append(_deal(scores.shape[1], folds, rng))
            continue
        answered = observed(scores)
        out = np.full(answered.shape, -1, dtype=np.int8)
        for row, cells in zip(out, answered, strict=True):
            row[cells] = _deal(int(cells.sum()), folds, rng)
        blocks.append(out)
    return Split(scheme, tuple(blocks), responses.domains)


def _deal(n: int, folds: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation((np.arange(n) + rng.integers(folds)) % folds).astype(np.int8)
