"""The likelihood as a function of the traits alone, at fixed items: tabulated once, then read off in O(T N)."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.grid import MONOMIALS, ORDER, Grid, Location, horner, horner_value
from mtlirt.core.masked import OwnCurves, Source, own_curves
from mtlirt.core.problem import Problem

_CHUNK_ITEMS = 1024  # nodes x items in float64 stay in the second-level cache


@dataclass(frozen=True)
class Derivatives:
    """Of weights[t] * NLL_t with respect to the traits.

    value : (T,) the weighted losses.  gradient, curvature : (T, N), per model.
    """

    value: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class SharedCurves:
    """Sums of weighted softplus over all items of a domain, the same for every model.

    coefficients : (8, T, intervals) of the local polynomials.
    """

    coefficients: np.ndarray

    def local(self, where: Location, groups: np.ndarray) -> np.ndarray:
        """(8, T', N) polynomial coefficients at the locations (T', N) in the curves `groups`."""
        cell = groups[:, None] * self.coefficients.shape[2] + where.cell
        out = np.empty((ORDER, *where.cell.shape))
        for coefficients, row in zip(self.coefficients.reshape(ORDER, -1), out, strict=True):
            np.take(coefficients, cell, out=row, mode="clip")
        return out

    def pooled(self) -> "SharedCurves":
        """One curve for a trait that all domains share."""
        return SharedCurves(self.coefficients.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Field:
    """Weighted losses of T groups of items as functions of the traits.

    curves : sums of weighted softplus over items.
    slope : (T, N) weighted sum over items of score * a.   constant : (T,) weighted sum over cells of score * d.
    """

    grid: Grid
    curves: SharedCurves | OwnCurves
    slope: np.ndarray
    constant: np.ndarray

    def value(self, theta: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """(T,) losses at theta (T, N), or at the `groups` named, with theta (len(groups), N)."""
        groups = np.arange(len(theta)) if groups is None else groups
        where = self.grid.locate(theta)
        coefficients = self.curves.local(where, groups)
        return (horner_value(coefficients, where.u) - self.slope[groups] * theta).sum(axis=1) - self.constant[groups]

    def derivatives(self, theta: np.ndarray, groups: np.ndarray | None = None) -> Derivatives:
        """Losses with gradient and curvature, at arguments as for `value`."""
        groups = np.arange(len(theta)) if groups is None else groups
        where, slope, h = self.grid.locate(theta), self.slope[groups], self.grid.spacing
        value, first, second = horner(self.curves.local(where, groups), where.u)
        return Derivatives(
            (value - slope * theta).sum(axis=1) - self.constant[groups],
            first / h - slope,
            np.maximum(second / h**2, 0.0),
        )

    def pooled(self) -> "Field":
        """All groups summed into one: the loss of a single trait shared by every domain."""
        slope, constant = self.slope.sum(axis=0, keepdims=True), self.constant.sum(keepdims=True)
        return Field(self.grid, self.curves.pooled(), slope, constant)


def tabulate(problem: Problem, grid: Grid, a: np.ndarray, d: np.ndarray, around: np.ndarray | None = None) -> Field:
    """Tabulate the losses at slopes a and intercepts d, (J,) or (J, K).

    With missing cells reading is fast near the traits `around` (T, N), or everywhere if they are not given.
    """
    w = problem.weights
    values = np.empty((len(grid.nodes), len(a)))
    for start in range(0, len(a), _CHUNK_ITEMS):
        items = slice(start, start + _CHUNK_ITEMS)
        values[:, items] = problem.item_losses(grid.nodes, a[items], d[items], items)
    values *= w[problem.item_domain]
    curves: SharedCurves | OwnCurves
    if problem.complete:
        sums = np.stack([values[:, items].sum(axis=1) for items in problem.item_slices])
        windows = np.lib.stride_tricks.sliding_window_view(sums, ORDER, axis=1)
        curves = SharedCurves(np.moveaxis(windows @ MONOMIALS.T, 2, 0).copy())
    else:
        sources = [
            Source(answers.mask, values[:, items])
            for answers, items in zip(problem.domains, problem.item_slices, strict=True)
        ]
        curves = own_curves(grid, sources, around)
    slope = w[:, None] * problem.right_by_slope(a)
    constant = w * np.add.reduceat(problem.item_constants(a, d), [s.start for s in problem.item_slices])
    return Field(grid, curves, slope, constant)
