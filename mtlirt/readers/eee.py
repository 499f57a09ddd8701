"""Every Eval Ever: <uuid>_samples.jsonl, one row per sample and metric, and the aggregate <uuid>.json beside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Field, LogError, Problems, each, in_utc, lines, load, number, take
from mtlirt.readers.options import agreeing, by_letter
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, from_hash, tabulate

ROW = (
    Field("model", "model_id", "text", required=True),
    Field("task", "evaluation_name", "text", required=True),
    Field("result", "evaluation_result_id", "text"),
    Field("id", "sample_id", "text", required=True),
    Field("hash", "sample_hash", "text"),
    Field("raw", "input.raw", "text", required=True),
    Field("formatted", "input.formatted", "text"),
    Field("reference", "input.reference", "any"),
    Field("choices", "input.choices", "list"),
    Field("attribution", "answer_attribution", "list"),
    Field("score", "evaluation.score", "any"),
    Field("correct", "evaluation.is_correct", "flag"),
    Field("error", "error", "any"),
    Field("subject", "metadata.subject", "any"),
    Field("category", "metadata.category", "any"),
)
AGGREGATE = (
    Field("model", "model_info.id", "text"),
    Field("evaluated", "evaluation_timestamp", "text"),
    Field("retrieved", "retrieved_timestamp", "text"),
    Field("library", "eval_library.name", "text"),
    Field("results", "evaluation_results", "list"),
    Field("algorithm", "detailed_evaluation_results.hash_algorithm", "text"),
    Field("checksum", "detailed_evaluation_results.checksum", "text"),
    Field("rows", "detailed_evaluation_results.total_rows", "whole"),
)
RESULT = (
    Field("id", "evaluation_result_id", "text"),
    Field("task", "evaluation_name", "text", required=True),
    Field("metric_id", "metric_config.metric_id", "text"),
    Field("metric_name", "metric_config.metric_name", "text"),
    Field("lower", "metric_config.lower_is_better", "flag"),
    Field("low", "metric_config.min_score", "number"),
    Field("high", "metric_config.max_score", "number"),
    Field("score", "score_details.score", "any"),
)
_END = "_samples.jsonl"
_NO_METRIC = "score"
_FAILED = "rows that ended with an error"
# options are few; a longer list of choices is something else
_MOST = 1000
_SAME = 1e-3  # of means that are rounded to three digits


@dataclass(frozen=True)
class _Row:
    """score : as the log has it, None if it is no number.  correct : the log's own verdict."""

    line: int
    model: str
    task: str
    result: str | None
    answer: Answer
    score: float | None
    correct: bool | None
    failed: bool


@dataclass(frozen=True)
class _Result:
    """One result of the aggregate: a metric of a task, the range of its scores and its mean."""

    id: str | None
    task: str
    metric: str
    lower_is_better: bool
    low: float
    high: float
    score: float | None


@dataclass(frozen=True)
class _Aggregate:
    path: Path
    model: str | None
    library: str | None
    run: str
    results: list[_Result]
    rows: int | None


def read(path: Path, choices: Choices, problems: Problems) -> list[Sheet]:
    """The answers of one samples file, a sheet for every model and evaluation.

    A row that tells of an error is left out, or is wrong with `choices.failed_is_wrong`.
    """
    aggregate = _aggregate(path, problems)
    rows = each(lines(path, problems), _row, problems)
    if not rows:
        raise LogError("has no row that can be read" if problems.found else "is empty")
    models = {r.model for r in rows}
    if aggregate.model is not None and models != {aggregate.model}:
        named = ", ".join(sorted(models)[:3])
        problems.add(0, f"is of model {named}, but {aggregate.path.name} is of {aggregate.model}")
    groups: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        groups.setdefault((row.model, row.task), []).append(row)
    sheets, failed = [], []
    for (_, task), group in groups.items():
        try:
            sheets.append(_sheet(path, group, aggregate, len(groups) == 1, choices, problems))
        except LogError as error:
            failed.append(f"evaluation {task!r} {error}")
    if not sheets:
        raise LogError("; ".join(failed[:3]))
    for reason in failed:
        problems.add(0, reason)
    return sheets


