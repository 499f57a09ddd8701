"""Tables to Responses and back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mtlirt.data.columns import names, numbers, one_per_item, option_codes, option_labels, show_rows
from mtlirt.data.responses import Blocks, Responses, compact, observed
from mtlirt.errors import DataWarning, InputError

_ATTRS = "mtlirt"
_EVERYTHING = "all"


@dataclass(frozen=True)
class _Layout:
    """Where each row of a long table goes: cell = model * J + item, items in storage order."""

    models: pd.Index
    item: pd.Index
    domain: pd.Index
    domains: tuple[str, ...]
    row_item: np.ndarray
    cell: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.models), len(self.item)

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, ...]:
        """Cut a flat array of all cells into blocks by domain."""
        ends = np.flatnonzero(np.asarray(self.domain[1:] != self.domain[:-1])) + 1
        return tuple(np.ascontiguousarray(b) for b in np.split(flat.reshape(self.shape), ends, axis=1))

    def fill(self, rows: np.ndarray, values: np.ndarray, empty: float) -> tuple[np.ndarray, ...]:
        """Blocks with `values` at the cells of `rows` and `empty` elsewhere."""
        flat = np.full(self.shape[0] * self.shape[1], empty, dtype=values.dtype)
        flat[self.cell[rows]] = values[rows]
        return self.split(flat)


def build_long(df: pd.DataFrame, columns: Mapping[str, str | None], model_info: pd.DataFrame | None) -> Responses:
    """See `Responses.from_long`."""
    _check_columns(df, columns)
    if df.empty:
        raise InputError("the table has no rows")
    layout = _layout(df, columns)
    notes: list[str] = []
    option, key, n_options, letters = _options(df, columns, layout, notes)
    score = _scores(df, columns, layout, option, key, notes)
    rows = _one_row_per_cell(layout, score, notes)
    blocks = Blocks(
        scores=_score_blocks(layout, rows, score),
        option=None if option is None else layout.fill(rows, option, -1),
        trials=_trials(df, columns, layout, rows, score),
        probs=None,
    )
    if columns["probs"] is not None:
        probs, n_options = _probs(df[columns["probs"]], columns["probs"], layout, rows, n_options)
        blocks = replace(blocks, probs=probs)
    top = int(n_options.max()) if n_options is not None else 0
    labels = option_labels(top, letters) if top and (option is not None or key is not None) else ()
    items = pd.DataFrame({"item": layout.item, "domain": layout.domain})
    items["key"] = pd.Series(
        [pd.NA if key is None or k < 0 else labels[k] for k in _or_none(key, len(items))], dtype="string"
    )
    items["n_options"] = pd.Series(_or_none(n_options, len(items)), dtype="Int64").replace(0, pd.NA)
    info = model_info if model_info is not None else _info_from_attrs(df)
    return Responses(layout.models, items, layout.domains, blocks, labels, _info(info, layout.models), tuple(notes))


def _score_blocks(layout: _Layout, rows: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, ...]:
    if ((score[rows] == 0) | (score[rows] == 1)).all():
        return layout.fill(rows, np.nan_to_num(score).astype(np.int8), -1)
    return tuple(compact(block) for block in layout.fill(rows, score, np.nan))


def _or_none(values: np.ndarray | None, n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64) if values is None else values


def _check_columns(df: pd.DataFrame, columns: Mapping[str, str | None]) -> None:
    missing = [c for c in columns.values() if c is not None and c not in df.columns]
    if missing:
        present = ", ".join(map(repr, df.columns[:20]))
        raise InputError(f"there is no column {missing[0]!r}; the table has {present}")
    if columns["score"] is None and (columns["option"] is None or columns["key"] is None):
        raise InputError("without a score column both an option and a key column are needed")


def _layout(df: pd.DataFrame, columns: Mapping[str, str | None]) -> _Layout:
    """Number models, domains and items; an item is a (domain, item) pair, and domains are stored one after another."""
    model_codes, models = names(df[columns["model"]], str(columns["model"]))
    item_codes, item_names = names(df[columns["item"]], str(columns["item"]))
    if columns["domain"] is None:
        domain_codes, domain_names = np.zeros(len(df), dtype=np.intp), pd.Index([_EVERYTHING], dtype=str)
    else:
        domain_codes, domain_names = names(df[columns["domain"]], str(columns["domain"]))
    pair_codes, pairs = pd.factorize(domain_codes.astype(np.int64) * len(item_names) + item_codes)
    order = np.argsort(pairs // len(item_names), kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    row_item = position[pair_codes]
    stored = pairs[order]
    return _Layout(
        models=models.rename("model"),
        item=item_names[stored % len(item_names)],
        domain=domain_names[stored // len(item_names)],
        domains=tuple(domain_names),
        row_item=row_item,
        cell=model_codes.astype(np.int64) * len(pairs) + row_item,
    )


def _options(
    df: pd.DataFrame, columns: Mapping[str, str | None], layout: _Layout, notes: list[str]
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None, bool]:
    """Chosen options per row, key and number of options per item, and whether they were written as letters."""
    J = layout.shape[1]
    read = {c: option_codes(df[columns[c]], str(columns[c])) for c in ("option", "key") if columns[c] is not None}
    kinds = {r.letters for r in read.values()} - {None}
    if len(kinds) == 2:
        raise InputError("options and keys must both be letters or both be numbers")
    key = option = n_options = None
    if "key" in read:
        key, bad = one_per_item(read["key"].codes, layout.row_item, J, -1)
        if len(bad):
            j = layout.row_item[bad[0]]
            raise InputError(
                f"item {layout.item[j]!r} of domain {layout.domain[j]!r} has two keys: codes {key[j]} and "
                f"{read['key'].codes[bad[0]]} (row {bad[0] + 1})"
            )
    if columns["n_options"] is not None:
        given = numbers(df[columns["n_options"]], str(columns["n_options"]), 1, 1000, "1 to 1000")
        n_options, bad = one_per_item(np.nan_to_num(given).astype(np.int64), layout.row_item, J, 0)
        if len(bad):
            j = layout.row_item[bad[0]]
            raise InputError(f"item {layout.item[j]!r} of domain {layout.domain[j]!r} has two numbers of options")
    elif read:
        n_options = np.zeros(J, dtype=np.int64)
        for r in read.values():
            np.maximum.at(n_options, layout.row_item, r.codes + 1)
    if "option" in read and n_options is not None:
        option = read["option"].codes
        beyond = (option >= n_options[layout.row_item]) & (n_options[layout.row_item] > 0)
        if beyond.any():
            option = np.where(beyond, -1, option).astype(np.int16)
            notes.append(
                f"chosen options set to missing because they lie beyond the item's options: {int(beyond.sum()):,}"
            )
    if key is not None and n_options is not None and (key >= np.where(n_options > 0, n_options, 1000)).any():
        j = int(np.argmax(key >= n_options))
        raise InputError(f"item {layout.item[j]!r} of domain {layout.domain[j]!r}: its key lies beyond its options")
    return option, key, n_options, True in kinds


def _scores(
    df: pd.DataFrame,
    columns: Mapping[str, str | None],
    layout: _Layout,
    option: np.ndarray | None,
    key: np.ndarray | None,
    notes: list[str],
) -> np.ndarray:
    """(rows,) scores with NaN for missing."""
    matches = None
    if option is not None and key is not None:
        row_key = key[layout.row_item]
        matches = np.where((option < 0) | (row_key < 0), np.nan, option == row_key)
    if columns["score"] is None:
        assert matches is not None
        return np.asarray(matches)
    score = numbers(df[columns["score"]], str(columns["score"]), 0, 1, "0 to 1")
    if matches is not None:
        differ = int((~np.isnan(matches) & ~np.isnan(score) & (matches != score)).sum())
        if differ:
            notes.append(f"scores kept although they differ from (option == key): {differ:,}")
    return score


def _one_row_per_cell(layout: _Layout, score: np.ndarray, notes: list[str]) -> np.ndarray:
    """Rows with a score, one per cell; equal repeats are dropped and counted, unequal ones an error."""
    rows = np.flatnonzero(~np.isnan(score))
    taken = np.zeros(layout.shape[0] * layout.shape[1], dtype=bool)
    taken[layout.cell[rows]] = True
    if taken.sum() == len(rows):
        return rows
    repeated = pd.Series(layout.cell[rows]).duplicated().to_numpy()
    first = np.full(len(taken), np.nan)
    first[layout.cell[rows][::-1]] = score[rows][::-1]
    unequal = rows[first[layout.cell[rows]] != score[rows]]
    if len(unequal):
        shown = []
        for r in unequal[:3]:
            i, j = divmod(int(layout.cell[r]), layout.shape[1])
            shown.append(f"({layout.models[i]}, {layout.domain[j]}, {layout.item[j]}) at row {r + 1}")
        raise InputError(
            f"{len(unequal):,} answers are given twice with different scores: {'; '.join(shown)}; keep one row per "
            "model, domain and item, or average them and give the number of runs"
        )
    text = f"rows dropped because they repeat an answer with the same score: {int(repeated.sum()):,}"
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=5)
    return rows[~repeated]


def _trials(
    df: pd.DataFrame, columns: Mapping[str, str | None], layout: _Layout, rows: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, ...] | None:
    if columns["trials"] is None:
        return None
    column = df[columns["trials"]]
    runs = numbers(column, str(columns["trials"]), 1, 2**31 - 1, "1 and more")
    right = score * runs
    bad = ~np.isnan(score) & (np.isnan(runs) | (np.abs(right - np.round(right)) > 1e-6 * np.maximum(runs, 1)))
    if bad.any():
        raise InputError(
            f"column {columns['trials']!r}: " + show_rows(bad, column, "numbers of runs that do not fit the score")
        )
    return layout.fill(rows, np.nan_to_num(runs).astype(np.int32), 0)


def _probs(
    column: pd.Series, name: str, layout: _Layout, rows: np.ndarray, n_options: np.ndarray | None
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Ragged blocks of option probabilities, and the number of options per item."""
    values = column.to_numpy(dtype=object)
    given = np.array([v is not None and not np.isscalar(v) for v in values])
    length = np.array([len(v) if g else 0 for v, g in zip(values, given, strict=True)])
    counts, bad = one_per_item(length, layout.row_item, layout.shape[1], 0)
    if n_options is not None:
        counts = np.where(n_options > 0, n_options, counts)
        bad = np.flatnonzero(given & (length != counts[layout.row_item]))
    if len(bad):
        mask = np.isin(np.arange(len(values)), bad)
        raise InputError(
            f"column {name!r}: " + show_rows(mask, length, "rows with another length than their item's options")
        )
    flat = np.concatenate(
        [np.asarray(v, dtype=np.float64) for v, g in zip(values, given, strict=True) if g] or [np.zeros(0)]
    )
    owner = np.repeat(np.flatnonzero(given), length[given])
    total = np.bincount(owner, weights=flat, minlength=len(values))
    lowest = np.zeros(len(values))
    np.minimum.at(lowest, owner, flat)
    wrong = given & ~((np.abs(total - 1) <= 1e-3) & (lowest >= 0))
    if wrong.any():
        raise InputError(
            f"column {name!r}: " + show_rows(wrong, total, "rows whose probabilities are negative or do not sum to 1")
        )
    offset = np.concatenate([[0], np.cumsum(counts)])
    out = np.full((layout.shape[0], int(offset[-1])), np.nan, dtype=np.float32)
    use = np.isin(owner, rows)
    start = np.concatenate([[0], np.cumsum(length[given])])[:-1]
    within = np.arange(len(flat)) - np.repeat(start, length[given])
    model = layout.cell[owner] // layout.shape[1]
    out[model[use], (offset[layout.row_item[owner]] + within)[use]] = flat[use]
    ends = np.flatnonzero(np.asarray(layout.domain[1:] != layout.domain[:-1])) + 1
    return tuple(np.ascontiguousarray(b) for b in np.split(out, offset[ends], axis=1)), counts


