"""Facts about models: lined up with the models, and as text that travels with a table."""

from __future__ import annotations

import json

import pandas as pd

from mtlirt.errors import InputError


def align_info(info: pd.DataFrame | None, models: pd.Index) -> pd.DataFrame | None:
    """Facts in the order of the models; models without a row get missing values, other rows are left out."""
    if info is None:
        return None
    if "model" in info.columns:
        info = info.set_index("model")
    info = info.set_axis(info.index.map(str), axis=0)
    if info.index.has_duplicates:
        twice = info.index[info.index.duplicated()][0]
        raise InputError(f"model_info has more than one row for model {twice!r}")
    if len(info) and not info.index.isin(models).any():
        raise InputError(
            f"model_info names none of the models (its first is {info.index[0]!r}, theirs {models[0]!r}); its index, "
            "or its column 'model', must hold their names"
        )
    return info.reindex(models)


def info_to_text(info: pd.DataFrame) -> str:
    """JSON with all digits and the type of each column (dates as ISO text)."""
    columns = [
        {"name": str(name), "dtype": str(column.dtype), "values": [_plain(v) for v in column.astype(object)]}
        for name, column in info.items()
    ]
    return json.dumps({"index": [str(m) for m in info.index], "columns": columns})


def _plain(value: object) -> object:
    if pd.api.types.is_scalar(value) and pd.isna(value):  # type: ignore[call-overload]
        return None
    if isinstance(value, bool | int | float | str | list | dict):
        return value
    return value.item() if hasattr(value, "item") else str(value)


def info_from_text(text: str) -> pd.DataFrame:
    """The frame that `info_to_text` wrote."""
    table = json.loads(text)
    index = pd.Index(table["index"], dtype=str)
    columns = {c["name"]: _column(c["values"], c["dtype"], index) for c in table["columns"]}
    return pd.DataFrame(columns, index=index)


def _column(values: list[object], dtype: str, index: pd.Index) -> pd.Series:
    column = pd.Series(values, index=index, dtype=object)
    return pd.Series(pd.Categorical(values), index=index) if dtype == "category" else column.astype(dtype)  # type: ignore[call-overload]
