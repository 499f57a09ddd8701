"""Writes logs as Inspect AI does, small and with known answers, and reads one."""

import json
import zipfile

from mtlirt.readers import inspect
from mtlirt.readers.choices import Choices
from mtlirt.readers.fields import Problems


def read(path, **choices):
    problems = Problems()
    (sheet,) = inspect.read(path, Choices(**choices), problems)
    return sheet, [what for _, what in problems.found]


def sample(i=1, value="C", scorer="choice", answer=None, target="A", epoch=1, **more):
    return {
        "id": i,
        "epoch": epoch,
        "input": f"Question {i}?",
        "choices": ["red", "green", "blue"],
        "target": target,
        "messages": [{"role": "user", "content": f"Question {i}? A) red B) green C) blue"}],
        "scores": {scorer: {"value": value, "answer": answer}},
        "metadata": {},
    } | more


def plain(i, value, **more):
    """Without choices, and with the values of some scorers, or of one."""
    values = value if isinstance(value, dict) else {"match": value}
    return sample(i, **more) | {"choices": None, "scores": {k: {"value": v} for k, v in values.items()}}


def log(*samples, status="success", scores=(), created="2025-01-02T03:04:05+02:00", **results):
    return {
        "version": 2,
        "status": status,
        "eval": {
            "task": "pkg/colours",
            "task_version": 3,
            "model": "org/m",
            "created": created,
            "config": {"epochs": 1},
        },
        "results": {"scores": list(scores)} | results,
        "samples": list(samples),
    }


def result(name="match", value=0.5, metric="accuracy", **more):
    return {"name": name, "scorer": name, "metrics": {metric: {"name": metric, "value": value}}} | more


def as_json(folder, content):
    path = folder / "log.json"
    path.write_text(json.dumps(content))
    return path


def as_eval(folder, content, header="header.json", compression=zipfile.ZIP_DEFLATED):
    path = folder / "log.eval"
    head = {k: v for k, v in content.items() if k != "samples"}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_journal/start.json", json.dumps({k: head[k] for k in ("version", "eval")}))
        for s in content["samples"]:
            archive.writestr(f"samples/{s['id']}_epoch_{s['epoch']}.json", json.dumps(s))
        if header == "header.json":
            archive.writestr(header, json.dumps(head))
    return path
