"""Sets already at hand, in the folder that MTLIRT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from mtlirt.data import Responses
from mtlirt.datasets.tidy import lawbench_wide
from mtlirt.errors import InputError
from mtlirt.readers.tables import read_responses

_LONG = (".parquet", ".csv", ".csv.gz", ".jsonl")


def data_folder() -> Path | None:
    """The folder that MTLIRT_DATA names, None where it is not set. InputError if there is no such folder."""
    given = os.environ.get("MTLIRT_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise InputError(f"MTLIRT_DATA: there is no folder {given!r}; correct it or unset it")
    return folder


def read_local(name: str) -> Responses | None:
    """The set `name` from MTLIRT_DATA, None if nothing of it is there.

    In this order: <name>.parquet, .csv, .csv.gz or .jsonl, a long table; <name>_wide with the same endings, one row a
    model, whose items form one domain, `name`; <name>_options_wide.parquet with <name>_items.csv, letters and keys.
    """
    folder = data_folder()
    if folder is None:
        return None
    if path := _first(folder, name):
        return read_responses(path)
    if path := _first(folder, f"{name}_wide"):
        return read_responses(path, domains=name)
    letters, items = folder / f"{name}_options_wide.parquet", folder / f"{name}_items.csv"
    if letters.exists() and items.exists():
        return _read_letters(letters, items)
    return None


def _first(folder: Path, stem: str) -> Path | None:
    paths = (folder / f"{stem}{suffix}" for suffix in _LONG)
    return next((path for path in paths if path.exists()), None)


def _read_letters(letters: Path, items: Path) -> Responses:
    try:
        table = lawbench_wide(pd.read_parquet(letters), pd.read_csv(items, dtype={"item": str}))
        return Responses.from_long(table, option="option", key="key", n_options="n_options")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{letters}, {items.name}: cannot be read as letters and keys ({error})") from error
