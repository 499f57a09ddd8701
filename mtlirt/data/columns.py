"""Columns of a table turned into codes and numbers, with errors that name the column and the rows."""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt.errors import InputError

_TRUE_FALSE = {"true": 1.0, "false": 0.0}
_UNCLEAR = ("+", "-")
_LETTERS = {letter: code for code, letter in enumerate(string.ascii_uppercase)}


def show_rows(bad: np.ndarray, values: pd.Series | np.ndarray, what: str) -> str:
    """The first three offending rows (1-based) with their values, and how many there are."""
    rows = np.flatnonzero(bad)
    first = np.asarray(pd.Series(values).iloc[rows[:3]], dtype=object)
    shown = ", ".join(f"row {r + 1}: {value!r}" for r, value in zip(rows[:3], first, strict=True))
    return f"{len(rows):,} {what} ({shown}{', ...' if len(rows) > 3 else ''})"


def names(values: pd.Series, column: str) -> tuple[np.ndarray, pd.Index]:
    """Codes and names in order of first appearance; names are text."""
    codes, uniques = _distinct(values)
    text = pd.Index([str(u) for u in uniques], dtype=str)
    blank = np.array([*(t.strip() == "" for t in text), True])
    if blank[codes].any():
        raise InputError(f"column {column!r}: " + show_rows(blank[codes], values, "names missing"))
    if text.is_unique:
        return codes, text
    merged, text = pd.factorize(text)
    return merged[codes], pd.Index(text, dtype=str)


def numbers(values: pd.Series, column: str, low: float, high: float, meaning: str, whole: bool = False) -> np.ndarray:
    """Float64 values between low and high; missing stays NaN; true/false count as 1/0."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_complex_dtype(values.dtype):
        out = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        codes, uniques = _distinct(values)
        parsed = [_parse(u) for u in uniques]
        broken = np.array([*(p is None for p in parsed), False])
        if broken[codes].any():
            raise InputError(f"column {column!r}: " + show_rows(broken[codes], values, "values that are not numbers"))
        out = np.array([*parsed, np.nan], dtype=np.float64)[codes]
    wrong = (out < low) | (out > high)
    if wrong.any():
        raise InputError(f"column {column!r}: " + show_rows(wrong, values, f"values outside {meaning}"))
    if whole and (broken := out % 1 > 0).any():
        raise InputError(f"column {column!r}: " + show_rows(broken, values, "values that are not whole numbers"))
    return out


def _distinct(values: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Codes and distinct values, -1 for missing; values that cannot be compared, such as lists, as text."""
    try:
        return pd.factorize(values)
    except TypeError:
        return pd.factorize(values.map(str))


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


@dataclass(frozen=True)
class OptionCodes:
    """codes : int16, 0-based, -1 where missing.  letters : True if the table wrote letters, None if all are missing.
    unclear : number of rows with several options ("+") or none ("-"), which count as missing."""

    codes: np.ndarray
    letters: bool | None
    unclear: int


def option_codes(values: pd.Series, column: str) -> OptionCodes:
    """Read options written as letters A to Z or as 0-based whole numbers, "+" for several and "-" for none."""
    codes, uniques = _distinct(values)
    texts = [str(u).strip() for u in uniques]
    unclear = np.array([*(t in _UNCLEAR for t in texts), False])[codes]
    texts = ["" if t in _UNCLEAR else t for t in texts]
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
    if not kinds and isinstance(values.dtype, pd.CategoricalDtype) and len(values.cat.categories):
        kinds = {str(values.cat.categories[0]) in _LETTERS}
    return OptionCodes(read[codes], kinds.pop() if kinds else None, int(unclear.sum()))


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
