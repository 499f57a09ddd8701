"""Tables to Responses and back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtlirt.data.columns import names, numbers, one_per_item, option_codes, option_labels, show_rows
from mtlirt.data.info import align_info, info_from_text, info_to_text
from mtlirt.data.probs import most_probable, probs_lists, probs_matrix, read_logprobs, read_probs
from mtlirt.data.responses import Blocks, Responses, compact, trim_labels
from mtlirt.data.wide import EVERYTHING
from mtlirt.errors import DataWarning, InputError

_ATTRS = "mtlirt"


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

    def name(self, j: int) -> str:
        """Item j in words."""
        return f"item {self.item[j]!r} of domain {self.domain[j]!r}"

    @property
    def ends(self) -> np.ndarray:
        """Where one domain's items end and the next one's begin."""
        return np.flatnonzero(np.asarray(self.domain[1:] != self.domain[:-1])) + 1

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, ...]:
        """Cut a flat array of all cells into blocks by domain."""
        return tuple(np.ascontiguousarray(b) for b in np.split(flat.reshape(self.shape), self.ends, axis=1))

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
    unread = [name for name, column in columns.items() if column is None and name != "domain" and name in df.columns]
    notes = [f"columns that were not asked for, and not read: {', '.join(unread)}"] if unread else []
    probs = _read_probs(df, columns, notes)
    options = _options(df, columns, layout, None if probs is None else probs[1], notes)
    score = _scores(df, columns, layout, options, probs, notes)
    runs = _runs(df, columns, score)
    rows = _one_row_per_cell(layout, {"scores": score, "options": options.option, "trials": runs}, probs, notes)
    blocks = Blocks(
        scores=_score_blocks(layout, rows, score),
        option=None if options.option is None else layout.fill(rows, options.option, -1),
        trials=None if runs is None else layout.fill(rows, np.nan_to_num(runs).astype(np.int32), 0),
        probs=None
        if probs is None
        else _probs(*probs, str(columns["probs"] or columns["logprobs"]), layout, rows, options.n_options),
    )
    items = pd.DataFrame({"item": layout.item, "domain": layout.domain})
    labels = option_labels(int(max(options.n_options, default=0)), options.letters)
    items["key"] = pd.Series([pd.NA if k < 0 else labels[k] for k in options.key], dtype="string")
    items["n_options"] = pd.Series(options.n_options, dtype="Int64").replace(0, pd.NA)
    text = df.attrs.get(_ATTRS, {}).get("model_info")
    info = info_from_text(text) if model_info is None and text is not None else model_info
    info = align_info(info, layout.models)
    return Responses(
        layout.models, items, layout.domains, blocks, trim_labels(labels, items, blocks), info, tuple(notes)
    )


def _read_probs(
    df: pd.DataFrame, columns: Mapping[str, str | None], notes: list[str]
) -> tuple[np.ndarray, np.ndarray] | None:
    probs, logprobs = columns["probs"], columns["logprobs"]
    if probs is not None and logprobs is not None:
        raise InputError(f"columns {probs!r} and {logprobs!r}: give probabilities or log-probabilities, not both")
    if logprobs is not None:
        flat, length = read_logprobs(df[logprobs], logprobs, notes)
    elif probs is not None:
        flat, length = read_probs(df[probs], probs)
    else:
        return None
    return (flat, length) if length.any() else None


def _score_blocks(layout: _Layout, rows: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, ...]:
    if ((score[rows] == 0) | (score[rows] == 1)).all():
        return layout.fill(rows, np.nan_to_num(score).astype(np.int8), -1)
    return tuple(compact(block) for block in layout.fill(rows, score, np.nan))


def _check_columns(df: pd.DataFrame, columns: Mapping[str, str | None]) -> None:
    missing = [c for c in columns.values() if c is not None and c not in df.columns]
    if missing:
        present = ", ".join(map(repr, df.columns[:20]))
        raise InputError(f"there is no column {missing[0]!r}; the table has {present}")
    twice = [c for c in columns.values() if c is not None and df.columns.tolist().count(c) > 1]
    if twice:
        raise InputError(f"column {twice[0]!r} appears twice")
    answers = [columns[c] for c in ("option", "probs", "logprobs") if columns[c] is not None]
    if columns["score"] is None and (not answers or columns["key"] is None):
        raise InputError("without a score column both an option (or probs) and a key column are needed")


def _layout(df: pd.DataFrame, columns: Mapping[str, str | None]) -> _Layout:
    """Number models, domains and items; an item is a (domain, item) pair, and domains are stored one after another."""
    model_codes, models = names(df[columns["model"]], str(columns["model"]))
    item_codes, item_names = names(df[columns["item"]], str(columns["item"]))
    if columns["domain"] is None:
        domain_codes, domain_names = np.zeros(len(df), dtype=np.intp), pd.Index([EVERYTHING], dtype=str)
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


@dataclass(frozen=True)
class _Options:
    """option : (rows,) codes, -1 missing, or None.  key : (J,) codes, -1 unknown.  n_options : (J,), 0 unknown.
    letters : whether options were written as letters."""

    option: np.ndarray | None
    key: np.ndarray
    n_options: np.ndarray
    letters: bool


def _options(
    df: pd.DataFrame, columns: Mapping[str, str | None], layout: _Layout, n_probs: np.ndarray | None, notes: list[str]
) -> _Options:
    """Chosen options per row, key and number of options per item."""
    read = {c: option_codes(df[columns[c]], str(columns[c])) for c in ("option", "key") if columns[c] is not None}
    kinds = {r.letters for r in read.values()} - {None}
    if len(kinds) == 2:
        raise InputError("options and keys must both be letters or both be numbers")
    letters = True in kinds
    key = np.full(layout.shape[1], -1, dtype=np.int64)
    if "key" in read:
        key, bad = one_per_item(read["key"].codes, layout.row_item, layout.shape[1], -1)
        if len(bad):
            j = layout.row_item[bad[0]]
            labels = option_labels(int(read["key"].codes.max()) + 1, letters)
            raise InputError(
                f"{layout.name(j)} has two keys: {labels[key[j]]!r} and {labels[read['key'].codes[bad[0]]]!r} "
                f"(row {bad[0] + 1})"
            )
    seen = [r.codes + 1 for r in read.values()] + ([] if n_probs is None else [n_probs])
    n_options = _n_options(df, columns["n_options"], layout, seen)
    if (beyond := (key >= n_options) & (key >= 0)).any():
        raise InputError(f"{layout.name(int(np.argmax(beyond)))}: its key lies beyond its options")
    option = read["option"].codes if "option" in read else None
    if option is not None and read["option"].unclear:
        notes.append(f"answers with several options (+) or none (-), set to missing: {read['option'].unclear:,}")
    if option is not None and (beyond := option >= n_options[layout.row_item]).any():
        option = np.where(beyond, -1, option).astype(np.int16)
        notes.append(f"chosen options set to missing because they lie beyond the item's options: {int(beyond.sum()):,}")
    return _Options(option, key, n_options, letters)


def _n_options(df: pd.DataFrame, column: str | None, layout: _Layout, seen: list[np.ndarray]) -> np.ndarray:
    """(J,) numbers of options: as given, else the most that any row of the item shows; 0 where nothing is known."""
    J = layout.shape[1]
    most = np.zeros(J, dtype=np.int64)
    for counts in seen:
        np.maximum.at(most, layout.row_item, counts)
    if column is None:
        return most
    given = numbers(df[column], column, 1, 1000, "1 to 1000", whole=True)
    n_options, bad = one_per_item(np.nan_to_num(given).astype(np.int64), layout.row_item, J, 0)
    if len(bad):
        raise InputError(f"{layout.name(layout.row_item[bad[0]])} has two numbers of options")
    return np.where(n_options > 0, n_options, most)


def _scores(
    df: pd.DataFrame,
    columns: Mapping[str, str | None],
    layout: _Layout,
    options: _Options,
    probs: tuple[np.ndarray, np.ndarray] | None,
    notes: list[str],
) -> np.ndarray:
    """(rows,) scores with NaN for missing; without a score column those of the option, or of the most probable one."""
    row_key = options.key[layout.row_item]
    matches = np.full(len(row_key), np.nan)
    if options.option is not None:
        matches = np.where((options.option < 0) | (row_key < 0), np.nan, options.option == row_key)
    likely = np.full(len(row_key), -1) if probs is None else most_probable(*probs)
    if columns["score"] is None:
        return np.where(np.isnan(matches) & (likely >= 0) & (row_key >= 0), likely == row_key, matches)
    score = numbers(df[columns["score"]], str(columns["score"]), 0, 1, "0 to 1")
    unscored = int((np.isnan(score) & (~np.isnan(matches) | (likely >= 0))).sum())
    if unscored:
        notes.append(f"answers with an option or probabilities but no score, left out: {unscored:,}")
    differ = int((~np.isnan(matches) & ~np.isnan(score) & (matches != score)).sum())
    if differ:
        notes.append(f"scores kept although they differ from (option == key): {differ:,}")
    return score


def _one_row_per_cell(
    layout: _Layout,
    told: Mapping[str, np.ndarray | None],
    probs: tuple[np.ndarray, np.ndarray] | None,
    notes: list[str],
) -> np.ndarray:
    """Rows with a score, one per cell; equal repeats are dropped and counted, unequal ones an error."""
    score = told["scores"]
    assert score is not None
    rows = np.flatnonzero(~np.isnan(score))
    taken = np.zeros(layout.shape[0] * layout.shape[1], dtype=bool)
    taken[layout.cell[rows]] = True
    if taken.sum() == len(rows):
        return rows
    repeated = pd.Series(layout.cell[rows]).duplicated().to_numpy()
    first = np.zeros(len(taken), dtype=np.intp)
    first[layout.cell[rows][::-1]] = rows[::-1]
    before = first[layout.cell[rows]]
    for what, values in told.items():
        if values is not None:
            one, other = values[before], values[rows]
            _refuse(layout, rows[(one != other) & ~(pd.isna(one) & pd.isna(other))], what)
    if probs is not None:
        flat, length = probs
        start = np.cumsum(length) - length
        again = zip(before[repeated], rows[repeated], strict=True)
        cells = [(flat[start[b] : start[b] + length[b]], flat[start[r] : start[r] + length[r]]) for b, r in again]
        _refuse(layout, rows[repeated][[not np.array_equal(x, y) for x, y in cells]], "probabilities")
    text = f"rows dropped because they repeat an answer with the same score: {int(repeated.sum()):,}"
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=5)
    return rows[~repeated]


def _refuse(layout: _Layout, unequal: np.ndarray, what: str) -> None:
    """InputError if some rows repeat an answer with other scores, options or probabilities."""
    if not len(unequal):
        return
    shown = []
    for r in unequal[:3]:
        i, j = divmod(int(layout.cell[r]), layout.shape[1])
        shown.append(f"({layout.models[i]}, {layout.domain[j]}, {layout.item[j]}) at row {r + 1}")
    raise InputError(
        f"{len(unequal):,} answers are given twice with different {what}: {'; '.join(shown)}; keep one row per "
        "model, domain and item, or average scores and give the number of runs"
    )


def _runs(df: pd.DataFrame, columns: Mapping[str, str | None], score: np.ndarray) -> np.ndarray | None:
    """(rows,) numbers of runs, NaN where there is no answer; None without a column of them."""
    if columns["trials"] is None:
        return None
    column = df[columns["trials"]]
    runs = numbers(column, str(columns["trials"]), 1, 2**31 - 1, "1 and more", whole=True)
    right = score * runs
    bad = ~np.isnan(score) & (np.isnan(runs) | (np.abs(right - np.round(right)) > 1e-6 * np.maximum(runs, 1)))
    if bad.any():
        raise InputError(
            f"column {columns['trials']!r}: " + show_rows(bad, column, "numbers of runs that do not fit the score")
        )
    return runs


def _probs(
    flat: np.ndarray, length: np.ndarray, name: str, layout: _Layout, rows: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Ragged blocks of option probabilities; `counts` is the number of options per item."""
    bad = (length > 0) & (length != counts[layout.row_item])
    if bad.any():
        raise InputError(
            f"column {name!r}: " + show_rows(bad, length, "rows with another length than their item's options")
        )
    out, offset = probs_matrix(flat, length, rows, layout.cell, layout.row_item, layout.shape, counts)
    return tuple(np.ascontiguousarray(b) for b in np.split(out, offset[layout.ends], axis=1))


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
        lists = [probs_lists(*responses.probs_block(d)) for d in responses.domains]  # type: ignore[misc]
        table["probs"] = np.concatenate(lists, axis=1).ravel()
    if items["key"].notna().any():
        codes = pd.Index(responses.labels).get_indexer(pd.Index(items["key"])).astype(np.int16)
        table["key"] = pd.Categorical.from_codes(np.tile(codes, N), categories=pd.Index(responses.labels))
    if items["n_options"].notna().any():
        table["n_options"] = _whole_or_missing(np.tile(items["n_options"].fillna(0).to_numpy(np.int64), N))
    if blocks.trials is not None:
        table["trials"] = _whole_or_missing(np.concatenate(blocks.trials, axis=1).ravel())
    if responses.model_info is not None:
        table.attrs[_ATTRS] = {"model_info": info_to_text(responses.model_info)}
    return table


def _whole_or_missing(values: np.ndarray) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(values, values == 0)
