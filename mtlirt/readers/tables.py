"""Plain tables: long or wide, csv, parquet or json lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt.data import Responses
from mtlirt.data.wide import domain_rule
from mtlirt.errors import InputError

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".jsonl")
_OPTIONAL = ("option", "probs", "logprobs", "key", "n_options", "trials")
_MISSING = ["", "NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL", "None"]
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
    logprobs: str = "logprobs",
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
    model, domain, item, score, option, probs, logprobs, key, n_options, trials : column names of a long table. The last
        six, and domain, are used where present; a name you change must exist.
    domains : domain of each item, where the table has no domain column: "prefix" for the text before the first dot, or
        what `Responses.from_wide` takes. By default all items form one domain "all".
    model_info : as in `Responses.from_long`.

    Raises
    ------
    InputError, which begins with the file's name, for a file that is missing, empty or no table, and for all that
    `Responses.from_long` and `from_wide` refuse.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "answers.csv"
    ...     _ = path.write_text("llm,item,score\\nx,q1,1\\ny,q1,0\\n")
    ...     read_responses(path, model="llm")
    Responses: 2 models x 1 items in 1 domains, 2 answers (0.0% missing)
    """
    path = Path(path)
    columns = {
        "model": model,
        "domain": domain,
        "item": item,
        "score": score,
        "option": option,
        "probs": probs,
        "logprobs": logprobs,
        "key": key,
        "n_options": n_options,
        "trials": trials,
    }
    table = _read(path, [model, domain, item])
    try:
        if item in table.columns or score in table.columns:
            return _long(table, columns, domains, model_info)
        return _wide(table, columns, domains, model_info)
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
            return _read_jsonl(path)
        return _read_csv(path, ids)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: cannot be read as a table ({reason[:200]})") from error


def _read_csv(path: Path, ids: list[str]) -> pd.DataFrame:
    """Names stay text ("007" is not 7, "NA" is a name): the id columns of a long table, the first of a wide one."""
    header = pd.read_csv(path, nrows=1, header=None, dtype=str).iloc[0]
    twice = header[header.duplicated() & header.notna()]
    if len(twice):
        raise InputError(f"column {twice.iloc[0]!r} appears twice")
    columns = pd.read_csv(path, nrows=0).columns
    names = [c for c in columns if c in ids] or list(columns[:1])
    missing = {c: [""] if c in names else _MISSING for c in columns}
    return pd.read_csv(
        path, dtype=dict.fromkeys(names, str), na_values=missing, keep_default_na=False, low_memory=False
    )


def _read_jsonl(path: Path) -> pd.DataFrame:
    """One JSON object a line, values as they are written."""
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"line {number} is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"line {number} is not a JSON object")
            rows.append(row)
    return pd.DataFrame(rows)


def _wide(table: pd.DataFrame, columns: dict[str, str], domains: Any, model_info: pd.DataFrame | None) -> Responses:
    """The models are in the model column, or else where `Responses.from_wide` finds them."""
    absent = [name for default, name in columns.items() if name != default and name not in table.columns]
    if absent:
        present = ", ".join(map(repr, table.columns[:20]))
        raise InputError(f"there is no column {absent[0]!r}; the table has {present}")
    if columns["model"] in table.columns:
        table = table.set_index(columns["model"])
    try:
        responses = Responses.from_wide(table, domains=_rule(domains))
    except InputError as error:
        hint = f"read as a wide table, because it has no column {columns['item']!r} or {columns['score']!r}"
        raise InputError(f"{error} ({hint})") from error
    return responses.with_model_info(model_info)


def _long(table: pd.DataFrame, columns: dict[str, str], domains: Any, model_info: pd.DataFrame | None) -> Responses:
    used: dict[str, Any] = dict(columns)
    for name in (*_OPTIONAL, "domain"):
        if columns[name] == name and name not in table.columns:
            used[name] = None
    told = used["option"] or used["probs"] or used["logprobs"]
    if columns["score"] == "score" and "score" not in table.columns and told and used["key"]:
        used["score"] = None
    if used["domain"] is None and domains is not None:
        if columns["item"] not in table.columns:
            raise InputError(f"there is no column {columns['item']!r}")
        table = table.assign(**{"domain": _domains(table[columns["item"]], domains)})
        used["domain"] = "domain"
    return Responses.from_long(table, **used, model_info=model_info)


def _domains(items: pd.Series, domains: Any) -> pd.Series:
    rule = domain_rule(_rule(domains))
    codes, unique = pd.factorize(items)
    named = pd.Series([*(rule(str(u)) for u in unique), None], dtype=object)
    return pd.Series(named.to_numpy()[codes], index=items.index)


def _rule(domains: Any) -> Any:
    return _prefix if isinstance(domains, str) and domains == PREFIX else domains


def _prefix(item: str) -> str:
    head, dot, _ = item.partition(".")
    if not (head and dot):
        raise InputError(f"item {item!r} has no dot, so no domain can be read from the text before it")
    return head
