"""Angles between traits, and the general trait as a median of lines."""

from dataclasses import dataclass

import numpy as np

_ITERATIONS = 60  # for each smoothing
_NEARBY_ITERATIONS = 60
_AT_REST = 1e-22
_GAP_ITERATIONS = 30
SAME_LINE = 1e-13  # sines below this are rounding: the lines are one
_SMOOTHING = np.geomspace(1e-3, 1e-10, 8)


def sines(general: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(T,) sine of the angle between the line of `general` (N,) and that of each row of `theta` (T, N).

    Taken from the component orthogonal to `general`, so that small angles keep their digits.
    """
    g = general / np.linalg.norm(general)
    norms = np.linalg.norm(theta, axis=1)
    across = theta - (theta @ g)[:, None] * g
    return np.minimum(np.linalg.norm(across, axis=1) / norms, 1.0)


@dataclass(frozen=True)
class LineMedian:
    """The line with the least sum of sines to given lines.

    line : (N,) mean 0 (if the lines have it) and mean square 1, oriented so that its product with the sum is >= 0.
    value : the (weighted) sum of sines.
    vertex : index of the given line it coincides with, or None.
    unique : False where other lines do as well: for two lines of equal weight every one of them is a minimum.

    >>> round(line_median(np.array([[1.0, -1.0], [-1.0, 1.0]])).value, 6)
    0.0
    """

    line: np.ndarray
    value: float
    vertex: int | None
    unique: bool


def line_median(thetas: np.ndarray, weights: np.ndarray | None = None) -> LineMedian:
    """Minimise sum_t weights[t] * sin(u, theta_t) over lines u.

    The general trait given the domain traits (R-MTL, equation 3). The minimiser lies in the span of the lines, so
    the iteration works on their T x T Gram matrix: reweighted principal directions (Lerman and Maunu's fast median
    subspace, in one dimension) from several starts with shrinking smoothing; and since each given line is a kink and a
    candidate minimum, all T of them are tried.

    Parameters
    ----------
    thetas : (T, N) array, rows not zero; lengths and signs of the rows do not matter for the line.
    weights : (T,) positive, default ones.

    Returns
    -------
    LineMedian. With one line it is that line. With two lines it is the heavier one; at equal weights the minimum is
    not unique and the normalised mean of the two is returned.

    Raises
    ------
    ValueError for an empty array, a zero row, values that are not finite, or weights that are not positive.

    >>> line_median(np.array([[1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])).vertex
    0
    """
    thetas = np.asarray(thetas, dtype=np.float64)
    if thetas.ndim != 2 or not len(thetas) or not np.isfinite(thetas).all():
        raise ValueError("line_median needs a (T, N) array of finite numbers with T >= 1")
    norms = np.linalg.norm(thetas, axis=1)
    if not norms.all():
        raise ValueError("line_median: a row of zeros is no line")
    w = np.ones(len(thetas)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(thetas),) or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("line_median: weights must be positive and finite, one per line")
    units = thetas / norms[:, None]
    total = units.sum(axis=0)
    if len(units) == 2 and w[0] == w[1]:
        flip = -1.0 if units[0] @ units[1] < 0 else 1.0
        value = float(w[0] * sines(units[0], units[1:])[0])
        return _finish(units[0] + flip * units[1], value, None, value <= SAME_LINE * w[0], total)
    gram = units @ units.T
    vertex_values = np.array([w @ sines(u, units) for u in units])
    best = int(vertex_values.argmin())
    lines = _reweight(gram, w, _starts(gram, w, vertex_values)) @ units
    line, value = min(((u, float(w @ sines(u, units))) for u in lines), key=lambda pair: pair[1])
    if vertex_values[best] <= value + 1e-12 * w.sum():
        return _finish(units[best], float(vertex_values[best]), best, True, total)
    return _finish(line, value, None, True, total)


def _finish(line: np.ndarray, value: float, vertex: int | None, unique: bool, total: np.ndarray) -> LineMedian:
    sign = -1.0 if line @ total < 0 else 1.0
    return LineMedian(line * (sign * np.sqrt(len(line)) / np.linalg.norm(line)), value, vertex, unique)


def _starts(gram: np.ndarray, w: np.ndarray, vertex_values: np.ndarray) -> np.ndarray:
    """(S, T) combinations of the lines to start from: principal direction, aligned mean, the best three lines."""
    principal = np.sqrt(w) * np.linalg.eigh(np.sqrt(np.outer(w, w)) * gram)[1][:, -1]
    aligned = np.sign(gram @ principal)
    aligned[aligned == 0] = 1.0
    mean = w * aligned
    near = [0.9 * np.eye(len(w))[s] + 0.1 * mean * aligned[s] / w.sum() for s in np.argsort(vertex_values)[:3]]
    return np.stack([principal, mean, *near])


def _reweight(gram: np.ndarray, w: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(S, T) coefficients c of lines u = c @ units, each reached from its start by reweighted power steps.

    A step replaces u by the sum of the lines' projections onto it, each divided by its sine: the reweighted principal
    direction, one power iteration at a time, so the smoothed sum of sines never rises.
    """
    c = _unit(starts, gram)
    for smoothing in _SMOOTHING:
        for _ in range(_ITERATIONS):
            new = _step(c, gram, w, smoothing)
            moved = new - c
            c = new
            if np.einsum("st,st->s", moved @ gram, moved).max() < _AT_REST:
                break
    return c


def _step(c: np.ndarray, gram: np.ndarray, w: np.ndarray, smoothing: float) -> np.ndarray:
    cosine = c @ gram
    sine = np.sqrt(np.maximum(1 - np.square(cosine), smoothing**2))
    return _unit(cosine * w / sine, gram)


def _unit(c: np.ndarray, gram: np.ndarray) -> np.ndarray:
    return c / np.sqrt(np.einsum("st,st->s", c @ gram, c))[:, None]


def nearby_line_median(thetas: np.ndarray, weights: np.ndarray, line: np.ndarray) -> np.ndarray:
    """A few reweighting steps of `line_median` from a line that is already close: cheap enough for every sweep."""
    units = thetas / np.linalg.norm(thetas, axis=1)[:, None]
    gram = units @ units.T
    cosine = units @ line / np.linalg.norm(line)
    c = _unit((cosine * weights / np.maximum(sines(line, thetas), _SMOOTHING[-1]))[None], gram)
    for _ in range(_NEARBY_ITERATIONS):
        new = _step(c, gram, weights, _SMOOTHING[-1])
        moved = np.abs(new - c).max()
        c = new
        if moved < 1e-9 * np.abs(new).max():
            break
    new_line = c[0] @ units
    return new_line * (np.sqrt(len(line)) / np.linalg.norm(new_line))


def line_median_with_gaps(thetas: np.ndarray, present: np.ndarray, weights: np.ndarray) -> LineMedian:
    """`line_median` of lines of which some coordinates are unknown.

    thetas, present : (T, N), unknown coordinates where `present` is False. They are filled with the general trait's,
    scaled to each line, and the median is taken again until it rests: an unknown coordinate then adds no angle.
    """
    median = line_median(np.where(present, thetas, 0.0), weights)
    for _ in range(_GAP_ITERATIONS if not present.all() else 0):
        lines = fill_lines(thetas, present, median.line)
        before, median = median.line, line_median(lines - lines.mean(axis=1, keepdims=True), weights)
        if np.abs(median.line - before).max() < 1e-8:
            break
    return median


def fill_lines(thetas: np.ndarray, present: np.ndarray, general: np.ndarray) -> np.ndarray:
    """(T, N) `thetas` with each absent coordinate set to the general trait's, scaled by least squares to its line."""
    known = present * general
    overlap = np.einsum("ti,ti->t", known, np.where(present, thetas, 0.0))
    scale = overlap / np.maximum(np.einsum("ti,ti->t", known, known), 1e-300)
    return np.where(present, thetas, scale[:, None] * general)
