"""What the record of an import says in a report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mtlirt.report.words import isolated, plain

_SHOWN = 40


def reading_facts(record: dict[str, Any]) -> dict[str, Any]:
    """Counts and the first rows of each part of the record of an import.

    record : as `ReadLog.save` writes it.

    Returns
    -------
    Dict with files (number), used, answers, formats and scores (name, number of logs), left_out (reason, rows),
    means (verdict, number), differs (sentences), gaps (number of model and domain pairs), warnings, more_warnings.

    >>> reading_facts({"files": [], "dropped": [], "summaries": [], "missing": [], "warnings": ["a"]})["warnings"]
    ['a']
    """
    files, summaries = _rows(record, "files"), _rows(record, "summaries")
    used = [row for row in files if row.get("used")]
    left_out: Counter[str] = Counter()
    for row in _rows(record, "dropped"):
        left_out[plain(str(row.get("reason")))] += _whole(row.get("rows"), 1)
    scores = Counter(_score(row) for row in used)
    differs = [
        f"{_isolated(row, 'model')}, {_isolated(row, 'task')}: stated {row.get('stated')}, found {row.get('found')}"
        for row in summaries
        if row.get("verdict") == "differs"
    ]
    warnings = [plain(str(text)) for text in record.get("warnings", [])]
    return {
        "files": len(files),
        "used": len(used),
        "answers": sum(_whole(row.get("rows"), 0) for row in used),
        "formats": _counted(Counter(str(row.get("format")) for row in files)),
        "scores": _counted(scores)[:_SHOWN],
        "left_out": _counted(left_out)[:_SHOWN],
        "means": _counted(Counter(str(row.get("verdict")) for row in summaries)),
        "differs": differs[:_SHOWN],
        "gaps": len(_rows(record, "missing")),
        "warnings": warnings[:_SHOWN],
        "more_warnings": max(0, len(warnings) - _SHOWN),
    }


def _rows(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in record.get(name, []) if isinstance(row, dict)]


def _isolated(row: dict[str, Any], name: str) -> str:
    return isolated(str(row.get(name)))


def _whole(value: object, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default


def _score(row: dict[str, Any]) -> str:
    """Task and metric; tables have no task."""
    metric = f"{row.get('metric')}{_filter(row)}"
    return f"{row['task']}: {metric}" if row.get("task") else metric


def _filter(row: dict[str, Any]) -> str:
    return "" if row.get("filter") in (None, "none") else f" ({row['filter']})"


def _counted(counts: Counter[str]) -> list[list[Any]]:
    return [[name, n] for name, n in counts.most_common()]
