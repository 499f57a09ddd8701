"""Parts of a Responses: subset and clean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mtlirt.data.responses import Blocks, Responses, as_float, compact, observed, trim_labels
from mtlirt.errors import InputError


def model_mask(responses: Responses, models: Collection[str] | None) -> np.ndarray:
    """(N,) bool; InputError for unknown names."""
    if models is None:
        return np.ones(responses.n_models, dtype=bool)
    wanted = [models] if isinstance(models, str) else list(models)
    _all_known("models", pd.Index(wanted), responses.models)
    return np.asarray(responses.models.isin(wanted))


def item_mask(responses: Responses, items: Any, domains: Collection[str] | None) -> np.ndarray:
    """(J,) bool; InputError for unknown names."""
    frame = responses.items
    keep = np.ones(len(frame), dtype=bool)
    if domains is not None:
        wanted = [domains] if isinstance(domains, str) else list(domains)
        _all_known("domains", pd.Index(wanted), pd.Index(responses.domains))
        keep &= frame["domain"].isin(wanted).to_numpy()
    if items is None:
        return keep
    names = [items] if isinstance(items, str) else list(items)
    if names and all(isinstance(x, bool | np.bool_) for x in names):
        if len(names) != len(frame):
            raise InputError(f"subset: the mask over items has length {len(names)}, there are {len(frame)} items")
        return keep & np.array(names, dtype=bool)
    if names and all(isinstance(x, tuple) for x in names):
        pairs, stored = (
            pd.MultiIndex.from_tuples([tuple(x) for x in names]),
            pd.MultiIndex.from_frame(frame[["domain", "item"]]),
        )
        _all_known("items", pairs, stored)
        return keep & stored.isin(pairs)
    _all_known("items", pd.Index(names), pd.Index(frame["item"]))
    return keep & frame["item"].isin(names).to_numpy()


def _all_known(what: str, wanted: pd.Index, known: pd.Index) -> None:
    unknown = wanted[~wanted.isin(known)]
    if len(unknown):
        shown = ", ".join(map(repr, unknown[:3]))
        raise InputError(f"subset: {len(unknown)} {what} are not there ({shown}{', ...' if len(unknown) > 3 else ''})")


def take(responses: Responses, models: np.ndarray, items: np.ndarray) -> Responses:
    """Rows and columns where the masks hold; domains without items go."""
    if not models.any() or not items.any():
        raise InputError("nothing is left: no model or no item was kept")
    ends = np.cumsum(responses.sizes.to_numpy())
    columns = np.split(items, ends[:-1])
    kept = [t for t, c in enumerate(columns) if c.any()]

    def cut(blocks: tuple[np.ndarray, ...] | None, widths: list[np.ndarray] | None = None) -> Any:
        if blocks is None:
            return None
        masks = columns if widths is None else [np.repeat(c, w) for c, w in zip(columns, widths, strict=True)]
        return tuple(np.ascontiguousarray(blocks[t][models][:, masks[t]]) for t in kept)

    widths = None
    if responses.blocks.probs is not None:
        widths = np.split(responses.items["n_options"].fillna(0).to_numpy(dtype=np.int64), ends[:-1])
    old = responses.blocks
    frame = responses.items[items].reset_index(drop=True)
    scores = tuple(b if b.dtype == np.int8 else compact(b) for b in cut(old.scores))
    blocks = Blocks(scores, cut(old.option), cut(old.trials), cut(old.probs, widths))
    info = responses.model_info
    return replace(
        responses,
        models=responses.models[models],
        items=frame,
        domains=tuple(responses.domains[t] for t in kept),
        blocks=blocks,
        labels=trim_labels(responses.labels, frame, blocks),
        model_info=None if info is None else info[models],
    )


def clean(responses: Responses, constant: bool, duplicates: bool, min_answers: int) -> Responses:
    """See `Responses.clean`. Rules are applied in turn: few answers, identical models, constant items."""
    if min_answers > 0:
        responses = _drop_sparse(responses, min_answers)
    if duplicates:
        first = ~duplicated_models(responses)
        text = "models dropped because their answers equal those of an earlier model: {n}"
        responses = _drop(responses, first, np.ones(responses.n_items, dtype=bool), text)
    if constant:
        varied = ~np.concatenate([constant_items(block) for block in responses.blocks.scores])
        responses = _drop(
            responses,
            np.ones(responses.n_models, dtype=bool),
            varied,
            "items dropped because all models answered them alike: {n}",
        )
    return responses


def _drop_sparse(responses: Responses, min_answers: int) -> Responses:
    """Drop models and items with few answers until none is left: dropping one can make another too sparse."""
    models, items = np.ones(responses.n_models, dtype=bool), np.ones(responses.n_items, dtype=bool)
    seen = np.concatenate([observed(block) for block in responses.blocks.scores], axis=1)
    while True:
        few_models = models & (seen[:, items].sum(axis=1) < min_answers)
        few_items = items & (seen[models].sum(axis=0) < min_answers)
        if not (few_models.any() or few_items.any()):
            break
        models, items = models & ~few_models, items & ~few_items
    everything = np.ones(responses.n_items, dtype=bool)
    kept = take(responses, models, items)
    notes = [
        f"{what} dropped for having fewer than {min_answers} answers: {lost:,}"
        for lost, what in ((int((~models).sum()), "models"), (int((everything & ~items).sum()), "items"))
        if lost
    ]
    return kept.with_notes(*notes)


def _drop(responses: Responses, models: np.ndarray, items: np.ndarray, text: str) -> Responses:
    lost = int((~models).sum() + (~items).sum())
    if not lost:
        return responses
    return take(responses, models, items).with_notes(text.format(n=f"{lost:,}"))


def constant_items(block: np.ndarray) -> np.ndarray:
    """(J_t,) True where all answers are equal."""
    scores = as_float(block)
    empty = np.isnan(scores).all(axis=0)
    filled = np.where(empty, 0.0, scores)
    return np.asarray(~empty & (np.nanmax(filled, axis=0) == np.nanmin(filled, axis=0)))


def constant_models(responses: Responses) -> np.ndarray:
    """(N,) True where a model has answers and all of them are equal."""
    lowest, highest = np.full(responses.n_models, np.inf), np.full(responses.n_models, -np.inf)
    for block in responses.blocks.scores:
        seen = observed(block)
        lowest = np.minimum(lowest, np.where(seen, block, np.inf).min(axis=1))
        highest = np.maximum(highest, np.where(seen, block, -np.inf).max(axis=1))
    return np.asarray(lowest == highest)


def duplicated_models(responses: Responses) -> np.ndarray:
    """(N,) True where all scores, gaps included, equal those of an earlier model."""
    rows = [
        b"".join(np.ascontiguousarray(b[i]).tobytes() for b in responses.blocks.scores)
        for i in range(responses.n_models)
    ]
    return np.asarray(pd.Series(rows).duplicated())
