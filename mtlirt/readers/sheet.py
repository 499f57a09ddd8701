"""What every reader makes of a log: the answers of one model to one task, in one form."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from numpy.typing import ArrayLike

from mtlirt.readers.fields import LogError, clean

REPEATED = "rows that repeat an item; the last is kept"
_MOST_ITEMS = 2**53
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_HEX = re.compile(r"[0-9a-fA-F]{16,}")
_COLUMNS = {
    "position": "str",
    "digest": "uint64",
    "prompt": "uint64",
    "layout": "uint64",
    "subject": "object",
    "score": "float64",
    "trials": "int32",
    "option": "int16",
    "key": "int16",
    "n_options": "int16",
    "logprobs": "object",
}


class Answer(NamedTuple):
    """One answer. Hashes are 64-bit numbers, 0 where unknown; options are 0-based, -1 where unknown.

    position : place or id of the item in its data set.
    digest : hash of the item's text.
    score : correctness in [0, 1]; NaN: not scored.
    subject : finer name than the task's, as the log has it.
    prompt : hash of what the model was shown.
    layout : hash of the options in the order shown.
    logprobs : log-likelihood of every option.
    epoch : runs of one item have different epochs and are averaged.
    """

    position: str
    digest: int
    score: float
    subject: str | None = None
    prompt: int = 0
    layout: int = 0
    option: int = -1
    key: int = -1
    n_options: int = 0
    logprobs: Sequence[float] | None = None
    epoch: int | str = 1


@dataclass(frozen=True)
class Summary:
    """A log's own mean of its scores.

    value : the mean.  n : number of items it is over, None where that is not said, or absurd.  where : the file.
    """

    value: float
    n: int | None
    where: str

    def __post_init__(self) -> None:
        if self.n is not None and not 0 <= self.n <= _MOST_ITEMS:
            object.__setattr__(self, "n", None)


@dataclass(frozen=True)
class Sheet:
    """Answers of one model to one task.

    Attributes
    ----------
    task, metric, filter : what was asked, and which of the log's scores was taken.
    run : sorts the runs of a model by time.
    model : name in the log, None where it has none; then `folder` may name it.
    origin : runs of a model with the same origin are re-runs of one another.
    unit : tasks that are taken from the same run; the task itself, or a group of tasks.
    settings : what the model was run with, where the log tells; runs that differ in it are no re-runs.
    test : facts, such as the version, in which all models must agree, None where unknown.
    by_position : whether the position alone says which item it is, and the digest is only compared.
    digest_of : what was hashed; digests of different things are not compared.
    rows : frame of one row per item, columns as in `Answer`, with `trials` for the number of epochs.
    summary : the log's own mean, or None.
    dropped : what was left out, with counts of rows.
    notes : warnings about this log.
    """

    task: str
    metric: str
    filter: str
    run: str
    model: str | None
    folder: str | None
    origin: str
    unit: str
    test: dict[str, str | None]
    rows: pd.DataFrame
    settings: str | None = None
    by_position: bool = False
    digest_of: str = ""
    summary: Summary | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("task", "metric", "filter", "run", "model", "folder"):
            text = getattr(self, name)
            object.__setattr__(self, name, text if text is None else _CONTROL.sub(" ", clean(text)))
        if not self.task.strip() or (self.model is not None and not self.model.strip()):
            raise LogError("names its task or its model by blanks")


def digest(*parts: Any) -> int:
    """64-bit hash of texts, or of JSON values."""
    text = "\x1f".join(p if isinstance(p, str) else json.dumps(p, sort_keys=True, default=str) for p in parts)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def from_hash(text: str) -> int:
    """A 64-bit number for a hash that a log gives as text."""
    return int(text[:16], 16) if _HEX.fullmatch(text) else digest(text)


def tabulate(answers: Sequence[Answer]) -> tuple[pd.DataFrame, dict[str, int]]:
    """One row per item, that is, position and text: of repeated rows the last counts, epochs are averaged.

    Also counts of what was left out.
    """
    scored = [a for a in answers if not math.isnan(a.score)]
    last = {(a.position, a.digest, str(a.epoch)): a for a in scored}
    runs: dict[tuple[str, int], list[Answer]] = {}
    for answer in last.values():
        runs.setdefault((answer.position, answer.digest), []).append(answer)
    counts = {
        "answers without a score": len(answers) - len(scored),
        REPEATED: len(scored) - len(last),
    }
    rows = [epochs[0] if len(epochs) == 1 else _average(epochs) for epochs in runs.values()]
    columns: dict[str, Sequence[Any]] = {name: [getattr(a, name) for a in rows] for name in Answer._fields}
    columns["trials"] = [len(epochs) for epochs in runs.values()]
    columns["position"] = [clean(a.position) for a in rows]
    columns["subject"] = [a.subject and clean(a.subject) for a in rows]
    frame = pd.DataFrame({name: pd.Series(columns[name], dtype=kind) for name, kind in _COLUMNS.items()})
    return frame, {reason: n for reason, n in counts.items() if n}


def _average(epochs: list[Answer]) -> Answer:
    """The mean score; an option belongs to a single run, and so does the key where the order of options changes."""
    mean = sum(e.score for e in epochs) / len(epochs)
    averaged = epochs[0]._replace(score=mean, option=-1, logprobs=None)
    alike = len({(e.layout, e.key, e.n_options) for e in epochs}) == 1
    return averaged if alike else averaged._replace(layout=0, key=-1, n_options=0)


def most_common(key: ArrayLike, values: ArrayLike) -> pd.Series:
    """The value that each key has most often, indexed by key; of equally frequent ones the first seen."""
    counts = pd.DataFrame({"key": key, "value": values}).groupby(["key", "value"], sort=False).size()
    ranked = counts.sort_values(ascending=False, kind="stable").reset_index("value")["value"]
    return ranked[~ranked.index.duplicated()]
