"""Details of the Open LLM Leaderboard, version 1: one parquet file for each task and run of a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Field, LogError, Problems, each, no_parquet, number, take, take_beside
from mtlirt.readers.options import Target, Told, agreeing, in_range, options_and_keys
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, from_hash, tabulate

FIELDS = (
    Field("query", "query", "text"),
    Field("example", "example", "text"),
    Field("instruction", "instruction", "text"),
    Field("shots_asked", "num_asked_few_shots", "whole"),
    Field("shots_shown", "num_effective_few_shots", "whole"),
    Field("choices", "choices", "list"),
    Field("gold", "gold", "any"),
    Field("gold_index", "gold_index", "any"),
    Field("predictions", "predictions", "list"),
    Field("pred_logits", "pred_logits", "list"),
    Field("example_hash", "hashes.example", "text"),
    Field("prompt_hash", "hashes.full_prompt", "text"),
)
RESULTS = (
    Field("results", "results", "object", required=True),
    Field("versions", "versions", "object"),
)
_TEXTS = ("example_hash", "query", "example", "instruction")
_NOT_METRICS = {f.path.split(".")[0] for f in FIELDS} | {
    "input_tokens",
    "cont_tokens",
    "truncated",
    "padded",
    "full_prompt",
    "specifics",
    "ctx",
    "task",
}
_NAME = re.compile(
    r"details_(?P<suite>[^|]*)\|(?P<task>[^|]+)\|(?P<shots>\d+)_(?P<run>\d{4}-\d\d-\d\dT\d\d[-:_]\d\d[-:_]\d\d(\.\d+)?)"
    r"\.parquet",
    re.ASCII,
)
_RESULTS = re.compile(r"results_(?P<run>\d{4}-\d\d-\d\dT\d\d[-:_]\d\d[-:_]\d\d(\.\d+)?)\.json", re.ASCII)
_REPOSITORY = re.compile(r"details_(?P<org>[^_].*?)__(?P<name>.+)")
_MMLU = "hendrycksTest-"
_BATCH = 512


def read(path: Path, choices: Choices, problems: Problems) -> list[Sheet]:
    """The answers of one parquet file."""
    match = _NAME.fullmatch(unquote(path.name))
    if match is None:
        raise LogError("is not named details_<suite>|<task>|<shots>_<time>.parquet, so its task is not known")
    task = match["task"]
    repository = _repository(path)
    tops = [path.parent] if repository is None else [path.parent, repository]
    results = take_beside(RESULTS, [top / f"results_{match['run']}.json" for top in tops], problems)
    records = _records(path)
    if not records:
        raise LogError("has no rows")
    rows = _rows(records, problems)
    seen = Counter(m for r in rows for m in r["metrics"])
    metric = choices.metric(task, [m for m, n in seen.items() if 2 * n > len(rows)])
    answers, notes = _answers(rows, metric, problems)
    if not answers:
        raise LogError(f"has no row with metric {metric!r} that can be read")
    table, dropped = tabulate(answers)
    return [
        Sheet(
            task=task,
            metric=metric,
            filter="none",
            run=run_of(path) or "",
            model=None if repository is None else _REPOSITORY.sub(r"\g<org>/\g<name>", repository.name),
            folder=path.resolve().parent.name,
            origin=str(path.parent if repository is None else repository),
            unit="hendrycksTest" if task.startswith(_MMLU) else task,
            test={"number of shots": match["shots"], "version": _version(results, match)},
            rows=table,
            summary=_summary(results, match, metric),
            by_position=True,
            digest_of=rows[0]["hashed"],
            dropped=dropped,
            notes=tuple(notes),
        )
    ]


def run_of(path: Path) -> str | None:
    """The time in the name of a details or a results file, None if it is neither."""
    match = _NAME.fullmatch(unquote(path.name)) or _RESULTS.fullmatch(path.name)
    return None if match is None else re.sub("[:_]", "-", match["run"])


def _version(results: dict[str, Any] | None, match: re.Match[str]) -> str | None:
    """The task's version; MMLU before its repair in June 2023 has 0, and is another test."""
    version = ((results or {}).get("versions") or {}).get(_entry(match))
    return None if version is None else str(version)


