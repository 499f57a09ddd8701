"""Columns of a table turned into codes and numbers, with errors that name the column and the rows."""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt.errors import InputError

_TRUE_FALSE = {"true": 1.0, "false": 0.0}
_LETTERS = {letter: code for code, letter in enumerate(string.ascii_uppercase)}


def show_rows(bad: np.ndarray, values: pd.Series | np.ndarray, what: str) -> str:
    """The first three offending rows (1-based) with their values, and how many there are."""
    rows = np.flatnonzero(bad)
    values = np.asarray(values, dtype=object)
    shown = ", ".join(f"row {r + 1}: {values[r]!r}" for r in rows[:3])
    return f"{len(rows):,} {what} ({shown}{', ...' if len(rows) > 3 else ''})"


def names(values: pd.Series, column: str) -> tuple[np.ndarray, pd.Index]:
    """Codes and names in order of first appearance; names are text."""
    codes, uniques = pd.factorize(values)
    if (codes < 0).any():
        raise InputError(f"column {column!r}: " + show_rows(codes < 0, values, "names missing"))
    text = pd.Index([str(u) for u in uniques], dtype=str)
    if text.is_unique:
        return codes, text
    merged, text = pd.factorize(text)
    return merged[codes], pd.Index(text, dtype=str)


def numbers(values: pd.Series, column: str, low: float, high: float, meaning: str) -> np.ndarray:
    """Float64 values between low and high; missing stays NaN; true/false count as 1/0."""
    if values.dtype == object or isinstance(values.dtype, pd.StringDtype | pd.CategoricalDtype):
        codes, uniques = pd.factorize(values)
        parsed = np.array([_number(u) for u in uniques] + [np.nan])
        broken = np.array([p is None for p in map(_parse, uniques)] + [False])
        if broken[codes].any():
            raise InputError(f"column {column!r}: " + show_rows(broken[codes], values, "values that are not numbers"))
        out = parsed[codes]
    else:
        out = values.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = (out < low) | (out > high)
    if wrong.any():
        raise InputError(f"column {column!r}: " + show_rows(wrong, values, f"values outside {meaning}"))
    return out


def _parse(value: object) -> float | None:
    text = str(value).strip().lower()
    if text in ("", "nan", "na", "none", "null"):
        return np.nan
    if text in _TRUE_FALSE:
        return _TRUE_FALSE[text]
    try:
        return float(text)
    except ValueError:
        return None


def _number(value: object) -> float:
    parsed = _parse(value)
    return np.nan if parsed is None else parsed


@dataclass(frozen=True)
class OptionCodes:
    """codes : int16, 0-based, -1 where missing.  letters : True if the table wrote letters, None if all are missing."""

    codes: np.ndarray
    letters: bool | None


def option_codes(values: pd.Series, column: str) -> OptionCodes:
    """Read options written as letters A to Z or as 0-based whole numbers."""
    codes, uniques = pd.factorize(values)
    texts = [str(u).strip() for u in uniques]
    texts = ["" if t.lower() in ("nan", "none", "<na>") else t for t in texts]
    letters = [_LETTERS.get(t, -1) for t in texts]
    whole = [_whole(t) for t in texts]
    read = np.array([*(max(le, nu) for le, nu in zip(letters, whole, strict=True)), -1], dtype=np.int16)
    given = np.array([*(t != "" for t in texts), False])
    unread = given[codes] & (read[codes] < 0)
    if unread.any():
        raise InputError(
            f"column {column!r}: "
            + show_rows(unread, values, "options that are neither a letter A-Z nor a 0-based whole number")
        )
    kinds = {le >= 0 for le, t in zip(letters, texts, strict=True) if t}
    if len(kinds) == 2:
        raise InputError(f"column {column!r}: options are written partly as letters and partly as numbers")
    return OptionCodes(read[codes], kinds.pop() if kinds else None)


def _whole(text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        return -1
    return int(value) if value.is_integer() and 0 <= value < 1000 else -1


def option_labels(n: int, letters: bool) -> tuple[str, ...]:
    """Labels of codes 0 to n - 1."""
    return tuple(string.ascii_uppercase[:n]) if letters else tuple(str(i) for i in range(n))


def one_per_item(values: np.ndarray, item: np.ndarray, n_items: int, missing: int) -> tuple[np.ndarray, np.ndarray]:
    """(J,) the value of each item, and the rows (positions) that contradict it."""
    out = np.full(n_items, missing, dtype=np.int64)
    known = values != missing
    out[item[known][::-1]] = values[known][::-1]
    return out, np.flatnonzero(known & (values != out[item]))
