"""Sums over the answered cells only, where some are missing: models with traits near one another share a few nodes.

A trait needs 8 nodes of the grid, and within a sweep it does not move far. So models are grouped by trait, and each
group's products with the mask take the nodes around it instead of all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mtlirt.core.grid import MONOMIALS, ORDER, Grid, Location
from mtlirt.core.problem import row_chunks

_MODELS_PER_GROUP = 64  # fewer make the products too small to be fast
_NARROWEST = 4  # intervals of a group
_OFFSETS = np.arange(ORDER)[:, None]
_MARGIN = 4  # nodes kept on either side for traits that move

Rows = np.ndarray | slice


def span_of(grid: Grid, n_models: int) -> int:
    """Number of intervals that a group of models covers; all of them where models are few."""
    groups = min(max(n_models // _MODELS_PER_GROUP, 1), grid.n_intervals // _NARROWEST)
    return -(-grid.n_intervals // groups)


def neighbours(grid: Grid, cell: np.ndarray, span: int) -> Iterator[tuple[Rows, int]]:
    """Group the models by the interval (N,) of their traits: yield the models of a group and its first interval."""
    if span >= grid.n_intervals:
        yield slice(0, len(cell)), 0
        return
    group = cell // span
    order = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[order], return_index=True)
    for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
        yield rows, int(number) * span


def item_weights(grid: Grid, observed: np.ndarray, where: Location) -> np.ndarray:
    """(K, J) weights of the nodes for each item: the traits (N,) of the models that answered it, collapsed."""
    span = span_of(grid, len(where.cell))
    local = MONOMIALS.T @ np.vander(where.u, ORDER, increasing=True).T
    weights = np.zeros((len(grid.nodes), observed.shape[1]))
    for models, first in neighbours(grid, where.cell, span):
        last = min(first + span + ORDER - 1, len(grid.nodes))
        for rows, answered in _answered(observed, models):
            n = len(answered)
            matrix = np.zeros((last - first, n))
            place = (where.cell[rows] - first) * n + np.arange(n)
            matrix.ravel()[place + n * _OFFSETS] = local[:, rows]
            weights[first:last] += matrix @ answered
    return weights


@dataclass(frozen=True)
class Source:
    """A domain's part in a curve.  observed : (N, J_t) 1 where answered.  values : (K, J_t) weighted softplus."""

    observed: np.ndarray
    values: np.ndarray

    def at(self, rows: Rows, nodes: slice) -> Iterator[tuple[Rows, np.ndarray]]:
        """Yield pieces of `rows` and their sums over answered items at the nodes."""
        values = self.values[nodes].T
        for some, answered in _answered(self.observed, rows):
            yield some, answered @ values


@dataclass(frozen=True)
class OwnCurves:
    """Sums of weighted softplus over each model's own answered items, at the nodes around its trait.

    table : (T, N, W) values at W nodes.  first : (T, N) the first of them.
    sources : T tuples of domains that make up the sums. Traits that left their nodes are summed anew.
    """

    table: np.ndarray
    first: np.ndarray
    sources: tuple[tuple[Source, ...], ...]

    def local(self, where: Location, groups: np.ndarray) -> np.ndarray:
        """(8, T', N) polynomial coefficients at the locations (T', N) in the curves `groups`."""
        N, W = self.first.shape[1], self.table.shape[2]
        offset = where.cell - self.first[groups]
        inside = (offset >= 0) & (offset <= W - ORDER)
        start = (groups[:, None] * N + np.arange(N)) * W + np.where(inside, offset, 0)
        nodes = np.lib.stride_tricks.sliding_window_view(self.table.ravel(), ORDER)[start]
        for row in np.flatnonzero(~inside.all(axis=1)):
            outside = np.flatnonzero(~inside[row])
            nodes[row, outside] = self._anew(groups[row], outside, where.cell[row])
        return (MONOMIALS @ nodes.reshape(-1, ORDER).T).reshape(ORDER, *where.cell.shape)

    def _anew(self, group: int, models: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """(len(models), 8) values at the nodes of cell (N,)."""
        place = np.empty(len(cell), dtype=np.intp)
        place[models] = np.arange(len(models))
        out = np.zeros((len(models), ORDER))
        for source in self.sources[group]:
            for rows, sums in source.at(models, slice(None)):
                nodes = cell[rows, None] + np.arange(ORDER)
                out[place[rows]] += np.take_along_axis(sums, nodes, axis=1)
        return out

    def pooled(self) -> "OwnCurves":
        """One curve for a trait that all domains share; they must have been tabulated around the same traits."""
        sources = tuple(source for group in self.sources for source in group)
        return OwnCurves(self.table.sum(axis=0, keepdims=True), self.first[:1], (sources,))


def own_curves(grid: Grid, sources: list[Source], around: np.ndarray | None) -> OwnCurves:
    """Tabulate around the traits (T, N), or at all nodes."""
    T, N, K = len(sources), len(sources[0].observed), len(grid.nodes)
    span = grid.n_intervals if around is None else span_of(grid, N)
    W = min(span + ORDER - 1 + 2 * _MARGIN, K)
    table, first = np.empty((T, N, W)), np.empty((T, N), dtype=np.intp)
    cell = np.zeros((T, N), dtype=np.intp) if around is None else grid.locate(around).cell
    for t, source in enumerate(sources):
        for models, interval in neighbours(grid, cell[t], span):
            start = min(max(interval - _MARGIN, 0), K - W)
            first[t, models] = start
            for rows, sums in source.at(models, slice(start, start + W)):
                table[t, rows] = sums
    return OwnCurves(table, first, tuple((source,) for source in sources))


def _answered(observed: np.ndarray, rows: Rows) -> Iterator[tuple[Rows, np.ndarray]]:
    """Yield pieces of `rows` and their cells as float64, small enough for the cache."""
    if isinstance(rows, slice):
        for piece in row_chunks(*observed.shape):
            yield piece, observed[piece].astype(np.float64, copy=False)
        return
    for piece in row_chunks(len(rows), observed.shape[1]):
        yield rows[piece], observed[rows[piece]].astype(np.float64, copy=False)