def _info_from_attrs(df: pd.DataFrame) -> pd.DataFrame | None:
    text = df.attrs.get(_ATTRS, {}).get("model_info")
    if text is None:
        return None
    table = json.loads(text)
    return pd.DataFrame(table["data"], index=table["index"], columns=table["columns"])


def _info(info: pd.DataFrame | None, models: pd.Index) -> pd.DataFrame | None:
    """Facts in the order of the models; models without a row get missing values."""
    if info is None:
        return None
    if "model" in info.columns:
        info = info.set_index("model")
    info = info.set_axis(info.index.map(str), axis=0)
    if info.index.has_duplicates:
        twice = info.index[info.index.duplicated()][0]
        raise InputError(f"model_info has more than one row for model {twice!r}")
    return info.reindex(models)


def build_wide(df: pd.DataFrame, domains: Any) -> Responses:
    """See `Responses.from_wide`."""
    if isinstance(df.index, pd.RangeIndex) and len(df.columns) and not pd.api.types.is_numeric_dtype(df.iloc[:, 0]):
        df = df.set_index(df.columns[0])
    if df.empty:
        raise InputError("the table has no rows or no item columns")
    if df.columns.has_duplicates:
        raise InputError(f"column {df.columns[df.columns.duplicated()][0]!r} appears twice")
    _, models = names(df.index.to_series(), str(df.index.name or "index"))
    if len(models) < len(df):
        twice = df.index[df.index.duplicated()][0]
        raise InputError(f"model {twice!r} has more than one row; keep one row per model")
    items = pd.Index([str(c) for c in df.columns], dtype=str)
    domain = pd.Index([domain_of(item, domains) for item in items], dtype=str)
    codes, unique = pd.factorize(domain)
    order = np.argsort(codes, kind="stable")
    blocks = []
    for t in range(len(unique)):
        columns = order[codes[order] == t]
        scores = [numbers(df.iloc[:, c], str(df.columns[c]), 0, 1, "0 to 1") for c in columns]
        blocks.append(compact(np.stack(scores, axis=1)))
    frame = pd.DataFrame({"item": items[order], "domain": domain[order]})
    frame["key"] = pd.Series(pd.NA, index=frame.index, dtype="string")
    frame["n_options"] = pd.Series(pd.NA, index=frame.index, dtype="Int64")
    return Responses(models.rename("model"), frame, tuple(unique), Blocks(tuple(blocks)))