def _summary(results: dict[str, Any] | None, match: re.Match[str], metric: str) -> Summary | None:
    told = (results or {}).get("results", {}).get(_entry(match))
    value = number(told.get(metric)) if isinstance(told, dict) else None
    return None if value is None else Summary(value, None, f"results_{match['run']}.json")


def _entry(match: re.Match[str]) -> str:
    return f"{match['suite']}|{match['task']}|{match['shots']}"


def _repository(path: Path) -> Path | None:
    """The folder details_<org>__<model> that the file lies in."""
    return next((p for p in path.resolve().parents if _REPOSITORY.fullmatch(p.name)), None)


def _records(path: Path) -> list[dict[str, Any]]:
    """Rows as they are, without the columns that no reading of them needs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            kept = [n for n in names if n not in ("input_tokens", "cont_tokens", "specifics", "full_prompt")]
            return [r for batch in file.iter_batches(_BATCH, columns=kept) for r in batch.to_pylist()]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise no_parquet(error) from error


def _rows(records: list[dict[str, Any]], problems: Problems) -> list[dict[str, Any]]:
    rows = each(enumerate(records, start=1), _row, problems)
    hashed = next((name for name in _TEXTS if rows and all(r[name] for r in rows)), None)
    if hashed is None:
        raise LogError("has neither hashes nor texts of its items")
    return [{**row, "hashed": hashed} for row in rows]


def _row(line: int, record: dict[str, Any]) -> dict[str, Any]:
    return {**take(FIELDS, record), "place": line - 1, "line": line, "metrics": _metrics(record)}


def _metrics(record: dict[str, Any]) -> dict[str, float]:
    """Scores by name, whether they stand at the top, in `metrics`, or in columns named metrics.*."""
    held = record.get("metrics")
    flat = {k.removeprefix("metrics."): v for k, v in record.items() if k != "metrics" and k not in _NOT_METRICS}
    read = {k: number(v) for k, v in {**flat, **(held if isinstance(held, dict) else {})}.items()}
    return {k: v for k, v in read.items() if v is not None}


def _answers(rows: list[dict[str, Any]], metric: str, problems: Problems) -> tuple[list[Answer], list[str]]:
    good = [r for r in rows if in_range(r["metrics"].get(metric), metric, r["line"], problems)]
    scores = [r["metrics"].get(metric, math.nan) for r in good]
    told = options_and_keys(metric, [Told(_logprobs(r), _texts(r), _gold(r)) for r in good], scores)
    answers, notes = agreeing([_answer(*row) for row in zip(good, scores, told, strict=True)], metric)
    fewer = sum((r["shots_shown"] or 0) < (r["shots_asked"] or 0) for r in good if r["shots_shown"] is not None)
    if fewer:
        notes.append(f"{fewer:,} items were shown with fewer examples than asked for")
    return answers, notes


def _answer(row: dict[str, Any], score: float, told: tuple[int, int] | None) -> Answer:
    plain = Answer(
        position=str(row["place"]),
        digest=from_hash(row[row["hashed"]]),
        score=score,
        prompt=from_hash(row["prompt_hash"]) if row["prompt_hash"] else 0,
    )
    if told is None:
        return plain
    logprobs = _logprobs(row)
    layout = digest(*_texts(row))
    return plain._replace(layout=layout, option=told[0], key=told[1], n_options=len(logprobs), logprobs=logprobs)


def _logprobs(row: dict[str, Any]) -> list[float]:
    """Log-likelihoods of the options, [] for generated text."""
    held = row["predictions"] or row["pred_logits"] or []
    values = [float(v) for v in held if isinstance(v, float)]
    return values if len(values) == len(held) == len(row["choices"] or []) else []


def _texts(row: dict[str, Any]) -> list[str]:
    return [str(c) for c in row["choices"] or []]


def _gold(row: dict[str, Any]) -> Target:
    gold = row["gold_index"] if row["gold_index"] is not None else row["gold"]
    if isinstance(gold, list):
        gold = gold[0] if len(gold) == 1 else None
    return gold if isinstance(gold, (str, int)) else None
