"""Inspect AI logs: who answered what, and how it was scored.

Epochs are runs of one item. Grades C, P, I and N count 1, a half, 0 and 0, as in Inspect.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Field, LogError, Problems, in_utc, number, take
from mtlirt.readers.inspect_files import open_log
from mtlirt.readers.options import agreeing, by_letter
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, tabulate

HEADER = (
    Field("task", "eval.task", "text", required=True),
    Field("model", "eval.model", "text", required=True),
    Field("created", "eval.created", "text"),
    Field("version", "eval.task_version", "any"),
    Field("arguments", "eval.task_args_passed", "object"),
    Field("old_arguments", "eval.task_args", "object"),
    Field("model_arguments", "eval.model_args", "object"),
    Field("scorers", "eval.scorers", "list"),
    Field("status", "status", "text"),
    Field("error", "error.message", "text"),
)
RESULTS = (
    Field("epochs", "eval.config.epochs", "whole"),
    Field("total", "results.total_samples", "whole"),
    Field("completed", "results.completed_samples", "whole"),
    Field("scores", "results.scores", "list"),
    Field("old_scorer", "results.scorer", "object"),
    Field("old_metrics", "results.metrics", "object"),
)
SAMPLE = (
    Field("id", "id", "any", required=True),
    Field("epoch", "epoch", "whole"),
    Field("input", "input", "any", required=True),
    Field("choices", "choices", "list"),
    Field("target", "target", "any"),
    Field("messages", "messages", "list"),
    Field("scores", "scores", "object"),
    Field("old_score", "score", "object"),
    Field("subject", "metadata.subject", "any"),
    Field("category", "metadata.category", "any"),
    Field("error", "error", "any"),
    Field("limit", "limit", "any"),
    Field("invalid", "invalidation", "any"),
)
RESULT = (
    Field("name", "name", "text", required=True),
    Field("scorer", "scorer", "text"),
    Field("reducer", "reducer", "text"),
    Field("n", "scored_samples", "whole"),
    Field("metrics", "metrics", "object"),
)
_PATH = re.compile(r"[\\/]")
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_ERROR, _LIMIT, _INVALID, _UNSCORED = "ended with an error", "hit a limit", "were marked invalid", "have no score"
_STATUS = {"cancelled": "was cancelled", "error": "ended with an error", "started": "did not end, or was cut off"}
_OLD = "score"
_PARTS = ("text", "image", "audio", "video", "document")


@dataclass(frozen=True)
class _Sample:
    """values : usable scores by the scorer's name, or scorer/key.  unusable : values that are no number.
    letters : answers of the scorers, as they wrote them.  failure : why it should not count, None if it does."""

    name: str
    answer: Answer
    values: dict[str, float]
    unusable: dict[str, str]
    letters: dict[str, Any]
    failure: str | None


def read(path: Path, choices: Choices, problems: Problems) -> list[Sheet]:
    """The answers of one log.

    A sample that ended with an error or at a limit is left out, or is wrong with `choices.failed_is_wrong`; also one
    that was scored nevertheless.
    """
    header, raw = open_log(path, problems)
    values = take(HEADER, header)
    samples = _samples(raw, problems)
    task = _task(values)
    dropped: Counter[str] = Counter()
    counted = _counted(samples, choices, dropped)
    metric = _metric(task, counted, values["scorers"], choices)
    if metric is None:
        dropped[_UNSCORED] += len(counted)
    answers = [] if metric is None else _answers(counted, metric, dropped, problems)
    if metric is None or not answers:
        raise LogError(f"has no scored sample ({_reasons(len(samples), +dropped)})")
    answers, notes = agreeing(answers, metric)
    table, repeated = tabulate(answers)
    only_scored = not any(s.failure for s in counted)
    return [
        Sheet(
            task=task,
            metric=metric,
            filter="none",
            run=in_utc(values["created"]),
            model=values["model"],
            folder=None,
            origin=str(path.parent),
            unit=task,
            settings=_pairs(values["model_arguments"]) or None,
            test={"version": None if values["version"] is None else str(values["version"])},
            rows=table,
            summary=_summary(header, metric, path.name, problems) if only_scored else None,
            dropped={f"samples that {reason}": n for reason, n in dropped.items()} | repeated,
            notes=(*_ending(values["status"], values["error"]), *notes),
        )
    ]


def _task(values: dict[str, Any]) -> str:
    """The task's name without its registry's, and with the arguments that make it another test."""
    name: str = values["task"].rstrip("/").rsplit("/", 1)[-1]
    told = _pairs(values["old_arguments"] if values["arguments"] is None else values["arguments"])
    return f"{name}({told})" if told else name


def _pairs(arguments: dict[str, Any] | None) -> str:
    """name=value of flags, numbers and texts; paths and what is nested differ from place to place."""
    plain = {
        k: v for k, v in (arguments or {}).items() if isinstance(v, (str, int, float)) and not _PATH.search(str(v))
    }
    return ",".join(f"{k}={plain[k]}" for k in sorted(plain))


def _samples(raw: Iterator[tuple[str, Any]], problems: Problems) -> list[_Sample]:
    samples = []
    for name, record in raw:
        try:
            samples.append(_sample(name, record))
        except LogError as error:
            problems.add(0, f"{name}: {error}")
    if not samples:
        raise LogError("has no sample that can be read" if problems.found else "has no samples")
    return samples


def _sample(name: str, record: Any) -> _Sample:
    values = take(SAMPLE, record)
    if isinstance(values["id"], bool) or not isinstance(values["id"], (str, int)):
        raise LogError("its 'id' is neither a text nor a whole number")
    options = values["choices"] or []
    if not all(isinstance(text, str) for text in options):
        raise LogError("its 'choices' are not texts")
    content = _text(values["input"])
    targets = values["target"] if isinstance(values["target"], list) else [values["target"]]
    targets = [t for t in targets if isinstance(t, str)]
    usable, unusable, letters = _values(values)
    return _Sample(
        name=name,
        answer=Answer(
            position=str(values["id"]),
            digest=digest(content, *sorted(options)) if options else digest(content, *targets),
            score=0.0,
            subject=next((s for s in (values["subject"], values["category"]) if isinstance(s, str)), None),
            prompt=digest(_shown(values["messages"]) or content, *options),
            layout=digest(*options) if options else 0,
            key=by_letter(targets[0], len(options)) if len(targets) == 1 else -1,
            n_options=len(options),
            epoch=1 if values["epoch"] is None else values["epoch"],
        ),
        values=usable,
        unusable=unusable,
        letters=letters,
        failure=_failure(values),
    )


def _failure(values: dict[str, Any]) -> str | None:
    reasons = {"invalid": _INVALID, "error": _ERROR, "limit": _LIMIT}
    return next((reason for name, reason in reasons.items() if values[name] is not None), None)


def _text(content: Any) -> str:
    """An input, which is a text or a list of messages, as one text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise LogError("its 'input' is neither a text nor a list of messages")
    return "\n".join(_message(m) for m in content)


