"""Bock's nominal response model as an estimation problem: answers by option, grouped by their number of options.

P(option k | theta) = exp(a_k theta + c_k) / sum_l exp(a_l theta + c_l), with a and c summing to 0 over the options. At
fixed items the loss of an answer with target shares p (one 1 among zeros, or probabilities) is

    log sum_k exp(a_k theta + c_k) - sum_k p_k (a_k theta + c_k),

a function of one trait less a linear one, as the 2PL's softplus(a theta + d) - score (a theta + d) is. So everything
that holds for the traits of a `Problem` holds here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mtlirt.core.grid import Grid
from mtlirt.core.links import log_sum_exp
from mtlirt.core.problem import Problem

_CHUNK_CELLS = 131_072  # options x models in float64 stay in the second-level cache
_KEY_SLOPE, _SMALLEST_SHARE = 0.5, 1e-3
_STEEPEST = 8.0  # differences of slopes beyond it are read off with a larger error; the ridge makes them rare


@dataclass(frozen=True)
class OptionGroup:
    """Items with the same number K of options.

    items : (I,) their positions, ascending.  key : (I,) the right option of each.
    target : (I, K, N) shares of the options in each answer, all 0 where it is missing: uint8 where one option was
    chosen, float32 where there are probabilities.
    """

    items: np.ndarray
    key: np.ndarray
    target: np.ndarray

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield pieces of the items and their targets as float64, small enough for the cache."""
        _, K, N = self.target.shape
        step = max(1, _CHUNK_CELLS // (K * N))
        for start in range(0, len(self.items), step):
            some = slice(start, start + step)
            yield some, self.target[some].astype(np.float64)


@dataclass(frozen=True)
class OptionProblem(Problem):
    """What a solver minimises, over theta (T, N), general (N,), slopes a (J, K) and intercepts c (J, K), K the largest
    number of options and both 0 beyond an item's own:

        sum_t weights[t] * (NLL_t(theta_t, a, c) + ridge / 2 * sum of a**2 + c**2 over the domain's items)
        + lam * sum_t penalty_weights[t] * sin(general, theta_t)

    groups : items by number of options, each item in one of them.  ridge : positive.
    `domains` hold the shares of the key as scores.
    """

    groups: tuple[OptionGroup, ...]
    ridge: float

    @classmethod
    def of(cls, scores: Problem, groups: tuple[OptionGroup, ...], ridge: float) -> Self:
        """The options of the answers whose shares of the key are the scores of a `Problem`."""
        return cls(**_shared(scores), groups=groups, ridge=ridge)

    @property
    def scores(self) -> Problem:
        """The binary problem of the same answers."""
        return Problem(**_shared(self))

    @property
    def channel(self) -> str:
        """ "soft" for probabilities, "hard" for chosen options."""
        return "soft" if self.groups[0].target.dtype.kind == "f" else "hard"

    @property
    def grid(self) -> Grid:
        """Nodes on which the items' losses are tabulated."""
        return Grid(self.C, steepest=_STEEPEST)

    @cached_property
    def n_options(self) -> np.ndarray:
        """(J,) numbers of options."""
        out = np.zeros(len(self.item_domain), dtype=np.intp)
        for group in self.groups:
            out[group.items] = group.target.shape[1]
        return out

    @cached_property
    def options(self) -> np.ndarray:
        """(J, K) bool, True for the item's own options."""
        return np.arange(self.n_options.max()) < self.n_options[:, None]

    @cached_property
    def key(self) -> np.ndarray:
        """(J,) right options."""
        out = np.zeros(len(self.item_domain), dtype=np.intp)
        for group in self.groups:
            out[group.items] = group.key
        return out

    @cached_property
    def counts(self) -> np.ndarray:
        """(J, K) sums over models of the options' shares."""
        return self.target_by_trait(np.ones((len(self.domains), self.n_models)))

    def item_start(self) -> tuple[np.ndarray, np.ndarray]:
        """Slopes that favour the key, which gives the traits their sign, and intercepts from the options' shares."""
        J, others = np.arange(len(self.key)), self.options.sum(axis=1, keepdims=True) - 1
        a = np.where(self.options, -_KEY_SLOPE / others, 0.0)
        a[J, self.key] = _KEY_SLOPE
        share = self.counts / np.maximum(self.answers_per_item, 1)[:, None]
        return a, centred(np.log(share + _SMALLEST_SHARE), self.options)

    def item_losses(self, x: np.ndarray, a: np.ndarray, d: np.ndarray, items: slice) -> np.ndarray:
        """(len(x), I) log sum_k exp(a_k x + c_k) of the `items`."""
        out = np.empty((len(x), len(a)))
        own = self.n_options[items]
        for K in np.unique(own):
            of_K = np.flatnonzero(own == K)
            z = a[of_K, :K, None] * x + d[of_K, :K, None]
            out[:, of_K] = log_sum_exp(z, axis=1).T
        return out

    def item_constants(self, a: np.ndarray, d: np.ndarray) -> np.ndarray:
        """(J,) the part of each item's loss, sign turned, that no trait enters."""
        return (self.counts * d - self.ridge / 2 * (np.square(a) + np.square(d))).sum(axis=1)

    def target_by_trait(self, theta: np.ndarray) -> np.ndarray:
        """(J, K) sum over models of the options' shares times theta, for theta (T, N)."""
        out = np.zeros(self.options.shape)
        for group in self.groups:
            for some, target in group.chunks():
                items = group.items[some]
                trait = theta[self.item_domain[items]]
                out[items, : target.shape[1]] = np.matmul(target, trait[:, :, None])[:, :, 0]
        return out

    def right_by_slope(self, a: np.ndarray) -> np.ndarray:
        """(T, N) sum over the domain's items of the slopes a (J, K) weighted by the options' shares."""
        out = np.zeros((len(self.domains), self.n_models))
        for group in self.groups:
            for some, target in group.chunks():
                items = group.items[some]
                K = target.shape[1]
                ends = np.flatnonzero(np.diff(self.item_domain[items])) + 1
                for piece in np.split(np.arange(len(items)), ends):
                    slopes = a[items[piece], :K].ravel()
                    out[self.item_domain[items[piece[0]]]] += slopes @ target[piece].reshape(len(slopes), -1)
        return out

    def without(self, held: Sequence[np.ndarray]) -> Self:
        """The same problem with the cells of T boolean blocks (N, J_t) missing."""
        seen = ~np.concatenate(held, axis=1).T
        groups = tuple(replace(g, target=g.target * seen[g.items][:, None, :]) for g in self.groups)
        return replace(self, domains=super().without(held).domains, groups=groups)

    def feasible(self, a: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and intercepts as they are: the ridge bounds them."""
        return a, d

    def at_bounds(self, a: np.ndarray) -> dict[str, float]:
        """Nothing: there are no bounds."""
        return {}


def _shared(problem: Problem) -> dict[str, Any]:
    """What both kinds of problem have, by name."""
    return {f.name: getattr(problem, f.name) for f in fields(Problem)}


def centred(x: np.ndarray, options: np.ndarray) -> np.ndarray:
    """(J, K) less each item's mean over its own options, 0 beyond them."""
    mean = np.where(options, x, 0.0).sum(axis=1, keepdims=True) / options.sum(axis=1, keepdims=True)
    return np.where(options, x - mean, 0.0)
