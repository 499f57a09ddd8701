"""lm-evaluation-harness 0.4: samples_<task>_<time>.jsonl and the results_<time>.json beside it.

Also the details of the Open LLM Leaderboard, version 2, which are the same files under folders named after the models.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import (
    Field,
    LogError,
    Problems,
    clean,
    each,
    lines,
    load,
    load_shared,
    number,
    take,
    take_beside,
)
from mtlirt.readers.options import Told, agreeing, in_range, options_and_keys
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, from_hash, tabulate

FIELDS = (
    Field("place", "doc_id", "whole", required=True),
    Field("content", "doc", "object"),
    Field("target", "target", "any"),
    Field("arguments", "arguments", "any"),
    Field("resps", "resps", "list"),
    Field("filter", "filter", "text"),
    Field("metrics", "metrics", "list"),
    Field("hash", "doc_hash", "text"),
    Field("prompt", "prompt_hash", "text"),
)
RESULTS = (
    Field("results", "results", "object", required=True),
    Field("versions", "versions", "object"),
    Field("shots", "n-shot", "object"),
    Field("counts", "n-samples", "object"),
    Field("groups", "group_subtasks", "object"),
    Field("higher", "higher_is_better", "object"),
    Field("model", "model_name", "text"),
    Field("arguments", "config.model_args", "any"),
    Field("revision", "config.model_revision", "text"),
)
NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<run>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(\.\d+)?))?\.jsonl?", re.ASCII)
_NOT_METRICS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"} | {
    "doc_hash",
    "prompt_hash",
    "target_hash",
}
_TELLING = ("pretrained", "model", "revision", "subfolder", "peft", "delta", "dtype", "load_in_4bit", "load_in_8bit")
_SUBJECTS = ("subject", "category", "Subject", "Category")
_ORG = re.compile(r"(?P<org>[^_].*?)__(?P<name>.+)")


class _Row(NamedTuple):
    line: int
    place: int
    filter: str
    metrics: dict[str, float]
    digest: int
    prompt: int
    subject: str | None
    target: Any
    logprobs: list[float]
    texts: list[str]


def run_of(path: Path) -> str:
    """The time in the name of a samples or a results file, "" if it has none."""
    match = NAME.fullmatch(path.name)
    return (match["run"] or "") if match else path.stem.removeprefix("results_")


def read(path: Path, choices: Choices, problems: Problems) -> list[Sheet]:
    """The answers of one samples file."""
    match = NAME.fullmatch(path.name)
    task, run = match["task"] if match else path.stem, run_of(path)
    results = take_beside(RESULTS, [path.with_name(f"results_{run}.json")], problems)
    rows = each(_records(path, problems), _row, problems)
    if not rows:
        raise LogError("has no row that can be read" if problems.found else "is empty")
    filter_name = choices.filter(list(dict.fromkeys(r.filter for r in rows)))
    rows = [r for r in rows if r.filter == filter_name]
    metric = choices.metric(task, _metrics(rows, results, task))
    answers, notes = _answers(rows, metric, problems)
    if not answers:
        raise LogError(f"has no row with metric {metric!r} that can be read")
    table, dropped = tabulate(answers)
    folder = _ORG.sub(r"\g<org>/\g<name>", path.resolve().parent.name.removesuffix("-details"))
    of_leaderboard = task.startswith("leaderboard_") and "/" in folder
    return [
        Sheet(
            task=task,
            metric=metric,
            filter=filter_name,
            run=run,
            model=folder if of_leaderboard else _model(results),
            folder=folder,
            origin=str(path.parent),
            unit=task,
            settings=_settings(results),
            test=_test(results, task),
            rows=table,
            summary=_summary(results, task, metric, filter_name, f"results_{run}.json"),
            dropped=dropped,
            notes=tuple(notes),
        )
    ]


def _records(path: Path, problems: Problems) -> Any:
    """Lines, or the elements of one JSON array, as some copies of these files have it."""
    with path.open("rb") as file:
        array = file.read(64).lstrip()[:1] == b"["
    if not array:
        return lines(path, problems)
    content = load(path)
    return enumerate(content, start=1)


def _row(line: int, record: Any) -> _Row:
    values = take(FIELDS, record)
    named = values["metrics"] if values["metrics"] is not None else [k for k in record if k not in _NOT_METRICS]
    metrics = {clean(m): number(record.get(m)) for m in named if isinstance(m, str)}
    content = values["content"]
    if values["hash"] is None and content is None:
        raise LogError("has neither 'doc' nor 'doc_hash', so nothing says which item it is")
    logprobs = _logprobs(values["resps"], "acc_mutual_info" in metrics)
    contexts, texts = _arguments(values["arguments"], len(logprobs))
    prompt = values["prompt"]
    return _Row(
        line=line,
        place=values["place"],
        filter=values["filter"] or "none",
        metrics={m: v for m, v in metrics.items() if v is not None},
        digest=from_hash(values["hash"] or _content_hash(content)),
        prompt=from_hash(prompt or _sha256(contexts[0])) if prompt or contexts else 0,
        subject=next((str(content[s]) for s in _SUBJECTS if content and isinstance(content.get(s), str)), None),
        target=values["target"],
        logprobs=logprobs,
        texts=texts,
    )


def _content_hash(content: dict[str, Any]) -> str:
    """What the harness itself writes as doc_hash in later versions."""
    return _sha256(json.dumps(content, indent=2, ensure_ascii=False))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _logprobs(resps: list[Any] | None, twice: bool) -> list[float]:
    """Log-likelihoods of the options, [] if the requests were not that; with mutual information come unconditional ones
    after the conditional ones."""
    values = []
    for request in resps or ():
        repeat = request[0] if isinstance(request, list) and request else None
        if not isinstance(repeat, list) or len(repeat) != 2 or str(repeat[1]) not in ("True", "False"):
            return []
        value = number(repeat[0])
        if value is None:
            return []
        values.append(value)
    values = values[: len(values) // 2] if twice else values
    return values if len(values) > 1 else []


def _arguments(arguments: Any, n: int) -> tuple[list[str], list[str]]:
    """Contexts and continuations of the first n requests, newer or older form; the context alone if n is 0."""
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs = []
    for request in (requests if isinstance(requests, list) else [])[: max(1, n)]:
        pair = list(request.values()) if isinstance(request, dict) else request
        if not isinstance(pair, list) or not pair or not isinstance(pair[0], str):
            return [], []
        pairs.append(pair)
    texts = [p[1] for p in pairs if n and len(p) > 1 and isinstance(p[1], str)]
    return [p[0] for p in pairs], [t.removeprefix(" ") for t in texts]


def _metrics(rows: list[_Row], results: dict[str, Any] | None, task: str) -> list[str]:
    """Metrics that most rows have as a number; not those of which the results say that lower is better."""
    seen = Counter(m for r in rows for m in r.metrics)
    higher = _of_task(results, "higher", task)
    return [m for m, n in seen.items() if 2 * n > len(rows) and higher.get(m) is not False]


def _answers(rows: list[_Row], metric: str, problems: Problems) -> tuple[list[Answer], list[str]]:
    good = [r for r in rows if in_range(r.metrics.get(metric), metric, r.line, problems)]
    scores = [r.metrics.get(metric, math.nan) for r in good]
    told = options_and_keys(metric, [Told(r.logprobs, r.texts, r.target) for r in good], scores)
    return agreeing([_answer(*row) for row in zip(good, scores, told, strict=True)], metric)


def _answer(row: _Row, score: float, told: tuple[int, int] | None) -> Answer:
    plain = Answer(str(row.place), row.digest, score, row.subject, row.prompt)
    if told is None:
        return plain
    option, key = told
    layout = digest(*row.texts)
    return plain._replace(layout=layout, option=option, key=key, n_options=len(row.texts), logprobs=row.logprobs)


def read_results(path: Path) -> dict[str, Any]:
    """The declared columns of a results file."""
    return take(RESULTS, load_shared(path))


def tasks_of(results: dict[str, Any]) -> list[str]:
    """Tasks of a results file that were run themselves, that is, no groups of other tasks."""
    groups = results["groups"] or {}
    return [task for task in results["results"] if not groups.get(task)]


def _of_task(results: dict[str, Any] | None, column: str, task: str) -> dict[str, Any]:
    """What a column of the results says of one task."""
    told = ((results or {}).get(column) or {}).get(task)
    return told if isinstance(told, dict) else {}


def _model(results: dict[str, Any] | None) -> str | None:
    """The model's name; a revision other than main is another model."""
    if results is None:
        return None
    arguments = _model_arguments(results)
    named = (results["model"], *(arguments.get(a) for a in ("peft", "delta", "pretrained", "model")))
    name = next((n for n in named if isinstance(n, str) and n), None)
    revision = arguments.get("revision") or results["revision"] or "main"
    return name if name is None or revision == "main" else f"{name}@{revision}"


