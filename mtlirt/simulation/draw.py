"""Answers drawn from known traits and items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit

from mtlirt._arguments import whole
from mtlirt.core.problem import row_chunks
from mtlirt.data import Responses
from mtlirt.data.checks import same_layout
from mtlirt.data.responses import observed
from mtlirt.data.wide import from_blocks
from mtlirt.errors import InputError
from mtlirt.results.fit import Fit

if TYPE_CHECKING:
    from mtlirt.simulation.heterogeneity import HeterogeneityDesign
    from mtlirt.simulation.leaderboard import LeaderboardDesign


@dataclass(frozen=True, eq=False)
class Truth:
    """What answers are drawn from: logit P(right) = a * theta + d.

    theta : frame models x domains.  general : Series.  items : frame domain, item, a, d, domain after domain.
    model_info : facts about the models, or None.  copies : (N,) position of the model whose answers each model repeats,
    its own if it answers by itself.
    """

    theta: pd.DataFrame
    general: pd.Series
    items: pd.DataFrame
    model_info: pd.DataFrame | None = None
    copies: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Simulation:
    """responses : the answers.  truth : what they were drawn from.

    >>> from mtlirt import HeterogeneityDesign
    >>> simulate(HeterogeneityDesign(h0=0.2, N=30, per_size=1), seed=1).truth.theta.shape
    (30, 6)
    """

    responses: Responses
    truth: Truth


def simulate(
    source: HeterogeneityDesign | LeaderboardDesign | Fit,
    seed: int | np.random.Generator,
    *,
    like: Responses | None = None,
) -> Simulation:
    """Draw answers from a design, or from a fit (parametric bootstrap). The same seed gives the same answers.

    Parameters
    ----------
    source : what to draw from. Answers of a fit come from its own traits and items.
    seed : of the draws, or a generator.
    like : answers of the same models and items whose gaps the drawn ones share; without it a fit's models answer every
        item of the domains in which they have a trait.

    Returns
    -------
    Simulation: responses and truth.

    Raises
    ------
    InputError if `like` has other models or items, or is given with a design (whose gaps are its `missing`).

    >>> from mtlirt import HeterogeneityDesign
    >>> simulate(HeterogeneityDesign(h0=0.2, N=30, per_size=1), seed=1).responses.n_items
    450
    """
    rng = generator(seed)
    if not isinstance(source, Fit) and not hasattr(source, "truth"):
        raise InputError(f"simulate draws from a design or a fit, not from {type(source).__name__}")
    if isinstance(source, Fit):
        truth, missing = Truth(source.theta, source.general, source.items[["domain", "item", "a", "d"]]), 0.0
    elif like is not None:
        raise InputError("like goes with a fit; the gaps of a design are its `missing`")
    else:
        truth, missing = source.truth(rng), source.missing
    scores = _scores(truth, missing, rng)
    if like is not None:
        if not same_layout(truth.theta.index, truth.items, like):
            raise InputError("like has other models or items (or another order) than the fit")
        scores[~np.concatenate([observed(block) for block in like.blocks.scores], axis=1)] = -1
    return Simulation(_responses(truth, scores), truth)


def generator(seed: object) -> np.random.Generator:
    """A generator from a seed, 0 or more, or itself; InputError for anything else."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, Sequence) and not isinstance(seed, str):
        return np.random.default_rng([whole("seed", part, 0) for part in seed])
    return np.random.default_rng(whole("seed", seed, 0))


def _scores(truth: Truth, missing: float, rng: np.random.Generator) -> np.ndarray:
    """(N, J) int8 scores, -1 where missing."""
    items = truth.items
    a, d = items["a"].to_numpy(), items["d"].to_numpy()
    theta = truth.theta.to_numpy()
    column = truth.theta.columns.get_indexer(pd.Index(items["domain"]))
    scores = np.empty((len(theta), len(items)), dtype=np.int8)
    for rows in row_chunks(*scores.shape):
        trait = theta[rows][:, column]
        right = rng.random(trait.shape) < expit(trait * a + d)
        scores[rows] = np.where(np.isnan(trait), -1, right)
    if missing:
        for rows in row_chunks(*scores.shape):
            scores[rows][rng.random(scores[rows].shape) < missing] = -1
    return scores if truth.copies is None else scores[truth.copies]


def _responses(truth: Truth, scores: np.ndarray) -> Responses:
    domains = tuple(map(str, truth.theta.columns))
    items = truth.items[["item", "domain"]].astype(str).reset_index(drop=True)
    sizes = items.groupby("domain", sort=False).size().reindex(list(domains)).to_numpy()
    blocks = tuple(np.ascontiguousarray(b) for b in np.split(scores, np.cumsum(sizes)[:-1], axis=1))
    models = pd.Index(truth.theta.index, name="model", dtype=str)
    return from_blocks(models, items, domains, blocks).with_model_info(truth.model_info)
