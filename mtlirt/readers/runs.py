"""Whose answers a sheet holds, and which of several runs counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from mtlirt.readers.sheet import Sheet, most_common


@dataclass(frozen=True)
class Run:
    """A sheet with its file, its kind of log, and the model it belongs to; guessed: the log does not name the model."""

    file: str
    kind: str
    model: str
    sheet: Sheet
    guessed: bool = False

    @property
    def run_id(self) -> tuple[str, str]:
        """What sheets of one run share."""
        return self.sheet.origin, self.sheet.run


@dataclass
class Chosen:
    """kept : runs that count.  passed_over : the others, each with the reason.  conflicts : sentences that say which
    runs contradict one another.  warnings : further sentences."""

    kept: list[Run]
    passed_over: list[tuple[Run, str]] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def name_models(sheets: Iterable[tuple[str, str, Sheet]], model: str | None) -> Chosen:
    """The model of every (file, kind, sheet): by the log, else `model`, else the folder it lies in.

    A task that was read from several kinds of log is another task in each.
    """
    runs, by_folder = [], Counter[str]()
    sheets = list(sheets)
    kinds = Counter(task for task, _ in {(sheet.task, kind) for _, kind, sheet in sheets})
    for file, kind, sheet in sheets:
        told = sheet.model or model
        if told is None:
            told = sheet.folder or "unknown"
            by_folder[told] += 1
        named = sheet if kinds[sheet.task] == 1 else replace(sheet, task=f"{kind}:{sheet.task}")
        runs.append(Run(file, kind, told, named, guessed=sheet.model is None))
    warnings = [
        f"{n:,} logs do not name their model; it is called {name!r} after their folder (--model names it)"
        for name, n in by_folder.items()
    ]
    return Chosen(runs, warnings=warnings)


def one_run_each(runs: Sequence[Run]) -> Chosen:
    """One run for each model and unit of tasks: the one with most tasks, then most rows, then the latest.

    Runs of one origin are re-runs, unless they were run with other settings. Runs of different origins, or of models
    that only a folder names, are a conflict if they answer an item differently: two models under one name.
    """
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[Run]]] = {}
    for run in runs:
        by_id = groups.setdefault((run.model, run.kind, run.sheet.unit), {})
        by_id.setdefault(run.run_id, []).append(run)
    chosen = Chosen([])
    for by_id in groups.values():
        best = max(by_id, key=lambda run_id: _rank(by_id[run_id], run_id))
        kept: dict[str, Run] = {}
        for run in sorted(by_id[best], key=lambda r: len(r.sheet.rows), reverse=True):
            if run.sheet.task in kept:
                first = kept[run.sheet.task]
                chosen.conflicts += _conflict(first, run)
                chosen.passed_over.append((run, f"{first.file} is of the same run and task, and has no less"))
            else:
                kept[run.sheet.task] = run
        chosen.kept += [r for r in by_id[best] if kept[r.sheet.task] is r]
        for run in (r for run_id, others in by_id.items() if run_id != best for r in others):
            chosen.passed_over.append((run, f"another run of {run.model!r} has more rows, or as many and is later"))
            own = kept.get(run.sheet.task)
            if own is None:
                continue
            if own.sheet.settings != run.sheet.settings:
                chosen.conflicts += _other_settings(own, run)
            elif own.sheet.origin != run.sheet.origin or run.guessed:
                chosen.conflicts += _conflict(own, run)
    return chosen


def _rank(runs: list[Run], run_id: tuple[str, str]) -> tuple[int, int, str, str]:
    """Number of tasks, of rows, then the time, then the place; a task that is there twice counts once."""
    rows: dict[str, int] = {}
    for run in runs:
        rows[run.sheet.task] = max(rows.get(run.sheet.task, 0), len(run.sheet.rows))
    return len(rows), sum(rows.values()), run_id[1], run_id[0]


def _conflict(one: Run, other: Run) -> list[str]:
    """A sentence if two logs of a model and task answer an item differently."""
    both = pd.DataFrame({"one": _by_item(one.sheet), "other": _by_item(other.sheet)}).dropna()
    differ = int((both["one"] != both["other"]).sum())
    if not differ:
        return []
    return [
        f"model {one.model!r}, task {one.sheet.task!r}: {one.file} and {other.file} answer {differ:,} of {len(both):,} "
        "common items differently; rename or remove one of them"
    ]


def _by_item(sheet: Sheet) -> pd.Series:
    """Scores by what identifies an item; equal texts are numbered."""
    if sheet.by_position:
        return sheet.rows.set_index("position")["score"]
    rows = sheet.rows.assign(number=sheet.rows.groupby("digest").cumcount())
    return rows.set_index(["digest", "number"])["score"]


def _other_settings(one: Run, other: Run) -> list[str]:
    """A sentence if two runs of a model say what it was run with, and differ."""
    if one.sheet.settings is None or other.sheet.settings is None:
        return []
    return [
        f"model {one.model!r}, task {one.sheet.task!r}: {one.file} was run with {one.sheet.settings}, {other.file} "
        f"with {other.sheet.settings}; rename or remove one of them"
    ]


def same_test(runs: Sequence[Run]) -> Chosen:
    """Runs of a task whose facts (version, number of shots) agree with most models'; the others are conflicts."""
    tasks: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        tasks.setdefault((run.kind, run.sheet.task), []).append(run)
    chosen = Chosen([])
    for (_, task), group in tasks.items():
        kept = group
        names = dict.fromkeys(["metric", "filter", *(name for r in group for name in r.sheet.test)])
        for name in names:
            values = [_fact(r, name) for r in kept]
            counts = Counter(v for v in values if v is not None)
            if counts and None in values:
                unknown = values.count(None)
                chosen.warnings.append(f"task {task!r}: {unknown:,} of {len(kept):,} logs do not say their {name}")
            if len(counts) < 2:
                continue
            ranked = sorted(counts, key=lambda value: (-counts[value], value))
            told = "; ".join(f"{v} in {counts[v]:,} ({_first(kept, values, v)})" for v in ranked)
            chosen.conflicts.append(f"task {task!r}: {name} differs, so the tests do: {told}; import them apart")
            odd = [(r, v) for r, v in zip(kept, values, strict=True) if v not in (ranked[0], None)]
            chosen.passed_over += [(r, f"{name} {v} where most have {ranked[0]}") for r, v in odd]
            kept = [r for r, v in zip(kept, values, strict=True) if v in (ranked[0], None)]
        chosen.kept += kept
    return chosen


