"""HELM: the folder of one run, with run_spec.json, per_instance_stats.json and, if they are there, scenario_state.json
or instances.json for the texts and stats.json for the means.

Instances are counted unperturbed and in one split; train trials are runs of one item.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Field, LogError, Problems, load, number, take
from mtlirt.readers.helm_texts import Texts, texts_of
from mtlirt.readers.options import agreeing
from mtlirt.readers.sheet import Answer, Sheet, Summary, digest, tabulate

SPEC = (
    Field("name", "name", "text", required=True),
    Field("model", "adapter_spec.model", "text"),
    Field("method", "adapter_spec.method", "text"),
    Field("shots", "adapter_spec.max_train_instances", "whole"),
    Field("metrics", "metric_specs", "list"),
)
INSTANCE = (
    Field("id", "instance_id", "text", required=True),
    Field("trial", "train_trial_index", "whole"),
    Field("perturbation", "perturbation", "any"),
    Field("stats", "stats", "list", required=True),
)
STAT = (
    Field("name", "name.name", "text", required=True),
    Field("split", "name.split", "text"),
    Field("part", "name.sub_split", "text"),
    Field("perturbation", "name.perturbation", "any"),
    Field("mean", "mean", "any"),
    Field("sum", "sum", "any"),
    Field("count", "count", "any"),
)
_SPLITS = ("test", "valid")
_NOT_NAMED = "exact_match"
_RANKED = {"gsm": "final_number_exact_match"}
_PREDICTED = "predicted_index"


@dataclass
class _Scores:
    """values : statistics by split, then by (instance, trial), then by name.  perturbed : instances left out."""

    values: dict[str, dict[tuple[str, int], dict[str, float]]] = field(default_factory=dict)
    perturbed: int = 0


def read(path: Path, choices: Choices, problems: Problems) -> list[Sheet]:
    """The answers of one run."""
    spec = take(SPEC, _required(path / "run_spec.json"))
    scores = _scores(_required(path / "per_instance_stats.json"), problems)
    split = next((s for s in (*_SPLITS, *scores.values) if s in scores.values), None)
    if split is None:
        raise LogError("has no unperturbed instance that can be read")
    values = scores.values[split]
    task, arguments = _task(spec["name"])
    names = _metrics(values)
    metric = choices.metric(task, names, _default(task, spec["metrics"], names))
    shown = texts_of(path, problems)
    answers = _answers(values, metric, arguments.get("subject"), shown, problems)
    if not answers:
        raise LogError(f"has no instance with metric {metric!r} that can be read")
    answers, notes = agreeing(answers, metric)
    table, dropped = tabulate(answers)
    others = sum(len(v) for s, v in scores.values.items() if s != split)
    left_out = {"instances of other splits": others, "perturbed instances": scores.perturbed}
    if not shown:
        notes.append("the run holds no texts, so that its items are told by their ids alone")
    folder = path.resolve().parent
    return [
        Sheet(
            task=task,
            metric=metric,
            filter="none",
            run=folder.name,
            model=spec["model"] or arguments.get("model"),
            folder=None,
            origin=str(path.parent),
            unit=task,
            test={
                "number of shots": None if spec["shots"] is None else str(spec["shots"]),
                "method": spec["method"],
                "split": split or None,
            },
            rows=table,
            by_position=not shown,
            summary=_summary(path / "stats.json", metric, split, problems),
            dropped={reason: n for reason, n in left_out.items() if n} | dropped,
            notes=tuple(notes),
        )
    ]


def _required(path: Path) -> Any:
    if not path.exists():
        raise LogError(f"holds no {path.name}, so the run did not end or is no HELM run")
    try:
        return load(path)
    except LogError as error:
        raise LogError(f"its {path.name} {error}") from error


def _task(name: str) -> tuple[str, dict[str, str]]:
    """The run's name without what says which model ran, and its arguments."""
    scenario, _, rest = name.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",") if pair]
    arguments = {key: value for key, _, value in pairs}
    kept = sorted(f"{k}={v}" if v else k for k, v in arguments.items() if k not in ("model", "model_deployment"))
    return f"{scenario}:{','.join(kept)}" if kept else scenario, arguments


