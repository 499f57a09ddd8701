"""The likelihood as a function of the traits alone, at fixed items: tabulated once, then read off in O(T N)."""

from dataclasses import dataclass

import numpy as np

from mtlirt.core.grid import MONOMIALS, ORDER, Grid, horner, horner_value
from mtlirt.core.likelihood import softplus
from mtlirt.core.problem import Problem


@dataclass(frozen=True)
class Derivatives:
    """Of weights[t] * NLL_t with respect to the traits.

    value : (T,) the weighted losses.  gradient, curvature : (T, N), per model.
    """

    value: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class Field:
    """Weighted losses of T groups of items as functions of the traits.

    table : with missing cells (T, N, K), the sum over each model's own items of the weighted softplus at the nodes; for
        complete answers (8, T, intervals), the coefficients of the local polynomials of the sum over all items.
    shared : True for complete answers.
    slope : (T, N) weighted sum over items of score * a.   constant : (T,) weighted sum over cells of score * d.
    """

    grid: Grid
    table: np.ndarray
    shared: bool
    slope: np.ndarray
    constant: np.ndarray

    def value(self, theta: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """(T,) losses at theta (T, N), or at the `groups` named, with theta (len(groups), N)."""
        coefficients, u = self._local(theta, groups)
        slope, constant = self._linear(groups)
        return (horner_value(coefficients, u) - slope * theta).sum(axis=1) - constant

    def derivatives(self, theta: np.ndarray, groups: np.ndarray | None = None) -> Derivatives:
        """Losses with gradient and curvature, at arguments as for `value`."""
        coefficients, u = self._local(theta, groups)
        slope, constant = self._linear(groups)
        value, first, second = horner(coefficients, u)
        h = self.grid.spacing
        return Derivatives(
            (value - slope * theta).sum(axis=1) - constant, first / h - slope, np.maximum(second / h**2, 0.0)
        )

    def pooled(self) -> "Field":
        """All groups summed into one: the loss of a single trait shared by every domain."""
        return Field(
            self.grid,
            self.table.sum(axis=1 if self.shared else 0, keepdims=True),
            self.shared,
            self.slope.sum(axis=0, keepdims=True),
            self.constant.sum(keepdims=True),
        )

    def _linear(self, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if groups is None:
            return self.slope, self.constant
        return self.slope[groups], self.constant[groups]

    def _local(self, theta: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Polynomial coefficients (8, T, N) and local coordinate (T, N) of each trait."""
        where = self.grid.locate(theta)
        t = (np.arange(len(theta)) if groups is None else groups)[:, None]
        nodes = np.empty((ORDER, *theta.shape))
        if self.shared:
            cell = t * self.table.shape[2] + where.cell
            for coefficients, out in zip(self.table.reshape(ORDER, -1), nodes, strict=True):
                np.take(coefficients, cell, out=out, mode="clip")
            return nodes, where.u
        first = (t * theta.shape[1] + np.arange(theta.shape[1])) * self.table.shape[2] + where.cell
        for m in range(ORDER):
            np.take(self.table.ravel(), first + m, out=nodes[m], mode="clip")
        return (MONOMIALS @ nodes.reshape(ORDER, -1)).reshape(nodes.shape), where.u


def tabulate(problem: Problem, grid: Grid, a: np.ndarray, d: np.ndarray) -> Field:
    """Tabulate the losses at slopes a (J,) and intercepts d (J,)."""
    T, K = len(problem.domains), len(grid.nodes)
    w = problem.weights
    shared = problem.complete
    table = np.empty((T, K) if shared else (T, problem.n_models, K))
    for t, (answers, items) in enumerate(zip(problem.domains, problem.item_slices, strict=True)):
        values = softplus(np.multiply.outer(grid.nodes, a[items]) + d[items])
        if answers.observed is None:
            table[t] = w[t] * values.sum(axis=1)
        else:
            for rows, _, observed in answers.chunks():
                table[t, rows] = w[t] * (observed @ values.T)
    slope = w[:, None] * problem.right_by_slope(a)
    constant = w * np.add.reduceat(problem.right_per_item * d, [s.start for s in problem.item_slices])
    if shared:
        windows = np.lib.stride_tricks.sliding_window_view(table, ORDER, axis=1)
        table = np.moveaxis(windows @ MONOMIALS.T, 2, 0).copy()
    return Field(grid, table, shared, slope, constant)