def _message(message: Any) -> str:
    values = take((Field("role", "role", "text"), Field("content", "content", "any")), message)
    content = values["content"]
    parts = content if isinstance(content, list) else [content]
    texts = [_part(p) for p in parts]
    return f"{values['role']}: " + "\n".join(texts)


def _part(part: Any) -> str:
    if isinstance(part, dict):
        part = next((part[name] for name in _PARTS if isinstance(part.get(name), str)), None)
    return part if isinstance(part, str) else ""


def _shown(messages: list[Any] | None) -> str:
    """What the model was shown before it first answered, with answers that were given as examples."""
    shown = []
    for message in messages or []:
        known = isinstance(message, dict)
        if not known or (message.get("role") not in ("system", "user") and message.get("source") != "input"):
            break
        shown.append(_message(message))
    return "\n".join(shown)


def _values(values: dict[str, Any]) -> tuple[dict[str, float], dict[str, str], dict[str, Any]]:
    """Usable values by scorer or scorer/key, the others as text, and the scorers' answers; NaN means not scored."""
    scores = values["scores"] or ({_OLD: values["old_score"]} if values["old_score"] else {})
    usable, unusable, letters = {}, {}, {}
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        parts = {f"{scorer}/{key}": v for key, v in value.items()} if isinstance(value, dict) else {scorer: value}
        for name, part in parts.items():
            read = _to_float(part)
            if read is not None:
                usable[name] = read
            elif part is not None and part == part:
                unusable[name] = repr(part)[:60]
        letters[scorer] = score.get("answer") if isinstance(score, dict) else None
    return usable, unusable, letters


