"""Finds the logs under some paths and tells their kinds by what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mtlirt.errors import InputError
from mtlirt.readers import lm_eval
from mtlirt.readers.fields import LogError, parse

LM_EVAL, INSPECT, HELM, EEE, V1, V2, TABLE = "lm-eval", "inspect", "helm", "eee", "openllm-v1", "openllm-v2", "table"
FORMATS = (LM_EVAL, INSPECT, HELM, EEE, V1, V2, TABLE)
_HEAD = 1 << 16
_HELM_RUN, _HELM_SCORES = "run_spec.json", "per_instance_stats.json"
_TABLES = (".csv", ".csv.gz")
_READ = (".jsonl", ".json", ".eval", ".parquet", *_TABLES)
_RESULTS = re.compile(r"results_.*\.json")
_DETAILS = {"predictions", "pred_logits"}
_DETAILS_TOO = {"full_prompt", "hashes", "gold", "gold_index"}


@dataclass(frozen=True)
class Source:
    """One log. path : a file, or the folder of a HELM run."""

    kind: str
    path: Path


@dataclass
class Found:
    """sources : logs.  results : results files of lm-evaluation-harness.  broken : files that cannot be told, with the
    reason.  passed_over : files that are no logs."""

    sources: list[Source] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)
    broken: list[tuple[Path, str]] = field(default_factory=list)
    passed_over: list[Path] = field(default_factory=list)


def find(paths: Sequence[Path]) -> Found:
    """Every log in these files and folders, in the order of their names; InputError for a path that is not there."""
    found = Found()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        for one in _walk(path):
            _sort_in(one, found)
    found.sources = list(dict.fromkeys(found.sources))
    return found


def _walk(path: Path) -> Iterator[Path]:
    """Files in order; a HELM run is one, named by its run_spec.json, without the other files of its folder."""
    if path.is_file():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        names = [_HELM_RUN] if _HELM_RUN in files else sorted(f for f in files if not f.startswith("."))
        yield from (Path(folder) / name for name in names)


def _sort_in(path: Path, found: Found) -> None:
    if path.name == _HELM_RUN:
        found.sources.append(Source(HELM, path.parent))
    elif path.name == _HELM_SCORES:
        found.broken.append((path, f"is of a HELM run whose {_HELM_RUN} is missing"))
    elif path.suffix == ".json" and path.with_name(f"{path.stem}_samples.jsonl").exists():
        return
    elif not path.name.endswith(_READ):
        found.passed_over.append(path)
    elif _RESULTS.fullmatch(path.name):
        found.results.append(path)
    else:
        try:
            kind = _kind(path)
        except (OSError, LogError) as error:
            found.broken.append((path, str(error)))
            return
        if kind is None:
            found.passed_over.append(path)
        else:
            found.sources.append(Source(kind, path))


def _kind(path: Path) -> str | None:
    """The kind of a file, None if it is no log; LogError if it is empty or broken at its beginning."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise LogError("is empty")
    if path.suffix == ".eval":
        return INSPECT
    if path.suffix == ".parquet":
        return _kind_of_parquet(path)
    if path.name.endswith(_TABLES):
        return TABLE
    if lm_eval.NAME.fullmatch(path.name):
        return V2 if path.name.startswith("samples_leaderboard_") else LM_EVAL
    return _kind_of_lines(head) if path.suffix == ".jsonl" else _kind_of_object(head)


def _kind_of_parquet(path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = {name.split(".")[0] for name in pq.read_schema(path).names}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LogError(f"is no parquet file, or is cut off ({str(error).splitlines()[0][:120]})") from error
    return V1 if names & _DETAILS and names & _DETAILS_TOO else TABLE


def _kind_of_lines(head: bytes) -> str | None:
    first = next((line for line in head.splitlines(keepends=True) if line.strip()), b"")
    if len(head) == _HEAD and not first.endswith(b"\n"):
        record: Iterable[str] = re.findall(r'"(\w+)"\s*:', first.decode("utf-8", "replace"))
    else:
        record = parse(first)
    keys = {k for k in record if isinstance(k, str)} if isinstance(record, (dict, list)) else set()
    if {"evaluation_id", "evaluation"} <= keys or {"schema_version", "sample_id"} <= keys:
        return EEE
    if {"doc_id", "resps"} <= keys or {"doc_id", "doc"} <= keys:
        return LM_EVAL
    return TABLE if isinstance(record, dict) else None


def _kind_of_object(head: bytes) -> str | None:
    keys = set(re.findall(r'"(\w+)"\s*:', head.decode("utf-8-sig", "replace")))
    if {"version", "status", "eval"} <= keys or {"eval", "task_id", "run_id"} <= keys:
        return INSPECT
    if {"schema_version", "evaluation_id", "model_info"} <= keys:
        raise LogError("is an aggregate of Every Eval Ever whose samples, <name>_samples.jsonl, are missing")
    if head.lstrip()[:1] == b"[" and {"doc_id", "doc"} <= keys:
        return LM_EVAL
    return None


def only_kind(found: Found, wanted: str, lenient: bool) -> list[Source]:
    """The sources of the wanted kind; with "auto" all, which must be of one kind unless lenient."""
    if wanted != "auto":
        alike = {V2, LM_EVAL} if wanted == LM_EVAL else {wanted}
        return [s for s in found.sources if s.kind in alike]
    kinds: dict[str, list[Source]] = {}
    for source in found.sources:
        kinds.setdefault(LM_EVAL if source.kind == V2 else source.kind, []).append(source)
    if len(kinds) > 1 and not lenient:
        counts = "; ".join(f"{len(s):,} {kind} ({s[0].path})" for kind, s in kinds.items())
        raise InputError(
            f"there are logs of several kinds: {counts}; choose one with --format, or read all with --lenient"
        )
    return found.sources
