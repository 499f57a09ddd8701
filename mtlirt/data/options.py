"""What option models make of `Responses`: items that have options and a key, grouped by their number of options."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from mtlirt.core.options import OptionGroup
from mtlirt.data.responses import Responses
from mtlirt.errors import InputError

_SHOWN = 5
Channel = Literal["auto", "hard", "soft"]


@dataclass(frozen=True)
class OptionAnswers:
    """Answers by option of the items that option models can use.

    channel : "hard" (one chosen option each) or "soft" (probabilities).
    groups : items by number of options, numbered as in `responses`.
    right : one (N, J_t) block per domain, the share of the key, NaN where missing.
    responses : the answers to these items.
    notes : what was left out, with counts.
    """

    channel: str
    groups: tuple[OptionGroup, ...]
    right: tuple[np.ndarray, ...]
    responses: Responses
    notes: tuple[str, ...]


def option_answers(responses: Responses, channel: Channel) -> OptionAnswers:
    """Take the options ("hard"), the probabilities ("soft"), or probabilities where there are any ("auto").

    Left out, and counted in the notes: items without a key, with fewer than two options, or without a single answer;
    models without a single option; answers without an option. Without chosen options the hard channel takes the most
    probable one, the first of equals.

    Raises
    ------
    InputError if there are no options, probabilities or keys, or no item is left.
    """
    if channel == "auto":
        channel = "hard" if responses.blocks.probs is None else "soft"
    if channel == "soft" and responses.blocks.probs is None:
        raise InputError('channel="soft" needs option probabilities (column probs), and these answers have none')
    if responses.blocks.option is None and responses.blocks.probs is None:
        raise InputError(
            "option models need the chosen options (columns option and key) or probabilities (probs and key), and "
            "these answers have neither"
        )
    items, notes = responses.items, list[str]()
    labels = pd.Index(responses.labels)
    key = labels.get_indexer(pd.Index(items["key"])) if len(labels) else np.full(len(items), -1)
    n_options = items["n_options"].fillna(0).to_numpy(dtype=np.int64)
    shares = _soft(responses) if channel == "soft" else _hard(responses, notes)
    answered = np.array([bool((block > 0).any()) for block in shares])
    usable = np.ones(len(items), dtype=bool)
    for what, bad in (
        ("without a key", key < 0),
        ("with fewer than two options", n_options < 2),
        ("that nobody answered with an option", ~answered),
    ):
        if (left := usable & bad).any():
            notes.append(f"items left out, {what}: {int(left.sum()):,}")
        usable &= ~bad
    if not usable.any():
        raise InputError("no item is left for an option model: " + "; ".join(notes))
    return _assemble(responses, channel, usable, key, [s for s, u in zip(shares, usable, strict=True) if u], notes)


def _hard(responses: Responses, notes: list[str]) -> list[np.ndarray]:
    """One (K, N) uint8 array per item: 1 at the chosen option."""
    if responses.blocks.option is None:
        soft = _soft(responses)
        best = [np.where(p.sum(axis=0) > 0, p.argmax(axis=0), -1) if len(p) else np.full(p.shape[1], -1) for p in soft]
        ties = sum(int(((p == p.max(axis=0)).sum(axis=0) > 1)[p.sum(axis=0) > 0].sum()) for p in soft if len(p))
        if ties:
            notes.append(f"answers whose most probable option is the first of several equals: {ties:,}")
    else:
        best = [column for block in responses.blocks.option for column in block.T]
    counts = responses.items["n_options"].fillna(0).to_numpy(dtype=np.int64)
    return [(np.arange(K)[:, None] == chosen).astype(np.uint8) for K, chosen in zip(counts, best, strict=True)]


def _soft(responses: Responses) -> list[np.ndarray]:
    """One (K, N) float32 array per item: probabilities that sum to 1, 0 where missing."""
    out = []
    for domain in responses.domains:
        block, offset = responses.probs_block(domain)  # type: ignore[misc]
        for start, end in pairwise(offset):
            p = np.nan_to_num(block[:, start:end].T)
            total = p.sum(axis=0)
            out.append(np.divide(p, total, out=np.zeros_like(p), where=total > 0))
    return out


def _assemble(
    responses: Responses,
    channel: str,
    usable: np.ndarray,
    key: np.ndarray,
    shares: list[np.ndarray],
    notes: list[str],
) -> OptionAnswers:
    silent = ~np.any([p.any(axis=0) for p in shares], axis=0)
    if silent.any():
        names = ", ".join(map(repr, responses.models[silent][:_SHOWN]))
        notes.append(f"models left out, without a single option: {int(silent.sum()):,} ({names})")
        shares = [p[:, ~silent] for p in shares]
    kept = responses.subset(models=list(responses.models[~silent]), items=usable)
    key = key[usable]
    right = np.stack([p[k] for p, k in zip(shares, key, strict=True)], axis=1).astype(np.float64)
    missing = np.stack([p.sum(axis=0) == 0 for p in shares], axis=1)
    right[missing] = np.nan
    given = kept.scores
    scored = ~np.isnan(given)
    if lost := int((scored & missing).sum()):
        notes.append(f"answers without an option, missing for an option model: {lost:,}")
    if channel == "hard" and (differ := int((scored & ~missing & (given != right)).sum())):
        notes.append(f"scores that differ from (option == key), where an option model goes by the option: {differ:,}")
    if len(kept.domains) < len(responses.domains):
        gone = [d for d in responses.domains if d not in kept.domains]
        notes.append(f"domains without an item left: {', '.join(gone)}")
    ends = np.cumsum(kept.sizes)[:-1]
    right_blocks = tuple(np.ascontiguousarray(b) for b in np.split(right, ends, axis=1))
    counts = np.array([len(p) for p in shares])
    groups = tuple(
        OptionGroup(np.flatnonzero(counts == K), key[counts == K], np.stack([p for p in shares if len(p) == K]))
        for K in np.unique(counts)
    )
    return OptionAnswers(channel, groups, right_blocks, kept, tuple(notes))
