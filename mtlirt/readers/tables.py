"""Plain tables: long or wide, csv, parquet or json lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt.data import Responses
from mtlirt.errors import InputError

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".jsonl")
_OPTIONAL = ("option", "probs", "key", "n_options", "trials")
PREFIX = "prefix"


def read_responses(
    path: str | Path,
    *,
    model: str = "model",
    domain: str = "domain",
    item: str = "item",
    score: str = "score",
    option: str = "option",
    probs: str = "probs",
    key: str = "key",
    n_options: str = "n_options",
    trials: str = "trials",
    domains: Any = None,
    model_info: pd.DataFrame | None = None,
) -> Responses:
    """Read answers from a .csv, .csv.gz, .parquet or .jsonl file.

    A table with an item or a score column is long, one row per answer; any other is wide, one row per model and one
    column per item.

    Parameters
    ----------
    model, domain, item, score, option, probs, key, n_options, trials : column names of a long table. The last five, and
        domain, are used where present; a name you change must exist.
    domains : domain of each item, where the table has no domain column: "prefix" for the text before the first dot, or
        what `Responses.from_wide` takes. By default all items form one domain "all".
    model_info : as in `Responses.from_long`.

    Raises
    ------
    InputError, which begins with the file's name, for a file that is missing, empty or no table, and for all that
    `Responses.from_long` and `from_wide` refuse.
    """
    path = Path(path)
    columns = {
        "model": model,
        "domain": domain,
        "item": item,
        "score": score,
        "option": option,
        "probs": probs,
        "key": key,
        "n_options": n_options,
        "trials": trials,
    }
    table = _read(path, [model, domain, item])
    try:
        if item in table.columns or score in table.columns:
            return _long(table, columns, domains, model_info)
        return Responses.from_wide(table, domains=_prefix if domains == PREFIX else domains)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _read(path: Path, ids: list[str]) -> pd.DataFrame:
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a table")
    if not path.name.endswith(_SUFFIXES):
        raise InputError(f"{path}: unknown kind of file; mtlirt reads {', '.join(_SUFFIXES)}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        if path.suffix == ".jsonl":
            return pd.read_json(path, lines=True, dtype=dict.fromkeys(ids, str))
        return _read_csv(path, ids)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: cannot be read as a table ({reason[:200]})") from error


def _read_csv(path: Path, ids: list[str]) -> pd.DataFrame:
    """Names stay text ("007" is not 7): the id columns of a long table, the first column of a wide one."""
    header = pd.read_csv(path, nrows=0).columns
    names = [c for c in header if c in ids] or list(header[:1])
    return pd.read_csv(path, dtype=dict.fromkeys(names, str), low_memory=False)


def _long(table: pd.DataFrame, columns: dict[str, str], domains: Any, model_info: pd.DataFrame | None) -> Responses:
    used: dict[str, Any] = dict(columns)
    for name in (*_OPTIONAL, "domain"):
        if columns[name] == name and name not in table.columns:
            used[name] = None
    if columns["score"] == "score" and "score" not in table.columns and used["option"] and used["key"]:
        used["score"] = None
    if used["domain"] is None and domains is not None:
        if columns["item"] not in table.columns:
            raise InputError(f"there is no column {columns['item']!r}")
        table = table.assign(**{"domain": _domains(table[columns["item"]], domains)})
        used["domain"] = "domain"
    return Responses.from_long(table, **used, model_info=model_info)


def _domains(items: pd.Series, domains: Any) -> pd.Series:
    from mtlirt.data.build import domain_of

    rule = _prefix if domains == PREFIX else domains
    codes, unique = pd.factorize(items)
    named = pd.Series([domain_of(str(u), rule) for u in unique] + [None])
    return pd.Series(named.to_numpy()[codes], index=items.index)


def _prefix(item: str) -> str:
    head, dot, _ = item.partition(".")
    if not (head and dot):
        raise InputError(f"item {item!r} has no dot, so no domain can be read from the text before it")
    return head