def _sheet(
    path: Path, rows: list[_Row], aggregate: _Aggregate, alone: bool, choices: Choices, problems: Problems
) -> Sheet:
    task = rows[0].task
    results = _results_of(rows, aggregate)
    named = {id(r): _metric(r, results) for r in rows}
    lower = {r.metric for r in results if r.lower_is_better}
    names = dict.fromkeys(named[id(r)] for r in rows)
    metric = choices.metric(task, [name for name in names if name not in lower])
    result = next((r for r in results if r.metric == metric), None)
    dropped: Counter[str] = Counter()
    kept = _without_failed([r for r in rows if named[id(r)] == metric], choices, dropped)
    answers, notes = _answers(kept, result, problems)
    if not answers:
        raise LogError(f"has no row with metric {metric!r} that can be used")
    answers, contradictions = agreeing(answers, metric)
    table, repeated = tabulate(answers)
    n = aggregate.rows if alone and len(names) == 1 else None
    return Sheet(
        task=task,
        metric=metric,
        filter="none",
        run=aggregate.run,
        model=rows[0].model,
        folder=None,
        origin=str(path.parent),
        unit=task,
        test={"evaluation library": aggregate.library},
        rows=table,
        summary=None if result is None else _summary(result, n, aggregate.path.name),
        dropped=dict(+dropped) | repeated,
        notes=(*notes, *contradictions),
    )


def _row(line: int, record: Any) -> _Row:
    values = take(ROW, record)
    references = values["reference"] if isinstance(values["reference"], list) else [values["reference"]]
    references = [r for r in references if isinstance(r, str)]
    options = values["choices"] or []
    if not all(isinstance(text, str) for text in options):
        raise LogError("'input.choices' holds something other than texts")
    answer = Answer(
        position=values["id"],
        digest=from_hash(values["hash"]) if values["hash"] else digest(values["raw"], *references),
        score=float(values["correct"] or False),
        subject=next((s for s in (values["subject"], values["category"]) if isinstance(s, str)), None),
        prompt=digest(values["formatted"] or values["raw"]),
        layout=digest(*options) if options else 0,
    )
    return _Row(
        line=line,
        model=values["model"],
        task=values["task"],
        result=values["result"],
        answer=_with_options(answer, options, references, values["attribution"] or []),
        score=number(values["score"]),
        correct=values["correct"],
        failed=bool(values["error"]),
    )


def _with_options(answer: Answer, options: list[str], references: list[str], attribution: list[Any]) -> Answer:
    """Options, if one reference names the key and the last final answer an option or nothing at all."""
    final = [a for a in attribution if isinstance(a, dict) and a.get("is_terminal") is True]
    named = final[-1].get("extracted_value") if final else None
    key = _place(references[0], options) if len(references) == 1 and 1 < len(options) <= _MOST else -1
    option = _place(named, options)
    if key < 0 or (option < 0 and named):
        return answer
    return answer._replace(option=option, key=key, n_options=len(options))


def _place(named: Any, options: list[str]) -> int:
    """0-based place of the option with this text, or with this letter; -1 if there is none."""
    same = [i for i, text in enumerate(options) if isinstance(named, str) and text.strip() == named.strip()]
    return same[0] if len(same) == 1 else by_letter(named, len(options))


def _aggregate(path: Path, problems: Problems) -> _Aggregate:
    """The aggregate, compared with the samples; an empty one if there is none."""
    beside = path.with_name(path.name.removesuffix(_END).removesuffix(".jsonl") + ".json")
    empty = _Aggregate(beside, None, None, "", [], None)
    if not beside.exists():
        return empty
    try:
        values = take(AGGREGATE, load(beside))
    except LogError as error:
        problems.add(0, f"its {beside.name} {error}")
        return empty
    results = []
    for place, record in enumerate(values["results"] or (), start=1):
        try:
            results.append(_result(take(RESULT, record)))
        except LogError as error:
            problems.add(0, f"its {beside.name}, result {place}: {error}")
    _compare(path, beside.name, values, problems)
    library = None if values["library"] in (None, "unknown") else values["library"]
    time = in_utc(values["evaluated"] or values["retrieved"])
    return _Aggregate(beside, values["model"], library, time, results, values["rows"])


def _result(values: dict[str, Any]) -> _Result:
    low, high = number(values["low"]), number(values["high"])
    known = low is not None and high is not None and low < high
    return _Result(
        id=values["id"],
        task=values["task"],
        metric=values["metric_id"] or values["metric_name"] or values["id"] or _NO_METRIC,
        lower_is_better=bool(values["lower"]),
        low=low if known and low is not None else 0.0,
        high=high if known and high is not None else 1.0,
        score=number(values["score"]),
    )


