"""The estimation problem as arrays: answers by domain, weights, bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from mtlirt.core.grid import Grid
from mtlirt.core.links import softplus

_CHUNK_CELLS = 131_072  # a float64 chunk of 1 MiB stays in the second-level cache
_LARGEST_INTERCEPT = 3.0  # logit of .95: items that (nearly) all models get right or wrong start inside the box
_FLOAT_CELLS = 4_000_000  # below this size the answers are kept as float64 and need no conversion


@dataclass(frozen=True)
class DomainAnswers:
    """Answers of one domain.

    right : (N, J) scores, 0 where missing; uint8 where large and 0/1, else float64.
    observed : (N, J) of the same type, 1 where answered; None if every cell is.
    """

    right: np.ndarray
    observed: np.ndarray | None

    @cached_property
    def mask(self) -> np.ndarray:
        """(N, J) 1 where answered, whether cells are missing or not."""
        return np.ones(self.right.shape, dtype=np.uint8) if self.observed is None else self.observed

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their scores as float64, in pieces that fit in cache."""
        for rows in row_chunks(*self.right.shape):
            yield rows, self.right[rows].astype(np.float64, copy=False)


@dataclass(frozen=True)
class Problem:
    """What a solver minimises, over theta (T, N), general (N,), slopes a (J,) and intercepts d (J,):

        sum_t weights[t] * NLL_t(theta_t, a, d)  +  lam * sum_t penalty_weights[t] * sin(general, theta_t)

    domains : T blocks of answers; items are numbered domain after domain.
    weights, penalty_weights : (T,) positive.
    C : bound of traits, slopes and intercepts.
    """

    domains: tuple[DomainAnswers, ...]
    weights: np.ndarray
    penalty_weights: np.ndarray
    C: float

    @property
    def grid(self) -> Grid:
        """Nodes on which the items' losses are tabulated."""
        return Grid(self.C)

    @property
    def n_models(self) -> int:
        """Number of models N."""
        return self.domains[0].right.shape[0]

    @cached_property
    def sizes(self) -> np.ndarray:
        """(T,) number of items per domain."""
        return np.array([d.right.shape[1] for d in self.domains])

    @property
    def sine_weights(self) -> np.ndarray:
        """(T,) penalty weights; for two domains the penalty is one sine and carries the lighter weight."""
        weights = self.penalty_weights
        return weights if len(weights) != 2 else np.full(2, weights.min())

    @cached_property
    def item_domain(self) -> np.ndarray:
        """(J,) the domain number of each item."""
        return np.repeat(np.arange(len(self.domains)), self.sizes)

    @cached_property
    def item_slices(self) -> tuple[slice, ...]:
        """T slices into the item axis."""
        ends = np.cumsum(self.sizes)
        return tuple(slice(e - s, e) for s, e in zip(self.sizes, ends, strict=True))

    @property
    def complete(self) -> bool:
        """True if no cell is missing."""
        return all(d.observed is None for d in self.domains)

    @cached_property
    def answers_per_item(self) -> np.ndarray:
        """(J,) number of answers."""
        n = self.n_models
        return np.concatenate(
            [np.full(d.right.shape[1], float(n)) if d.observed is None else _sum0(d.observed) for d in self.domains]
        )

    @cached_property
    def answers_per_model(self) -> np.ndarray:
        """(T, N) number of answers."""
        return np.stack(
            [
                np.full(self.n_models, float(d.right.shape[1])) if d.observed is None else _sum1(d.observed)
                for d in self.domains
            ]
        )

    @cached_property
    def right_per_item(self) -> np.ndarray:
        """(J,) sum of scores."""
        return np.concatenate([_sum0(d.right) for d in self.domains])

    @cached_property
    def right_per_model(self) -> np.ndarray:
        """(T, N) sum of scores."""
        return np.stack([_sum1(d.right) for d in self.domains])

    def without(self, held: Sequence[np.ndarray]) -> Self:
        """The same problem with the cells of T boolean blocks (N, J_t) missing."""
        domains = []
        for answers, cells in zip(self.domains, held, strict=True):
            kind = answers.right.dtype
            seen = ~cells if answers.observed is None else ~cells & (answers.observed > 0)
            domains.append(DomainAnswers(answers.right * seen.astype(kind), seen.astype(kind)))
        return replace(self, domains=tuple(domains))

    def item_start(self) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and intercepts to start from: slopes 1, intercepts from the items' shares right."""
        n, k = self.answers_per_item, self.right_per_item
        d = np.clip(np.log((k + 0.5) / (n - k + 0.5)), -_LARGEST_INTERCEPT, _LARGEST_INTERCEPT)
        return self.feasible(np.ones(len(d)), d)

    def item_losses(self, x: np.ndarray, a: np.ndarray, d: np.ndarray, items: slice) -> np.ndarray:
        """(len(x), I) what each of the `items` would lose at traits x by a wrong answer: softplus(a x + d)."""
        return softplus(np.multiply.outer(x, a) + d)

    def item_constants(self, a: np.ndarray, d: np.ndarray) -> np.ndarray:
        """(J,) the part of each item's loss, sign turned, that no trait enters: d times the sum of its scores."""
        return self.right_per_item * d

    def feasible(self, a: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and intercepts clipped to their bounds."""
        return np.clip(a, 0, self.C), np.clip(d, -self.C, self.C)

    def at_bounds(self, a: np.ndarray) -> dict[str, float]:
        """How many slopes sit on their bounds."""
        return {"slopes_at_zero": int((a == 0).sum()), "slopes_at_bound": int((a == self.C).sum())}

    def right_by_trait(self, theta: np.ndarray) -> np.ndarray:
        """(J,) sum over models of score * theta, for theta (T, N)."""
        out = np.zeros(len(self.item_domain))
        for answers, where, trait in zip(self.domains, self.item_slices, theta, strict=True):
            for rows, right in answers.chunks():
                out[where] += trait[rows] @ right
        return out

    def right_by_slope(self, a: np.ndarray) -> np.ndarray:
        """(T, N) sum over the domain's items of score * a, for slopes a (J,)."""
        out = np.empty((len(self.domains), self.n_models))
        for t, (answers, where) in enumerate(zip(self.domains, self.item_slices, strict=True)):
            for rows, right in answers.chunks():
                out[t, rows] = right @ a[where]
        return out


def row_chunks(n: int, j: int) -> Iterator[slice]:
    """Slices of the rows of an (n, j) array whose cells, as float64, fit in cache."""
    step = max(1, _CHUNK_CELLS // max(1, j))
    return (slice(start, start + step) for start in range(0, n, step))


def make_problem(blocks: list[np.ndarray], weights: np.ndarray, penalty_weights: np.ndarray, C: float) -> Problem:
    """Build a Problem from N x J_t score blocks: int8 with -1 for missing, or floats with NaN."""
    domains, total = [], sum(block.size for block in blocks)
    for block in blocks:
        missing = block < 0 if block.dtype.kind == "i" else np.isnan(block)
        kind = np.uint8 if block.dtype == np.int8 and total > _FLOAT_CELLS else np.float64
        observed = (~missing).astype(kind) if missing.any() else None
        right = block if observed is None else np.where(missing, 0, block)
        right = right.view(np.uint8) if kind == np.uint8 else right.astype(np.float64, copy=False)
        domains.append(DomainAnswers(np.ascontiguousarray(right), observed))
    return Problem(tuple(domains), weights, penalty_weights, C)


def _sum0(x: np.ndarray) -> np.ndarray:
    return x.sum(axis=0, dtype=np.int64 if x.dtype == np.uint8 else None).astype(np.float64)


def _sum1(x: np.ndarray) -> np.ndarray:
    return x.sum(axis=1, dtype=np.int64 if x.dtype == np.uint8 else None).astype(np.float64)
