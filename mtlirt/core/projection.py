"""Projection of traits onto the constraint set: mean 0, mean square 1, every coordinate within [-C, C]."""

import numpy as np

_TOLERANCE = 1e-10
_BISECTIONS = 70
_UNTIE = 1e-3  # relative size of the ramp that parts tied values where nothing else fits into the box


def check_box(C: float, n_models: int) -> None:
    """Raise ValueError if no trait of `n_models` values has mean 0, mean square 1 and all values in [-C, C].

    The tightest vector is half at +1 and half at -1 (even N), or one model at 0 (odd N), so C must be at
    least 1 or sqrt(N / (N - 1)).
    """
    smallest = _smallest_box(n_models)
    if not (np.isfinite(C) and smallest <= C):
        raise ValueError(
            f"C = {C} leaves no trait of {n_models} models with mean 0 and mean square 1: C must be at least "
            f"{smallest:.4f} (4 is usual)"
        )


def _smallest_box(n: int) -> float:
    return 1.0 if n % 2 == 0 else float(np.sqrt(n / (n - 1)))


def project(traits: np.ndarray, C: float, present: np.ndarray | None = None) -> np.ndarray:
    """Project each row onto {mean 0, mean square 1, |value| <= C}.

    If standardising a row keeps it in the box, that is the result. Otherwise the result is
    clip(s * row - m, -C, C) with the shift m and the scale s > 0 that give mean 0 and mean square 1. Where ties leave
    no such pair (one model apart from 50 equal ones, say, which the box does not let stand out far enough), tied
    values are first parted a little in the order they stand in.

    Parameters
    ----------
    traits : (T, N) or (N,) array; every row needs at least two different values.
    C : bound of the box, in units of the trait's standard deviation (4 in the paper).
    present : (T, N) bool, optional. Absent coordinates are 0 in the result and do not count in mean and norm.

    Returns
    -------
    Array of the shape of `traits`: |mean| and |mean square - 1| below 1e-10, inside the box exactly.

    Raises
    ------
    ValueError for a row without spread, or a C that is too small (see `check_box`).

    >>> project(np.array([0.0, 1.0, 5.0]), C=4.0).round(4)
    array([-0.9258, -0.4629,  1.3887])
    """
    rows = np.atleast_2d(traits)
    standard = standardise(rows, present)
    outside = np.flatnonzero(np.abs(standard).max(axis=1) > C)
    for t in outside:
        kept = slice(None) if present is None else present[t]
        standard[t, kept] = _project_row(standard[t, kept], C)
    return standard.reshape(traits.shape)


def standardise(traits: np.ndarray, present: np.ndarray | None = None) -> np.ndarray:
    """Give each row of (T, N) `traits` mean 0 and mean square 1 over its present coordinates, without a box."""
    if present is None:
        centred = traits - traits.mean(axis=1, keepdims=True)
        centred -= centred.mean(axis=1, keepdims=True)  # what cancellation left of a large mean
        count = traits.shape[1]
    else:
        count = present.sum(axis=1, keepdims=True)
        mean = np.where(present, traits, 0.0).sum(axis=1, keepdims=True) / count
        centred = np.where(present, traits - mean, 0.0)
        centred = np.where(present, centred - centred.sum(axis=1, keepdims=True) / count, 0.0)
    norm = np.sqrt(np.einsum("ti,ti->t", centred, centred))[:, None]
    size = np.abs(traits).max(axis=1, keepdims=True)
    if not np.all(norm > 1e-13 * np.sqrt(count) * size):
        raise ValueError("a trait whose values are all equal (or not finite) has no direction to project")
    return centred * (np.sqrt(count) / norm)


def _project_row(row: np.ndarray, C: float) -> np.ndarray:
    check_box(C, len(row))
    if _smallest_box(len(row)) * (1 + _TOLERANCE / 2) >= C:
        return _tightest(row, C)
    x = _active_set(row, C)
    if x is None:
        x = _bisect(row, C)
    if x is None:
        ranks = np.argsort(np.argsort(row, kind="stable"))
        x = _bisect(row + _UNTIE * np.abs(row).max() * ranks / len(row), C)
    if x is None:
        raise ValueError(f"no shift and scale bring this trait into the box [-{C}, {C}]")
    return x


def _tightest(row: np.ndarray, C: float) -> np.ndarray:
    """The only vectors in the smallest box: the lower half at -C, the upper at C, a middle one at 0."""
    x, half = np.zeros(len(row)), len(row) // 2
    order = np.argsort(row, kind="stable")
    x[order[:half]], x[order[len(row) - half :]] = -C, C
    return x


def _active_set(row: np.ndarray, C: float) -> np.ndarray | None:
    """Solve for shift and scale in closed form given which coordinates are clipped; None if it cycles."""
    n = len(row)
    x = row
    for _ in range(50):
        upper, lower = x >= C, x <= -C
        free = ~(upper | lower)
        n_free, n_clipped = free.sum(), n - free.sum()
        if n_free < 2:
            return None
        surplus = C * (upper.sum() - lower.sum())
        centred = row[free] - row[free].mean()
        if not centred.any():
            return None
        scale2 = (n - C**2 * n_clipped - surplus**2 / n_free) / (centred @ centred)
        if not 0 < scale2 < np.inf:
            return None
        scale = np.sqrt(scale2)
        unclipped = scale * (row - row[free].mean()) - surplus / n_free
        x = np.clip(unclipped, -C, C)
        if np.array_equal(x >= C, upper) and np.array_equal(x <= -C, lower):
            return x if _feasible(x) else None
        x = unclipped
    return None


def _feasible(x: np.ndarray) -> bool:
    return bool(abs(x.mean()) <= _TOLERANCE and abs(np.square(x).mean() - 1) <= _TOLERANCE)


def _bisect(row: np.ndarray, C: float) -> np.ndarray | None:
    """Nested bisection: the shift for a given scale (mean is monotone in it), the scale by the norm.

    None where ties leave no solution, as when most models share one value and C is small.
    """
    n, reach = len(row), np.abs(row).max()

    def clipped(scale: float) -> np.ndarray:
        low, high = -scale * reach - C, scale * reach + C
        for _ in range(_BISECTIONS):
            shift = 0.5 * (low + high)
            if np.clip(scale * row - shift, -C, C).sum() > 0:
                low = shift
            else:
                high = shift
        return np.clip(scale * row - 0.5 * (low + high), -C, C)

    low, high = 0.0, 1.0
    while np.square(clipped(high)).sum() < n and high < 1e12:
        low, high = high, 4.0 * high
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if np.square(clipped(middle)).sum() < n:
            low = middle
        else:
            high = middle
    x = clipped(high)
    return x if _feasible(x) else None