def _compare(path: Path, beside: str, values: dict[str, Any], problems: Problems) -> None:
    """Whether the samples file is the one that the aggregate tells of."""
    hashed, count = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            for raw in file:
                hashed.update(raw)
                count += bool(raw.strip())
    except OSError as error:
        raise LogError(f"cannot be read ({error.strerror})") from error
    if values["rows"] is not None and values["rows"] != count:
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        problems.add(0, f"holds {rows}, {beside} says {values['rows']:,}: it is cut off, or another file")
    by_sha256 = (values["algorithm"] or "").lower().replace("-", "") == "sha256"
    if by_sha256 and values["checksum"] is not None and values["checksum"].lower() != hashed.hexdigest():
        problems.add(0, f"has another checksum than {beside} says: it was changed, or is another file")


def _results_of(rows: list[_Row], aggregate: _Aggregate) -> list[_Result]:
    """Results that these rows are of; those with one name are told apart by their ids."""
    ids = {r.result for r in rows if r.result is not None}
    own = [r for r in aggregate.results if r.id in ids] or [r for r in aggregate.results if r.task == rows[0].task]
    count = Counter(r.metric for r in own)
    return [replace(r, metric=r.id) if count[r.metric] > 1 and r.id is not None else r for r in own]


def _metric(row: _Row, results: list[_Result]) -> str:
    if row.result is not None:
        return next((r.metric for r in results if r.id == row.result), row.result)
    if len(results) > 1:
        raise LogError(
            f"has {len(results):,} metrics, and rows without 'evaluation_result_id' to say of which they are"
        )
    return results[0].metric if results else _NO_METRIC


def _without_failed(rows: list[_Row], choices: Choices, dropped: Counter[str]) -> list[_Row]:
    if choices.failed_is_wrong:
        return rows
    dropped[_FAILED] += sum(r.failed for r in rows)
    return [r for r in rows if not r.failed]


def _answers(rows: list[_Row], result: _Result | None, problems: Problems) -> tuple[list[Answer], list[str]]:
    """Scores from 0 to 1: the row's own, on the metric's range; the verdict where that is no such score."""
    low, high = _range(rows, result)
    answers, by_verdict = [], 0
    for row in rows:
        score = None if row.score is None else _on_unit(row.score, low, high)
        if row.failed:
            answers.append(row.answer._replace(score=0.0, option=-1))
        elif score is not None and 0 <= score <= 1:
            answers.append(row.answer._replace(score=score))
        elif row.correct is not None:
            answers.append(row.answer)
            by_verdict += 1
        else:
            problems.add(row.line, "has neither a score from 0 to 1 nor 'evaluation.is_correct'")
    notes = [f"scores were taken from {low:g} to {high:g}"] if (low, high) != (0, 1) else []
    if by_verdict:
        notes.append(f"{by_verdict:,} rows have no score from 0 to 1 and are scored by is_correct")
    return answers, notes


def _range(rows: list[_Row], result: _Result | None) -> tuple[float, float]:
    """The range of the rows' scores: the metric's or, which the schema leaves free for single rows, 0 to 1.

    Where the metric goes from 0 to more than 1, a row above 1 tells that it is the metric's, and so does a mean of the
    rows that is the metric's own; a mean that is its own brought to 0 to 1 tells the other, and so do verdicts that are
    right exactly where the score is 1. LogError if nothing tells.
    """
    declared = (0.0, 1.0) if result is None else (result.low, result.high)
    scores = [r.score for r in rows if r.score is not None and not r.failed]
    if result is None or declared[0] != 0 or declared[1] <= 1 or not scores or max(scores) > 1:
        return declared
    mean = sum(scores) / len(scores)
    as_declared = result.score is not None and abs(mean - result.score) <= _SAME
    on_unit = result.score is not None and abs(mean - _on_unit(result.score, *declared)) <= _SAME
    verdicts = [(r.correct, r.score == 1) for r in rows if r.score is not None and not r.failed]
    on_unit = on_unit or (all(v == one for v, one in verdicts) and any(one for _, one in verdicts))
    if as_declared == on_unit:
        low, high = declared
        raise LogError(f"has scores from 0 to 1 where its metric goes from {low:g} to {high:g}: either may be meant")
    return declared if as_declared else (0.0, 1.0)


def _on_unit(score: float, low: float, high: float) -> float:
    return (score - low) / (high - low)


def _summary(result: _Result, n: int | None, where: str) -> Summary | None:
    value = None if result.score is None else number(_on_unit(result.score, result.low, result.high))
    return None if value is None else Summary(value, n, where)
