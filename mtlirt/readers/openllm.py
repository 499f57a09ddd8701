"""Details of the Open LLM Leaderboard, version 1: one parquet file for each task and run of a model."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Field, LogError, Problems, load, number, take
from mtlirt.readers.options import Target, Told, agreeing, options_and_keys
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, from_hash, tabulate

FIELDS = (
    Field("query", "query", "text"),
    Field("example", "example", "text"),
    Field("instruction", "instruction", "text"),
    Field("full_prompt", "full_prompt", "text"),
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
    "num_asked_few_shots",
    "num_effective_few_shots",
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
    results = _results(path, match["run"], problems)
    records = _records(path)
    if not records:
        raise LogError("has no rows")
    rows = _rows(records, problems)
    names = {m: None for r in rows for m in r["metrics"]}
    metric = choices.metric(task, [m for m in names if all(m in r["metrics"] for r in rows)])
    answers, notes = _answers(rows, metric, problems)
    if not answers:
        raise LogError(f"has no row with metric {metric!r} that can be read")
    table, dropped = tabulate(answers)
    folder = _repository(path)
    return [
        Sheet(
            task=task,
            metric=metric,
            filter="none",
            run=match["run"],
            model=None if folder is None else _REPOSITORY.sub(r"\g<org>/\g<name>", folder.name),
            folder=path.resolve().parent.name,
            origin=str(path.parent if folder is None else folder),
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


def _results(path: Path, run: str, problems: Problems) -> dict[str, Any] | None:
    """The results of the run, beside its details or at the top of the repository; None if they are not there."""
    for folder in (path.parent, _repository(path)):
        beside = None if folder is None else folder / f"results_{run}.json"
        if beside is not None and beside.exists():
            try:
                return _read_results(beside)
            except LogError as error:
                problems.add(0, f"its {beside.name} {error}")
    return None


@lru_cache(maxsize=64)
def _read_results(path: Path) -> dict[str, Any]:
    return take(RESULTS, load(path))


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
            skipped = {"input_tokens", "cont_tokens", "specifics"} | ({"full_prompt"} if "hashes" in names else set())
            kept = [n for n in names if n not in skipped]
            return [r for batch in file.iter_batches(_BATCH, columns=kept) for r in batch.to_pylist()]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LogError(f"is no parquet file, or is cut off ({str(error).splitlines()[0][:120]})") from error


def _rows(records: list[dict[str, Any]], problems: Problems) -> list[dict[str, Any]]:
    rows = []
    for place, record in enumerate(records):
        try:
            row = take(FIELDS, record)
            hashed = next((name for name in _TEXTS if row[name]), None)
            if hashed is None:
                raise LogError("has neither a hash nor a text of its item")
        except LogError as error:
            problems.add(place + 1, str(error))
            continue
        rows.append({**row, "place": place, "line": place + 1, "metrics": _metrics(record), "hashed": hashed})
    return rows


def _metrics(record: dict[str, Any]) -> dict[str, float]:
    """Scores by name, whether they stand at the top, in `metrics`, or in columns named metrics.*."""
    held = record.get("metrics")
    flat = {k.removeprefix("metrics."): v for k, v in record.items() if k != "metrics" and k not in _NOT_METRICS}
    read = {k: number(v) for k, v in {**flat, **(held if isinstance(held, dict) else {})}.items()}
    return {k: v for k, v in read.items() if v is not None}


def _answers(rows: list[dict[str, Any]], metric: str, problems: Problems) -> tuple[list[Answer], list[str]]:
    good = []
    for row in rows:
        if 0 <= row["metrics"][metric] <= 1:
            good.append(row)
        else:
            problems.add(row["line"], f"metric {metric!r} is {row['metrics'][metric]:g}, outside 0 to 1")
    scores = [r["metrics"][metric] for r in good]
    told = options_and_keys(metric, [Told(_logprobs(r), _texts(r), _gold(r)) for r in good], scores)
    return agreeing([_answer(row, metric, options) for row, options in zip(good, told, strict=True)], metric)


def _answer(row: dict[str, Any], metric: str, told: tuple[int, int] | None) -> Answer:
    shown = row["prompt_hash"] or row["full_prompt"]
    plain = Answer(
        position=str(row["place"]),
        digest=from_hash(row[row["hashed"]]),
        score=row["metrics"][metric],
        prompt=from_hash(shown) if shown else 0,
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
