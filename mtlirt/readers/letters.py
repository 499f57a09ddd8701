"""From log-likelihoods of the options to the chosen option and the key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Target = str | int | None


def chosen_option(logprobs: Sequence[float], texts: Sequence[str] | None, metric: str) -> int:
    """The option with the largest log-likelihood; for acc_norm per character of its text, for acc_bytes per byte."""
    values = np.asarray(logprobs, dtype=float)
    if metric == "acc_norm" and texts is not None:
        values = values / [max(1, len(t)) for t in texts]
    elif metric == "acc_bytes" and texts is not None:
        values = values / [max(1, len(t.encode())) for t in texts]
    return int(np.argmax(values))


def find_keys(
    targets: Sequence[Target],
    texts: Sequence[Sequence[str]],
    chosen: Sequence[int],
    right: Sequence[float],
) -> tuple[list[int], list[bool]]:
    """The key of every item, -1 where it cannot be told, and whether a row contradicts its own score.

    A target is the text of an option or its 0-based place. A log does not say which, so the reading that fits the
    scores is taken: the chosen option is the key exactly where the score is 1. Where neither tells the key, a right
    answer does, and of two options a wrong one does.
    """
    readings = [_by_text(targets, texts), _by_place(targets, texts)]
    against = [_contradictions(keys, chosen, right) for keys in readings]
    best = min(range(2), key=lambda r: (sum(against[r]), -sum(k >= 0 for k in readings[r])))
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
