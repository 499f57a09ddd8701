"""Interpolation on equally spaced nodes: sums over items become functions of one variable, and sums over models
become weights on the nodes.

Per domain the sum over items F(x) = sum_j softplus(a_j x + d_j) is smooth in x on [-C, C]. Tabulated on nodes and read
off by local polynomials of degree 7 it costs O(nodes * J) exponentials however many models there are. The same
polynomials, transposed, replace N traits by weights on the nodes, exact for whatever the polynomials reproduce; so the
item step and the trait step see one and the same objective.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

ORDER = 8  # nodes of a local polynomial
_REACH = 0.5  # how far beyond the outermost trait a grid around traits extends
_NODES_PER_UNIT = 6.0  # spacing 1/(3 C): one item's softplus is then off by at most 1.5e-7 (tests/test_grid.py)


def _monomials() -> np.ndarray:
    """(8, 8): row p holds the weights of the 8 node values in the coefficient of u**p, u in [-1/2, 1/2]."""
    return np.linalg.inv(np.vander(np.arange(ORDER) - (ORDER - 1) / 2, increasing=True))


MONOMIALS = _monomials()


@dataclass(frozen=True)
class Location:
    """Where traits lie: `cell` (int, the first of 8 nodes) and `u` in [-1/2, 1/2] within the middle interval."""

    cell: np.ndarray
    u: np.ndarray


@dataclass(frozen=True)
class Grid:
    """Equally spaced nodes that cover [-reach, reach] with a margin for the local polynomials.

    The softplus of a slope up to C has its nearest singularity at a distance pi/C from the real line, so the spacing
    shrinks as 1/C and the number of nodes grows as C**2 (96 intervals at C = 4). A grid that leaves out `skipped`
    intervals at either end has the same nodes elsewhere, and reads the same values off them. Where slopes may exceed C,
    `steepest` says how far.
    """

    C: float
    skipped: int = 0
    steepest: float | None = None

    def around(self, *traits: np.ndarray) -> "Grid":
        """The part of this grid, whole as yet, that holds the traits, with room for them to move."""
        room = self.C - max(float(np.abs(x).max()) for x in traits) - _REACH
        return replace(self, skipped=int(min(max(room / self.spacing, 0), (self.n_intervals - ORDER) // 2)))

    @cached_property
    def n_intervals(self) -> int:
        """Intervals within [-reach, reach]."""
        steepest = self.C if self.steepest is None else self.steepest
        return max(32, int(np.ceil(_NODES_PER_UNIT * self.C * steepest))) - 2 * self.skipped

    @cached_property
    def spacing(self) -> float:
        """Distance between nodes."""
        return 2 * self.C / (self.n_intervals + 2 * self.skipped)

    @property
    def reach(self) -> float:
        """The largest trait that the nodes cover, at most C."""
        return self.C - self.skipped * self.spacing if self.skipped else self.C

    @cached_property
    def nodes(self) -> np.ndarray:
        """(K,) positions."""
        margin = ORDER // 2 - 1
        return -self.C + self.spacing * (self.skipped + np.arange(-margin, self.n_intervals + margin + 1))

    def locate(self, theta: np.ndarray) -> Location:
        """Find the interval of each trait."""
        x = (theta + self.C) / self.spacing - self.skipped
        cell = np.clip(x.astype(np.intp), 0, self.n_intervals - 1)
        return Location(cell, x - cell - 0.5)

    def collapse(self, theta: np.ndarray) -> np.ndarray:
        """(T, K) weights w with sum_i f(theta[t, i]) = sum_k w[t, k] f(node k) for the interpolated f."""
        T, K = theta.shape[0], len(self.nodes)
        where = self.locate(theta)
        flat = (np.arange(T)[:, None] * K + where.cell).ravel()
        u = where.u.ravel()
        power = np.ones_like(u)
        moments = np.empty((ORDER, T * K))
        for p in range(ORDER):
            moments[p] = np.bincount(flat, weights=power, minlength=T * K)
            power = power * u
        spread = MONOMIALS.T @ moments
        weights = np.zeros((T, K))
        for m in range(ORDER):
            weights[:, m:] += spread[m].reshape(T, K)[:, : K - m]
        return weights


def horner(coefficients: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, first and second derivative in u of the polynomials with (8, ...) `coefficients`."""
    value = np.array(coefficients[-1])
    first = np.zeros_like(value)
    second = np.zeros_like(value)
    for c in coefficients[-2::-1]:
        second *= u
        second += first
        first *= u
        first += value
        value *= u
        value += c
    return value, first, 2 * second


def horner_value(coefficients: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Value only of `horner`."""
    value = np.array(coefficients[-1])
    for c in coefficients[-2::-1]:
        value *= u
        value += c
    return value
