"""Options as logs name them, and whether option and key agree with the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtlirt.readers.sheet import Answer

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def by_letter(named: Any, n_options: int) -> int:
    """0-based place of the option that a letter names, -1 for anything else."""
    letter = named.strip() if isinstance(named, str) else ""
    place = _LETTERS.find(letter) if len(letter) == 1 else -1
    return place if place < n_options else -1


def agreeing(answers: Sequence[Answer], metric: str) -> tuple[list[Answer], list[str]]:
    """The answers, without options where these contradict the score, and a note on how many there were.

    The chosen option is the key exactly where the score is 1; else one of the three does not mean what it seems to.
    """
    against = [a.key >= 0 and a.score >= 0 and (a.option == a.key) != (a.score == 1) for a in answers]
    if not any(against):
        return list(answers), []
    kept = [
        a._replace(option=-1, key=-1, n_options=0, logprobs=None) if bad else a
        for a, bad in zip(answers, against, strict=True)
    ]
    return kept, [f"options left out where they contradict {metric!r}: {sum(against):,} rows"]
