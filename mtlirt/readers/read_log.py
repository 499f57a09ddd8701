"""`ReadLog`: what was read, what was left out, and what a careful reader would want to know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt.data.store import replacing
from mtlirt.errors import InputError

FRAMES = ("files", "dropped", "summaries", "missing")
FILES = ("file", "format", "model", "task", "run", "metric", "filter", "rows", "used", "reason")
DROPPED = ("file", "line", "reason", "rows")
_SHOWN = 8
_LISTED = 12


@dataclass(frozen=True)
class ReadLog:
    """The record of an import.

    Attributes
    ----------
    files : frame of one row per log: file, format, model, task, run, metric, filter, rows, used (whether its answers
        count) and reason (why not).
    dropped : frame of what was left out: file, line (0: not one line), reason, rows.
    summaries : frame of the logs' own means: file, model, task, metric, source (the file that states it), stated,
        found, n_stated, n_found, verdict ("confirmed", "differs", or "not confirmed" where rows are missing).
    missing : frame of the models' gaps by domain: model, domain, n_items, n_answers, share_missing.
    warnings : sentences.

    >>> from mtlirt import read_logs
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (pathlib.Path(folder) / "answers.csv").write_text("model,item,score\\nx,q1,1\\ny,q1,0\\n")
    ...     _, log = read_logs(folder)
    >>> log.files[["format", "rows", "used"]]
      format  rows  used
    0  table     2  True
    """

    files: pd.DataFrame
    dropped: pd.DataFrame
    summaries: pd.DataFrame
    missing: pd.DataFrame
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        used = self.files[self.files["used"]]
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.files["format"].value_counts().items())
        models = used.loc[used["model"] != "", "model"].nunique()
        text = [f"read {kinds}: {int(used['rows'].sum()):,} answers" + (f" of {models:,} models" if models else "")]
        choices = used[used["task"] != ""].groupby("task", sort=False)[["metric", "filter"]].first()
        named = [f"{task}: {m}" + (f" ({f})" if f != "none" else "") for task, m, f in choices.itertuples()]
        text += [f"scores: {_some(named)}"] if named else []
        if len(self.dropped):
            by = self.dropped.assign(rows=self.dropped["rows"].fillna(1)).groupby("reason", sort=False)["rows"].sum()
            told = by.sort_values(ascending=False, kind="stable")
            text.append("left out: " + _some([f"{n:,} ({reason})" for reason, n in told.items()]))
        verdicts = self.summaries["verdict"].value_counts()
        if len(verdicts):
            text.append("the logs' own means: " + ", ".join(f"{n:,} {v}" for v, n in verdicts.items()))
        text += [f"warning: {w}" for w in self.warnings[:_SHOWN]]
        if len(self.warnings) > _SHOWN:
            text.append(f"warning: and {len(self.warnings) - _SHOWN:,} more")
        return "\n".join(text)

    def record(self) -> dict[str, Any]:
        """All of it as plain lists and dicts: the frames as lists of rows, and the warnings."""
        frames = {name: json.loads(getattr(self, name).to_json(orient="records")) for name in FRAMES}
        return {**frames, "warnings": list(self.warnings)}

    def save(self, path: str | Path) -> None:
        """Write `record` as JSON."""
        path = Path(path)
        try:
            with replacing(path) as stage:
                stage.write_text(json.dumps(self.record(), indent=1), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _some(parts: list[str]) -> str:
    return "; ".join(parts[:_SHOWN]) + (f"; and {len(parts) - _SHOWN:,} more" if len(parts) > _SHOWN else "")


def refuse(told: list[str], lenient: bool, some: bool) -> None:
    """InputError that lists what is wrong, unless it is forgiven and some answers are left."""
    if not told or (lenient and some):
        return
    end = "; lenient reading (--lenient) goes on without" if some else ""
    if len(told) == 1:
        raise InputError(told[0] + end)
    more = [f"and {len(told) - _LISTED:,} more"] if len(told) > _LISTED else []
    raise InputError(f"{len(told):,} things cannot be used{end}:\n  " + "\n  ".join(told[:_LISTED] + more))
