"""`read_logs`: a folder of evaluation logs to Responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt._arguments import one_of
from mtlirt._parallel import as_done, check_jobs
from mtlirt._progress import count
from mtlirt.data import Responses
from mtlirt.errors import InputError
from mtlirt.readers import checks, detect, lm_eval, openllm
from mtlirt.readers.choices import Choices
from mtlirt.readers.detect import Found, Source
from mtlirt.readers.fields import LogError, Problems, clean
from mtlirt.readers.items import DOMAIN_BY, one_table
from mtlirt.readers.many_tables import read_tables
from mtlirt.readers.read_log import DROPPED, FILES, ReadLog, refuse
from mtlirt.readers.runs import Run, name_models, one_run_each, one_text_each, same_test
from mtlirt.readers.sheet import Sheet

_READERS = {
    detect.LM_EVAL: "lm_eval",
    detect.V2: "lm_eval",
    detect.V1: "openllm",
    detect.INSPECT: "inspect",
    detect.HELM: "helm",
    detect.EEE: "eee",
}
_SHOWN = 12
_ALSO = 4


@dataclass
class _Reading:
    """sheets : (file, kind, sheet).  problems : (file, line, what)."""

    sheets: list[tuple[str, str, Sheet]] = field(default_factory=list)
    problems: list[tuple[str, int, str]] = field(default_factory=list)


def read_logs(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str = "auto",
    metric: str | Sequence[str] | None = None,
    filter: str | Sequence[str] | None = None,
    domain_by: str = "task",
    model: str | None = None,
    failed: str = "missing",
    lenient: bool = False,
    n_jobs: int = 1,
) -> tuple[Responses, ReadLog]:
    """Read evaluation logs, however many, to one table of answers and a record of what was read.

    An item is a task and the hash of its text; where one run has the same text twice, its position too; in details of
    the first leaderboard, and in HELM runs without texts, the position alone. Of several runs of a model the one with
    most tasks, then most rows, then the latest counts. Epochs of an item are averaged, and their number kept as trials.
    Where a log has log-likelihoods or letters of the options, the options come along with key and number.

    Parameters
    ----------
    paths : files and folders; folders are searched to their depths.
    format : "auto" tells the kinds by content; or lm-eval, inspect, helm, eee, openllm-v1, openllm-v2, table.
    metric : names of the score to take, the first that a task has. By default the Open LLM Leaderboard's for its tasks,
        for HELM the first that the run names, else the only one.
    filter : names of lm-evaluation-harness filters, the first that a task with filters has. By default the only one.
    domain_by : what the domains are. Of the task mmlu_high_school_physics, "task": that; "subject": the log's own, or
        high_school_physics; "prefix": mmlu.
    model : name for logs that do not say whose they are; it does not rename the others.
    failed : whether an answer that ended with an error or at a limit is "missing" or "wrong"; Inspect and Every Eval
        Ever tell.
    lenient : leave out what cannot be read or contradicts the rest, and say so in the log; else it is refused.
    n_jobs : processes; the result is the same.

    Returns
    -------
    responses : Responses with items named <task>/<hash>, the same in every import, so that a fit scores later logs.
    log : ReadLog; print it, or save it.

    Raises
    ------
    InputError that lists every file and line that cannot be read, files of several kinds, several metrics or filters
    to choose from, two models of one name, models that took different versions of a test.

    >>> import json, pathlib, tempfile
    >>> row = {"doc_id": 0, "doc": {"question": "1 + 1?"}, "target": "2", "metrics": ["acc"], "acc": 1.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "samples_sums_2024-05-06T07-08-09.123456.jsonl"
    ...     _ = path.write_text(json.dumps(row))
    ...     responses, log = read_logs(folder, model="org/model")
    >>> responses
    Responses: 1 models x 1 items in 1 domains, 1 answers (0.0% missing)
    >>> print(log)
    read 1 lm-eval: 1 answers of 1 models
    scores: sums: acc
    """
    one_of("format", format, ("auto", *detect.FORMATS))
    one_of("domain_by", domain_by, DOMAIN_BY)
    one_of("failed", failed, ("missing", "wrong"))
    check_jobs(n_jobs)
    choices = Choices(_names("metric", metric), _names("filter", filter), failed == "wrong")
    found = detect.find(_paths(paths))
    sources = detect.only_kind(found, format, lenient)
    tables = [s.path for s in sources if s.kind == detect.TABLE]
    if tables and len(tables) == len(sources):
        _refuse_for_tables(metric=metric, filter=filter, model=model)
        return read_tables(tables, found, domain_by, lenient)
    if not sources and not found.broken and not found.results:
        raise InputError(_nothing(paths, format, found))
    reading = _read_all([s for s in sources if s.kind != detect.TABLE], choices, n_jobs)
    reading.problems += [(clean(str(path)), 0, what) for path, what in found.broken]
    reading.problems += [(clean(str(path)), 0, "is a plain table among logs") for path in tables]
    reading.problems += _lonely_results(found)
    refuse(_sentences(reading.problems), lenient, some=bool(reading.sheets))
    if not reading.sheets:
        raise InputError(_nothing(paths, format, found))
    return _assemble(reading, found, model, domain_by, lenient)


def _nothing(paths: Any, format: str, found: Found) -> str:
    """What to say where there is no log to read."""
    where = ", ".join(map(str, _paths(paths)))
    kinds = Counter(why.removeprefix("is of kind ") for _, why in found.passed_over if why.startswith("is of kind "))
    if format != "auto" and kinds:
        held = ", ".join(f"{n:,} of {kind}" for kind, n in kinds.items())
        return f"{where}: no log of kind {format}, but {held}; leave --format out, or name theirs"
    return f"{where}: no log of a known kind ({', '.join(detect.FORMATS)})"


def _refuse_for_tables(**given: object) -> None:
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: goes with logs, and these are plain tables")


def _names(what: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    told = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(told, (list, tuple)) or not all(isinstance(n, str) and n for n in told):
        raise InputError(f"{what} must be a name or names, not {names!r}")
    return tuple(told)


def _paths(paths: Any) -> list[Path]:
    told = [paths] if isinstance(paths, (str, Path)) else paths
    if not isinstance(told, (list, tuple)) or not told or not all(isinstance(p, (str, Path)) for p in told):
        raise InputError(f"paths must be a path or a list of paths, not {paths!r}")
    return [Path(p) for p in told]


def _read_all(sources: list[Source], choices: Choices, n_jobs: int) -> _Reading:
    readings: dict[int, _Reading] = {}
    with count("reading logs", len(sources)) as advance:
        for number, reading in as_done(_Reader(choices), sources, n_jobs):
            readings[number] = reading
            if advance is not None:
                advance(1)
    whole = _Reading()
    for number in sorted(readings):
        whole.sheets += readings[number].sheets
        whole.problems += readings[number].problems
    return whole


@dataclass(frozen=True)
class _Reader:
    choices: Choices

    def __call__(self, source: Source) -> _Reading:
        """The sheets of one log and what is wrong with it."""
        read: Callable[..., list[Sheet]] = import_module(f"mtlirt.readers.{_READERS[source.kind]}").read
        problems, sheets = Problems(), []
        try:
            sheets = read(source.path, self.choices, problems)
        except LogError as error:
            problems.add(0, str(error))
        except OSError as error:
            problems.add(0, f"cannot be read ({error.strerror})")
        file = clean(str(source.path))
        return _Reading([(file, source.kind, s) for s in sheets], [(file, line, what) for line, what in problems.found])


def _lonely_results(found: Found) -> list[tuple[str, int, str]]:
    """Results files of lm-evaluation-harness whose samples are not there."""
    runs = {(s.path.parent, lm_eval.run_of(s.path)) for s in found.sources if s.kind in (detect.LM_EVAL, detect.V2)}
    details = {openllm.run_of(s.path) for s in found.sources if s.kind == detect.V1} - {None}
    what = (
        "is a results file without its samples; the harness writes them with --log_samples, and they must be given too"
    )
    return [
        (clean(str(path)), 0, what)
        for path in found.results
        if (path.parent, lm_eval.run_of(path)) not in runs and openllm.run_of(path) not in details
    ]


def _sentences(problems: Sequence[tuple[str, int, str]]) -> list[str]:
    """One sentence for each thing that is wrong, with the first places where it was found."""
    places: dict[str, list[str]] = {}
    for file, line, what in problems:
        places.setdefault(what, []).append(f"{file}, line {line}" if line else file)
    told = []
    for what, where in places.items():
        also = "" if len(where) == 1 else f" (also {'; '.join(where[1:_ALSO])}"
        also += f"; and {len(where) - _ALSO:,} more)" if len(where) > _ALSO else ")" if also else ""
        told.append(f"{where[0]}: {what}{also}")
    return told


def _assemble(
    reading: _Reading, found: Found, model: str | None, domain_by: str, lenient: bool
) -> tuple[Responses, ReadLog]:
    named = name_models(reading.sheets, model)
    if model is not None and not any(run.guessed for run in named.kept):
        raise InputError(f"model {model!r}: is for logs that do not say whose they are, and all of these do")
    runs, warnings, passed_over = named.kept, named.warnings, []
    for choose in (one_run_each, same_test, one_text_each):
        chosen = choose(runs)
        refuse(chosen.conflicts, lenient, some=True)
        warnings += chosen.conflicts + chosen.warnings
        passed_over += chosen.passed_over
        if not chosen.kept:
            refuse(chosen.conflicts, lenient, some=False)
        runs = chosen.kept
    table = one_table(runs, domain_by)
    columns: dict[str, Any] = {
        name: name for name in ("option", "key", "n_options", "logprobs", "trials") if name in table.rows
    }
    responses = Responses.from_long(table.rows, **columns)
    stated = checks.summaries(runs, {file for file, _, _ in reading.problems})
    warnings += table.warnings + checks.of_summaries(stated) + _unread_tasks(found, reading.sheets)
    warnings += [f"{r.file}: {note}" for r in runs for note in r.sheet.notes]
    warnings += checks.partial_runs(runs) + checks.of_answers(responses)
    log = ReadLog(
        files=_files(runs, passed_over),
        dropped=_dropped(reading, runs, passed_over, found),
        summaries=stated,
        missing=checks.missing(responses),
        warnings=tuple(warnings),
    )
    return responses.with_notes(*warnings), log


def _unread_tasks(found: Found, sheets: Sequence[tuple[str, str, Sheet]]) -> list[str]:
    """A warning for each results file that has tasks without samples."""
    read: dict[tuple[Path, str], set[str]] = {}
    for file, _, sheet in sheets:
        read.setdefault((Path(file).parent, sheet.run), set()).add(sheet.task)
    warnings = []
    for path in found.results:
        tasks = read.get((path.parent, lm_eval.run_of(path)))
        if tasks is None:
            continue
        try:
            unread = [t for t in lm_eval.tasks_of(lm_eval.read_results(path)) if t not in tasks]
        except LogError:
            continue
        if unread:
            warnings.append(f"{path}: has results of {', '.join(unread[:_SHOWN])}, whose samples are not there")
    return warnings


def _files(runs: list[Run], passed_over: list[tuple[Run, str]]) -> pd.DataFrame:
    rows = [(run, True, "") for run in runs] + [(run, False, reason) for run, reason in passed_over]
    told = [
        (
            r.file,
            r.kind,
            r.model,
            r.sheet.task,
            r.sheet.run,
            r.sheet.metric,
            r.sheet.filter,
            len(r.sheet.rows),
            used,
            why,
        )
        for r, used, why in rows
    ]
    return pd.DataFrame(told, columns=list(FILES)).sort_values(["file", "task"], ignore_index=True)


def _dropped(reading: _Reading, runs: list[Run], passed_over: list[tuple[Run, str]], found: Found) -> pd.DataFrame:
    """What was left out; rows is missing where nobody knows how many there were."""
    rows: list[tuple[str, int, str, int | None]] = [
        (file, line, what, 1 if line else None) for file, line, what in reading.problems
    ]
    rows += [(r.file, 0, why, n) for r in runs for why, n in r.sheet.dropped.items()]
    rows += [(r.file, 0, why, len(r.sheet.rows)) for r, why in passed_over]
    rows += [(clean(str(path)), 0, why, None) for path, why in found.passed_over]
    return pd.DataFrame(rows, columns=list(DROPPED)).astype({"rows": "Int64"})
