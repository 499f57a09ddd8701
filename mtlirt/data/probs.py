"""Option probabilities: a list column of any lengths to blocks without padding, and back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from mtlirt.data.columns import show_rows
from mtlirt.errors import InputError

_SUM_TOLERANCE = 1e-3
_LOG_TOLERANCE = 1e-3


def read_probs(column: pd.Series, name: str) -> tuple[np.ndarray, np.ndarray]:
    """All probabilities end to end (float64), and how many each row has (0 where missing).

    Cells are lists or arrays, or lists written as JSON text; None, NaN and empty text are missing.
    """
    flat, length, owner = _end_to_end(column, name)
    total = np.bincount(owner, weights=flat, minlength=len(length))
    negative = np.bincount(owner, weights=flat < 0, minlength=len(length)) > 0
    wrong = (length > 0) & (negative | ~(np.abs(total - 1) <= _SUM_TOLERANCE))
    if wrong.any():
        raise InputError(
            f"column {name!r}: " + show_rows(wrong, total, "rows whose probabilities are negative or do not sum to 1")
        )
    return flat, length


def read_logprobs(column: pd.Series, name: str, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """As `read_probs`, from log-probabilities (log-likelihoods) of the options: exp, scaled to sum 1 over the options.

    An option without a value (null, NaN or -inf), as where an interface reports the likeliest tokens only, has
    probability 0; an answer without any value is missing. The probability outside the options is noted.
    """
    flat, length, owner = _end_to_end(column, name)
    flat[np.isnan(flat)] = -np.inf
    above = np.bincount(owner, weights=flat > _LOG_TOLERANCE, minlength=len(length)) > 0
    if above.any():
        raise InputError(f"column {name!r}: " + show_rows(above, column, "rows with log-probabilities above 0"))
    reported = np.bincount(owner, weights=np.isfinite(flat), minlength=len(length))
    told = reported > 0
    flat, owner, unreported = flat[told[owner]], owner[told[owner]], int((told & (reported < length)).sum())
    length = np.where(told, length, 0)
    if told.any():
        inside = np.bincount(owner, weights=np.exp(flat), minlength=len(length))[told]
        outside = np.maximum(0, 1 - inside).mean()
        notes.append(
            f"probabilities from {name!r}: {outside:.2%} of the probability lies outside the options on average"
            + (f"; answers with unreported options, taken as 0: {unreported:,}" if unreported else "")
        )
        top = np.full(len(length), -np.inf)
        np.maximum.at(top, owner, flat)
        flat = np.exp(flat - top[owner])
    total = np.bincount(owner, weights=flat, minlength=len(length))
    return flat / total[owner], length


def most_probable(flat: np.ndarray, length: np.ndarray) -> np.ndarray:
    """(rows,) the option with the largest probability, the first of equals; -1 where there are none."""
    out = np.full(len(length), -1, dtype=np.int64)
    owner = np.repeat(np.arange(len(length)), length)
    start = np.cumsum(length) - length
    there = length > 0
    top = np.zeros(len(length))
    if there.any():
        top[there] = np.maximum.reduceat(flat, start[there])
    at = np.flatnonzero(flat == top[owner])[::-1]
    out[owner[at]] = at - start[owner[at]]
    return out


def _end_to_end(column: pd.Series, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of all cells, how many each row has, and the row of each number."""
    cells = [_cell(value) for value in column.to_numpy(dtype=object)]
    unread = np.array([c is None for c in cells])
    if unread.any():
        raise InputError(f"column {name!r}: " + show_rows(unread, column, "values that are not lists of numbers"))
    arrays = [c for c in cells if c is not None]
    length = np.array([len(a) for a in arrays])
    return np.concatenate(arrays), length, np.repeat(np.arange(len(length)), length)


def _cell(value: object) -> np.ndarray | None:
    """The numbers of one cell, NaN for single ones that are not there; none of them if it is missing; None if it cannot
    be read."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return np.zeros(0)
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except ValueError:
            return None
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if array.ndim == 1 else None


def probs_matrix(
    flat: np.ndarray, length: np.ndarray, rows: np.ndarray, cell: np.ndarray, row_item: np.ndarray,
    shape: tuple[int, int], counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(N, sum of counts) float32, NaN where missing, and the (J + 1) offsets of the items' columns."""
    offset = np.concatenate([[0], np.cumsum(counts)])
    out = np.full((shape[0], int(offset[-1])), np.nan, dtype=np.float32)
    owner = np.repeat(np.arange(len(length)), length)
    within = np.arange(len(flat)) - np.repeat(np.cumsum(length) - length, length)
    used = np.zeros(len(length), dtype=bool)
    used[rows] = True
    use = used[owner]
    owner, within = owner[use], within[use]
    out[cell[owner] // shape[1], offset[row_item[owner]] + within] = flat[use]
    return out, offset


def probs_lists(block: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """(N, J_t) objects: one list per cell, None where missing."""
    out = np.empty((len(block), len(offset) - 1), dtype=object)
    for j in range(out.shape[1]):
        columns = block[:, offset[j] : offset[j + 1]]
        if columns.shape[1]:
            for i in np.flatnonzero(~np.isnan(columns).any(axis=1)):
                out[i, j] = columns[i].tolist()
    return out