def _model_arguments(results: dict[str, Any]) -> dict[str, Any]:
    arguments = results["arguments"]
    if isinstance(arguments, str):
        return dict(pair.split("=", 1) for pair in arguments.split(",") if "=" in pair)
    return arguments if isinstance(arguments, dict) else {}


def _settings(results: dict[str, Any] | None) -> str | None:
    """Arguments of the model that make it another model."""
    if results is None:
        return None
    arguments = _model_arguments(results)
    return ", ".join(f"{a}={arguments[a]}" for a in _TELLING if arguments.get(a) is not None) or None


def _test(results: dict[str, Any] | None, task: str) -> dict[str, str | None]:
    facts = {"version": "versions", "number of shots": "shots"}
    found = {name: ((results or {}).get(column) or {}).get(task) for name, column in facts.items()}
    return {name: None if value is None else _plain(value) for name, value in found.items()}


def _plain(value: Any) -> str:
    """1 and 1.0 are the same version."""
    read = number(value)
    return str(value) if read is None else f"{read:g}"


def _summary(results: dict[str, Any] | None, task: str, metric: str, filter_name: str, where: str) -> Summary | None:
    told = _of_task(results, "results", task)
    value = next((v for k in (f"{metric},{filter_name}", metric) if (v := number(told.get(k))) is not None), None)
    if value is None:
        return None
    n = _of_task(results, "counts", task).get("effective")
    return Summary(value, n if isinstance(n, int) and not isinstance(n, bool) else None, where)
