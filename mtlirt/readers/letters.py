"""From log-likelihoods of the options to the chosen option and the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Target = str | int | None
_PER = {"acc": lambda text: 1, "acc_norm": len, "acc_bytes": lambda text: len(text.encode("utf-8", "surrogatepass"))}


class Told(NamedTuple):
    """What a row says of its options: their log-likelihoods and texts, and the target, which names the key."""

    logprobs: Sequence[float]
    texts: Sequence[str]
    target: Target


def options_and_keys(
    metric: str, rows: Sequence[Told], scores: Sequence[float]
) -> tuple[list[tuple[int, int] | None], list[str]]:
    """(chosen option, key) of every row, the key -1 where it cannot be told, and a note if some rows were left out.

    None for a row without options, for a metric that is not whether the most likely option is the key, and for a row
    whose option and key contradict its score.
    """
    told: list[tuple[int, int] | None] = [None] * len(rows)
    with_options = [i for i, r in enumerate(rows) if len(r.logprobs) == len(r.texts) > 1] if metric in _PER else []
    chosen = [_most_likely(rows[i], metric) for i in with_options]
    right = [scores[i] for i in with_options]
    keys, against = find_keys(
        [rows[i].target for i in with_options], [rows[i].texts for i in with_options], chosen, right
    )
    for i, option, key, bad in zip(with_options, chosen, keys, against, strict=True):
        told[i] = None if bad else (option, key)
    notes = [f"options left out where they contradict {metric!r}: {sum(against):,} rows"] if any(against) else []
    return told, notes


def _most_likely(row: Told, metric: str) -> int:
    """The option with the largest log-likelihood; for acc_norm per character of its text, for acc_bytes per byte."""
    lengths = [max(1, _PER[metric](text)) for text in row.texts]
    return int(np.argmax(np.asarray(row.logprobs, dtype=float) / lengths))


def find_keys(
    targets: Sequence[Target],
    texts: Sequence[Sequence[str]],
    chosen: Sequence[int],
    right: Sequence[float],
) -> tuple[list[int], list[bool]]:
    """The key of every item, -1 where it cannot be told, and whether a row contradicts its own score.

    A target is the text of an option or its 0-based place. A log does not say which, so the reading that fits more
    scores is taken: the chosen option is the key exactly where the score is 1. Where neither tells the key, a right
    answer does, and of two options a wrong one does.
    """
    readings = [_by_text(targets, texts), _by_place(targets, texts)]
    against = [_contradictions(keys, chosen, right) for keys in readings]
    best = max(range(2), key=lambda r: sum(k >= 0 for k in readings[r]) - 2 * sum(against[r]))
    keys = readings[best]
    for i, (option, score) in enumerate(zip(chosen, right, strict=True)):
        if keys[i] < 0 and score == 1:
            keys[i] = option
        elif keys[i] < 0 and score == 0 and len(texts[i]) == 2:
            keys[i] = 1 - option
    return keys, against[best]


def _by_text(targets: Sequence[Target], texts: Sequence[Sequence[str]]) -> list[int]:
    keys = []
    for target, options in zip(targets, texts, strict=True):
        same = [i for i, text in enumerate(options) if isinstance(target, str) and text.strip() == target.strip()]
        keys.append(same[0] if len(same) == 1 else -1)
    return keys


def _by_place(targets: Sequence[Target], texts: Sequence[Sequence[str]]) -> list[int]:
    keys = []
    for target, options in zip(targets, texts, strict=True):
        text = str(target).strip()
        place = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
        keys.append(place if 0 <= place < len(options) else -1)
    return keys


def _contradictions(keys: Sequence[int], chosen: Sequence[int], right: Sequence[float]) -> list[bool]:
    return [k >= 0 and (k == c) != (r == 1) for k, c, r in zip(keys, chosen, right, strict=True)]
