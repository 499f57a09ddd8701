"""Options as logs tell them, by letters or by log-likelihoods, and whether option and key agree with the score."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple

from mtlirt.readers.fields import Problems
from mtlirt.readers.sheet import Answer

Target = str | int | None
_PER = {"acc": lambda text: 1, "acc_norm": len, "acc_bytes": lambda text: len(text.encode("utf-8", "surrogatepass"))}
_ROUNDING = 1e-3  # half precision keeps three digits
_MOST_OPTIONS = 1000


def by_letter(named: Any, n_options: int) -> int:
    """0-based place of the option that a letter names, -1 for anything else."""
    letter = named.strip() if isinstance(named, str) else ""
    place = ascii_uppercase.find(letter) if len(letter) == 1 else -1
    return place if place < n_options else -1


def agreeing(answers: Sequence[Answer], metric: str) -> tuple[list[Answer], list[str]]:
    """The answers, without options where these cannot be right, and notes on how many there were.

    The chosen option is the key exactly where the score is 1; else one of the three does not mean what it seems to. And
    a log-likelihood lies below 0, but for rounding.
    """
    against = [a.key >= 0 and a.score >= 0 and (a.option == a.key) != (a.score == 1) for a in answers]
    above = [a.logprobs is not None and max(a.logprobs) > _ROUNDING for a in answers]
    many = [a.n_options > _MOST_OPTIONS for a in answers]
    kept = [
        a._replace(option=-1, key=-1, n_options=0, logprobs=None) if any(bad) else _below_zero(a)
        for a, *bad in zip(answers, against, above, many, strict=True)
    ]
    notes = [(against, f"options left out where they contradict {metric!r}")]
    notes += [(above, "options left out where a log-likelihood is above 0")]
    notes += [(many, f"options left out where there are more than {_MOST_OPTIONS:,}")]
    return kept, [f"{text}: {sum(bad):,} rows" for bad, text in notes if any(bad)]


def _below_zero(answer: Answer) -> Answer:
    return answer if answer.logprobs is None else answer._replace(logprobs=[min(x, 0.0) for x in answer.logprobs])


def in_range(score: float | None, metric: str, line: int, problems: Problems) -> bool:
    """Whether a score is from 0 to 1, or missing; any other is a problem of its line."""
    if score is None or 0 <= score <= 1:
        return True
    problems.add(line, f"metric {metric!r} is {score:g}, outside 0 to 1")
    return False


class Told(NamedTuple):
    """What a row says of its options: their log-likelihoods and texts, and the target, which names the key."""

    logprobs: Sequence[float]
    texts: Sequence[str]
    target: Target


def options_and_keys(metric: str, rows: Sequence[Told], scores: Sequence[float]) -> list[tuple[int, int] | None]:
    """(most likely option, key) of every row, the key -1 where it cannot be told.

    None for a row without options, and for a metric that is not whether the most likely option is the key.
    """
    told: list[tuple[int, int] | None] = [None] * len(rows)
    with_options = [i for i, r in enumerate(rows) if len(r.logprobs) == len(r.texts) > 1] if metric in _PER else []
    chosen = [_most_likely(rows[i], metric) for i in with_options]
    keys = find_keys(
        [rows[i].target for i in with_options],
        [rows[i].texts for i in with_options],
        chosen,
        [scores[i] for i in with_options],
    )
    for i, option, key in zip(with_options, chosen, keys, strict=True):
        told[i] = (option, key)
    return told


def _most_likely(row: Told, metric: str) -> int:
    """The option with the largest log-likelihood; for acc_norm per character of its text, for acc_bytes per byte."""
    per = _PER[metric]
    values = [value / max(1, per(text)) for value, text in zip(row.logprobs, row.texts, strict=True)]
    return values.index(max(values))


def find_keys(
    targets: Sequence[Target],
    texts: Sequence[Sequence[str]],
    chosen: Sequence[int],
    right: Sequence[float],
) -> list[int]:
    """The key of every item, -1 where it cannot be told.

    A target is the text of an option or its 0-based place. A log does not say which, so the reading that fits more
    scores is taken: the chosen option is the key exactly where the score is 1. Where neither tells the key, a right
    answer does, and of two options a wrong one does.
    """
    readings = [_by_text(targets, texts), _by_place(targets, texts)]
    keys = max(readings, key=lambda r: _agreement(r, chosen, right))
    for i, (option, score) in enumerate(zip(chosen, right, strict=True)):
        if keys[i] < 0 and score == 1:
            keys[i] = option
        elif keys[i] < 0 and score == 0 and len(texts[i]) == 2:
            keys[i] = 1 - option
    return keys


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


def _agreement(keys: Sequence[int], chosen: Sequence[int], right: Sequence[float]) -> int:
    """Rows whose key goes with their score, less those whose key does not."""
    told = [(k == c) == (r == 1) for k, c, r in zip(keys, chosen, right, strict=True) if k >= 0]
    return 2 * sum(told) - len(told)