def domain_of(item: str, domains: Mapping[str, str] | pd.Series | Callable[[str], str] | str | None) -> str:
    """The domain that `domains` (see `Responses.from_wide`) gives an item."""
    if domains is None or isinstance(domains, str):
        return domains or _EVERYTHING
    if callable(domains):
        return str(domains(item))
    if item not in domains:
        raise InputError(f"domains: no domain is given for item {item!r}")
    return str(domains[item])


def to_long(responses: Responses) -> pd.DataFrame:
    """See `Responses.to_long`."""
    N, J = responses.n_models, responses.n_items
    items = responses.items
    model = pd.Categorical.from_codes(np.repeat(np.arange(N, dtype=np.int32), J), categories=responses.models)
    item_codes, item_names = pd.factorize(items["item"])
    domain_codes = np.repeat(np.arange(len(responses.domains)), responses.sizes)
    table = pd.DataFrame(
        {
            "model": model,
            "domain": pd.Categorical.from_codes(np.tile(domain_codes, N), categories=pd.Index(responses.domains)),
            "item": pd.Categorical.from_codes(np.tile(item_codes, N), categories=item_names),
            "score": responses.scores.ravel(),
        }
    )
    blocks = responses.blocks
    if blocks.option is not None:
        codes = np.concatenate(blocks.option, axis=1).ravel()
        table["option"] = pd.Categorical.from_codes(codes, categories=pd.Index(responses.labels))
    if blocks.probs is not None:
        table["probs"] = _probs_lists(responses)
    if items["key"].notna().any():
        table["key"] = pd.Categorical(
            np.tile(items["key"].to_numpy(dtype=object), N), categories=list(responses.labels)
        )
    if items["n_options"].notna().any():
        table["n_options"] = pd.array(np.tile(items["n_options"].fillna(0).to_numpy(np.int64), N), dtype="Int64")
        table["n_options"] = table["n_options"].replace(0, pd.NA)
    if blocks.trials is not None:
        runs = np.concatenate(blocks.trials, axis=1).ravel()
        table["trials"] = pd.array(runs, dtype="Int32")
        table.loc[runs == 0, "trials"] = pd.NA
    if responses.model_info is not None:
        text = responses.model_info.to_json(orient="split", date_format="iso")
        table.attrs[_ATTRS] = {"model_info": text}
    return table


def _probs_lists(responses: Responses) -> np.ndarray:
    """Object array of one list per cell, None where the answer is missing."""
    out = np.empty((responses.n_models, responses.n_items), dtype=object)
    start = 0
    for domain, scores in zip(responses.domains, responses.blocks.scores, strict=True):
        block, offset = responses.probs_block(domain)  # type: ignore[misc]
        seen = observed(scores)
        for j in range(scores.shape[1]):
            rows = block[:, offset[j] : offset[j + 1]]
            for i in np.flatnonzero(seen[:, j] & ~np.isnan(rows).any(axis=1)):
                out[i, start + j] = rows[i].tolist()
        start += scores.shape[1]
    return out.ravel()