def _to_float(value: Any) -> float | None:
    """Inspect's reading of a value: grades, words for yes and no, flags, numbers, and numbers as text."""
    if isinstance(value, str):
        word = value.lower()
        return _GRADES[value] if value in _GRADES else _WORDS[word] if word in _WORDS else number(value)
    return number(value)


def _metric(task: str, counted: list[_Sample], scorers: list[Any] | None, choices: Choices) -> str | None:
    """The scorer that counts, None if nothing was scored; where all samples failed, the header's."""
    names = dict.fromkeys(name for s in counted if s.failure is None for name in s.values)
    if not names and any(s.failure for s in counted):
        names = dict.fromkeys(str(s["name"]) for s in scorers or () if isinstance(s, dict) and "name" in s)
    if not names and not any(s.unusable for s in counted):
        return None
    return choices.metric(task, list(names))


def _counted(samples: list[_Sample], choices: Choices, dropped: Counter[str]) -> list[_Sample]:
    kept = []
    for sample in samples:
        if sample.failure is None or (choices.failed_is_wrong and sample.failure != _INVALID):
            kept.append(sample)
        else:
            dropped[sample.failure] += 1
    return kept


def _answers(counted: list[_Sample], metric: str, dropped: Counter[str], problems: Problems) -> list[Answer]:
    answers = []
    for sample in counted:
        score = 0.0 if sample.failure else sample.values.get(metric)
        if score is not None and 0 <= score <= 1:
            answers.append(_answer(sample, metric, score))
        elif score is not None:
            problems.add(0, f"{sample.name}: score {metric!r} is {score:g}, outside 0 to 1")
        elif metric in sample.unusable:
            problems.add(0, f"{sample.name}: score {metric!r} is {sample.unusable[metric]}, which is no number")
        else:
            dropped[_UNSCORED] += 1
    return answers


def _answer(sample: _Sample, metric: str, score: float) -> Answer:
    """With the options, if the key is one letter and the scorer's answer another or none."""
    answer = sample.answer._replace(score=score)
    letter = None if sample.failure else sample.letters.get(metric, sample.letters.get(metric.rpartition("/")[0]))
    option = by_letter(letter, answer.n_options)
    if answer.key < 0 or (option < 0 and letter):
        return answer._replace(key=-1, n_options=0)
    return answer._replace(option=option)


def _reasons(n: int, dropped: Counter[str]) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
    return f"{n:,} sample{'s' if n > 1 else ''}: {reasons or 'all with problems'}"


def _ending(status: str | None, error: str | None) -> list[str]:
    ended = _STATUS.get(status or "")
    return [f"the run {ended}" + (f": {error[:200]}" if error else "")] if ended else []


def _summary(header: dict[str, Any], metric: str, where: str, problems: Problems) -> Summary | None:
    """The mean or accuracy that the log itself gives for this scorer, of scores averaged over epochs."""
    try:
        values = take(RESULTS, header)
        scores = values["scores"] or _old_scores(values["old_scorer"], values["old_metrics"])
        results = [take(RESULT, r) for r in scores]
    except LogError as error:
        problems.add(0, f"its results cannot be read ({error})")
        return None
    epochs = max(1, values["epochs"] or 1)
    done = values["total"] if values["completed"] is None else values["completed"]
    for result in results:
        named = metric in (result["name"], f"{result['scorer']}/{result['name']}")
        value = _mean(result["metrics"] or {}) if named and result["reducer"] in (None, "mean") else None
        if value is not None:
            n = result["n"]
            return Summary(value, n if n is not None else None if done is None else done // epochs, where)
    return None


def _old_scores(scorer: dict[str, Any] | None, metrics: dict[str, Any] | None) -> list[Any]:
    """One scorer with metrics beside it, as early logs have it; their samples have one score without a name."""
    return [{"name": _OLD, "metrics": metrics}] if scorer else []


def _mean(metrics: dict[str, Any]) -> float | None:
    for name, metric in metrics.items():
        if name.rsplit("/", 1)[-1] in ("accuracy", "mean") and isinstance(metric, dict):
            return number(metric.get("value"))
    return None