def _first(runs: list[Run], values: list[str | None], value: str) -> str:
    """The first model with this value, and dots if there are more."""
    models = [r.model for r, v in zip(runs, values, strict=True) if v == value]
    return models[0] + (", ..." if len(models) > 1 else "")


def _fact(run: Run, name: str) -> str | None:
    return getattr(run.sheet, name) if name in ("metric", "filter") else run.sheet.test.get(name)


def one_text_each(runs: Sequence[Run]) -> Chosen:
    """Where the position says which item it is, the texts at a position must agree with most models'.

    Only hashes of one kind can be compared; where a task has several kinds, that is said.
    """
    tasks: dict[tuple[str, str, str], list[Run]] = {}
    chosen = Chosen([])
    for run in runs:
        if run.sheet.by_position:
            tasks.setdefault((run.kind, run.sheet.task, run.sheet.digest_of), []).append(run)
        else:
            chosen.kept.append(run)
    kinds: dict[str, set[str]] = {}
    for _, task, digest_of in tasks:
        kinds.setdefault(task, set()).add(digest_of)
    chosen.warnings += [
        f"task {task!r}: the logs identify their texts by {' and by '.join(sorted(told))}, which cannot be compared; "
        "items are matched by position alone"
        for task, told in kinds.items()
        if len(told) > 1
    ]
    for (_, task, _), group in tasks.items():
        frames = [r.sheet.rows[["position", "digest"]].assign(run=i) for i, r in enumerate(group)]
        rows = pd.concat(frames, ignore_index=True)
        common = most_common(rows["position"], rows["digest"])
        odd = rows[rows["digest"] != rows["position"].map(common)].groupby("run").size()
        for i, run in enumerate(group):
            if i in odd.index:
                what = f"{odd[i]:,} of its {len(run.sheet.rows):,} positions hold another text than in most models"
                chosen.conflicts.append(f"model {run.model!r}, task {task!r} ({run.file}): {what}: it is another test")
                chosen.passed_over.append((run, what))
            else:
                chosen.kept.append(run)
    return chosen