def _scores(content: Any, problems: Problems) -> _Scores:
    if not isinstance(content, list):
        raise LogError("its per_instance_stats.json is no list")
    scores = _Scores()
    for place, record in enumerate(content, start=1):
        try:
            instance = take(INSTANCE, record)
            stats = [_stat(s) for s in instance["stats"]]
        except LogError as error:
            problems.add(0, f"per_instance_stats.json, instance {place}: {error}")
            continue
        plain = [s for s in stats if s["perturbation"] is None]
        if instance["perturbation"] is not None or (stats and not plain):
            scores.perturbed += 1
            continue
        key = (instance["id"], instance["trial"] or 0)
        for stat in plain:
            if stat["value"] is not None:
                scores.values.setdefault(stat["split"] or "", {}).setdefault(key, {})[stat["name"]] = stat["value"]
    return scores


def _stat(record: Any) -> dict[str, Any]:
    """A statistic with its value: the mean, or the sum over the count."""
    stat = take(STAT, record)
    total, count = number(stat["sum"]), number(stat["count"])
    stat["value"] = number(stat["mean"])
    if stat["value"] is None and total is not None and count:
        stat["value"] = number(total / count)
    return stat


def _metrics(values: dict[tuple[str, int], dict[str, float]]) -> list[str]:
    """Statistics that some instance has between 0 and 1."""
    return list(dict.fromkeys(name for stats in values.values() for name, x in stats.items() if 0 <= x <= 1))


def _default(task: str, specs: list[Any] | None, measured: list[str]) -> str:
    """The first metric that the run's specification names, else the one that HELM computes without being told; for a
    scenario whose first is not what HELM ranks by, the latter."""
    ranked = _RANKED.get(task.partition(":")[0])
    if ranked in measured:
        return str(ranked)
    for spec in specs or ():
        arguments = spec.get("args") if isinstance(spec, dict) else None
        names = arguments.get("names") if isinstance(arguments, dict) else None
        for name in names if isinstance(names, list) else ():
            if name in measured:
                return str(name)
    return _NOT_NAMED


def _answers(
    values: dict[tuple[str, int], dict[str, float]],
    metric: str,
    subject: str | None,
    shown: Texts,
    problems: Problems,
) -> list[Answer]:
    answers = []
    for (position, trial), stats in values.items():
        score = stats.get(metric)
        if score is not None and not 0 <= score <= 1:
            problems.add(0, f"instance {position}: metric {metric!r} is {score:g}, outside 0 to 1")
            continue
        plain = Answer(position, digest(position), float("nan") if score is None else score, subject, epoch=trial)
        if not shown:
            answers.append(plain)
            continue
        told = shown.get((position, trial)) or shown.get((position, None))
        if told is None:
            problems.add(0, f"instance {position}: nothing says what it asks")
        else:
            answers.append(told.fill(plain, stats.get(_PREDICTED)))
    return answers


def _summary(path: Path, metric: str, split: str, problems: Problems) -> Summary | None:
    """The mean that stats.json gives for the split as a whole, unperturbed."""
    if not path.exists():
        return None
    try:
        content = load(path)
        if not isinstance(content, list):
            raise LogError("is no list")
        stats = [_stat(s) for s in content]
    except LogError as error:
        problems.add(0, f"its {path.name} {error}")
        return None
    found = {s["name"]: s["value"] for s in stats if _whole_split(s, split) and s["value"] is not None}
    if metric not in found:
        return None
    n = found.get("num_instances")
    return Summary(found[metric], None if n is None else round(n), path.name)


def _whole_split(stat: dict[str, Any], split: str) -> bool:
    return (stat["split"] or "") == split and stat["part"] is None and stat["perturbation"] is None
