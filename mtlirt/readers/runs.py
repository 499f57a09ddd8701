"""Whose answers a sheet holds, and which of several runs counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from mtlirt.readers.sheet import Sheet, most_common


@dataclass(frozen=True)
class Run:
    """A sheet with its file, its kind of log, and the model it belongs to."""

    file: str
    kind: str
    model: str
    sheet: Sheet

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
    runs, guessed = [], Counter[str]()
    sheets = list(sheets)
    kinds = Counter(task for task, _ in {(sheet.task, kind) for _, kind, sheet in sheets})
    for file, kind, sheet in sheets:
        told = sheet.model or (sheet.folder if sheet.folder_is_model else None) or model
        if told is None:
            told = sheet.folder or "unknown"
            guessed[told] += 1
        named = sheet if kinds[sheet.task] == 1 else replace(sheet, task=f"{kind}:{sheet.task}")
        runs.append(Run(file, kind, told, named))
    warnings = [
        f"{n:,} logs do not name their model; it is called {name!r} after their folder (--model names it)"
        for name, n in guessed.items()
    ]
    return Chosen(runs, warnings=warnings)


def one_run_each(runs: Sequence[Run]) -> Chosen:
    """One run for each model and unit of tasks: the one with most tasks, then most rows, then the latest.

    Runs of one origin are re-runs. Runs of different origins that answer an item differently are a conflict: two models
    under one name, unless somebody says otherwise.
    """
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.model, run.kind, run.sheet.unit), []).append(run)
    chosen = Chosen([])
    for group in groups.values():
        ids = {run.run_id for run in group}
        best = max(ids, key=lambda i: _rank([r for r in group if r.run_id == i], i))
        if len({origin for origin, _ in ids}) > 1:
            chosen.conflicts += _conflicts(group, best)
        kept: dict[str, Run] = {}
        for run in group:
            if run.run_id != best:
                chosen.passed_over.append((run, f"another run of {run.model!r} has more rows, or as many and is later"))
            elif run.sheet.task in kept and len(run.sheet.rows) < len(kept[run.sheet.task].sheet.rows):
                chosen.passed_over.append((run, f"another log of the same run, {kept[run.sheet.task].file}, has more"))
            else:
                if run.sheet.task in kept:
                    chosen.passed_over.append((kept[run.sheet.task], f"{run.file} is of the same run and has no less"))
                kept[run.sheet.task] = run
        chosen.kept += kept.values()
    return chosen


def _rank(runs: list[Run], run_id: tuple[str, str]) -> tuple[int, int, str, str]:
    return len({r.sheet.task for r in runs}), sum(len(r.sheet.rows) for r in runs), run_id[1], run_id[0]


def _conflicts(group: list[Run], best: tuple[str, str]) -> list[str]:
    """A sentence for every task in which the best run and one of another origin differ in an item's score."""
    found = []
    mine = {r.sheet.task: r for r in group if r.run_id == best}
    for run in group:
        own = mine.get(run.sheet.task)
        if own is None or run.sheet.origin == own.sheet.origin:
            continue
        both = own.sheet.rows.merge(run.sheet.rows, on=["position", "digest"], suffixes=("", "_other"))
        differ = int((both["score"] != both["score_other"]).sum())
        if differ:
            found.append(
                f"model {run.model!r}, task {run.sheet.task!r}: {own.file} and {run.file} answer {differ:,} of "
                f"{len(both):,} common items differently; import one of them with --model, or remove it"
            )
    return found


def same_test(runs: Sequence[Run]) -> Chosen:
    """Runs of a task whose facts (version, number of shots) agree with most models'; the others are conflicts."""
    tasks: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        tasks.setdefault((run.kind, run.sheet.task), []).append(run)
    chosen = Chosen([])
    for (_, task), group in tasks.items():
        kept = group
        facts = {"metric": None, "filter": None} | {name: None for r in group for name in r.sheet.test}
        for name in facts:
            values = {r.file: _fact(r, name) for r in kept}
            counts = Counter(v for v in values.values() if v is not None)
            if len(counts) < 2:
                continue
            common = counts.most_common(1)[0][0]
            told = "; ".join(
                f"{value} in {n:,} ({next(r.model for r in kept if values[r.file] == value)}{', ...' if n > 1 else ''})"
                for value, n in counts.most_common()
            )
            chosen.conflicts.append(f"task {task!r}: {name} differs, so the tests do: {told}; import them apart")
            odd = [r for r in kept if values[r.file] not in (common, None)]
            chosen.passed_over += [(r, f"{name} {values[r.file]} where most have {common}") for r in odd]
            kept = [r for r in kept if values[r.file] in (common, None)]
        chosen.kept += kept
    return chosen


def _fact(run: Run, name: str) -> str | None:
    return getattr(run.sheet, name) if name in ("metric", "filter") else run.sheet.test.get(name)


def one_text_each(runs: Sequence[Run]) -> Chosen:
    """Where the position says which item it is, the texts at a position must agree with most models'."""
    tasks: dict[tuple[str, str, str], list[Run]] = {}
    chosen = Chosen([])
    for run in runs:
        if run.sheet.by_position:
            tasks.setdefault((run.kind, run.sheet.task, run.sheet.digest_of), []).append(run)
        else:
            chosen.kept.append(run)
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
