"""Finds the logs under some paths and tells their kinds by what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mtlirt.errors import InputError
from mtlirt.readers import lm_eval
from mtlirt.readers.fields import LogError, no_parquet, parse

LM_EVAL, INSPECT, HELM, EEE, V1, V2, TABLE = "lm-eval", "inspect", "helm", "eee", "openllm-v1", "openllm-v2", "table"
FORMATS = (LM_EVAL, INSPECT, HELM, EEE, V1, V2, TABLE)
_HEAD = 1 << 16
_SPEC, _SCORES = "run_spec.json", "per_instance_stats.json"
_HELM_FILES = (_SPEC, _SCORES, "scenario.json", "scenario_state.json", "stats.json", "instances.json")
_TABLES = (".csv", ".csv.gz")
_READ = (".jsonl", ".json", ".eval", ".parquet", *_TABLES)
_SUFFIXES = {
    LM_EVAL: (".jsonl",),
    V2: (".jsonl",),
    INSPECT: (".eval", ".json"),
    HELM: (_SPEC, _SCORES),
    EEE: (".jsonl", ".json"),
    V1: (".parquet",),
    TABLE: (".csv", ".csv.gz", ".parquet", ".jsonl"),
}
_RESULTS = re.compile(r"results_.*\.json")
_SAMPLES = "_samples.jsonl"
_RECORD = ".log.json"
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
    reason.  passed_over : files that are not read, with the reason."""

    sources: list[Source] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)
    broken: list[tuple[Path, str]] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)


def find(paths: Sequence[Path]) -> Found:
    """Every log in these files and folders, in the order of their names; InputError for a path that is not there."""
    found, seen = Found(), set()
    for path in paths:
        for one in _files(path, found):
            place = one.resolve()
            if place not in seen:
                seen.add(place)
                _sort_in(one, found, given=one == path)
    found.sources = list(dict.fromkeys(found.sources))
    return found


def _files(path: Path, found: Found) -> Iterator[Path]:
    """The files below a path in order, links followed once; hidden ones are left alone."""
    try:
        folder = path.is_dir()
        if not folder and not path.is_file():
            raise InputError(
                f"{path}: " + ("is no file or folder" if path.exists() else "there is no such file or folder")
            )
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if not folder:
        yield path
        return
    been: set[Path] = set()

    def unreadable(error: OSError) -> None:
        found.broken.append((Path(error.filename), f"cannot be read ({error.strerror})"))

    for here, folders, files in os.walk(path, followlinks=True, onerror=unreadable):
        place = Path(here).resolve()
        folders[:] = [] if place in been else sorted(f for f in folders if not f.startswith("."))
        if place not in been:
            been.add(place)
            yield from (Path(here) / name for name in sorted(files) if not name.startswith("."))


def _sort_in(path: Path, found: Found, given: bool) -> None:
    """Put one file where it belongs. given : the user named this very file."""
    try:
        if not path.is_file():
            found.passed_over.append((path, "is no file"))
        elif not path.name.endswith(_READ) or (path.name.endswith(_RECORD) and not given):
            found.passed_over.append((path, "is no log"))
        elif path.suffix == ".parquet" and path.with_suffix(_RECORD).exists() and not given:
            found.passed_over.append((path, "was written by an import"))
        elif path.name in _HELM_FILES:
            _sort_in_helm(path, found)
        elif path.suffix == ".json" and (samples := path.with_name(path.stem + _SAMPLES)).exists():
            found.sources += [Source(EEE, samples)] if given else []
        else:
            _sort_in_file(path, found)
    except (OSError, LogError) as error:
        reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
        found.broken.append((path, reason))


def _sort_in_helm(path: Path, found: Found) -> None:
    spec, scores = (path.with_name(name).is_file() for name in (_SPEC, _SCORES))
    if spec and scores:
        found.sources.append(Source(HELM, path.parent))
    elif spec or scores:
        missing = _SCORES if spec else _SPEC
        found.broken += (
            [(path, f"is of a HELM run whose {missing} is missing")] if path.name in (_SPEC, _SCORES) else []
        )
    else:
        _sort_in_file(path, found)


def _sort_in_file(path: Path, found: Found) -> None:
    kind = _kind(path)
    if kind == "results":
        found.results.append(path)
    elif kind is None:
        found.passed_over.append((path, "is no log"))
    else:
        found.sources.append(Source(kind, path))


def _kind(path: Path) -> str | None:
    """The kind of a file, None if it is no log; LogError if it is empty or broken at its beginning."""
    if lm_eval.NAME.fullmatch(path.name) and path.stat().st_size:
        return V2 if path.name.startswith("samples_leaderboard_") else LM_EVAL
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
    return _kind_of_lines(head) if path.suffix == ".jsonl" else _kind_of_object(path, head)


def _kind_of_parquet(path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = {name.split(".")[0] for name in pq.read_schema(path).names}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise no_parquet(error) from error
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
    return TABLE if keys & {"model", "item", "score"} else None


def _kind_of_object(path: Path, head: bytes) -> str | None:
    """By the keys that its beginning names; what is small is read whole, so that a broken file is not passed over."""
    if len(head) < _HEAD:
        parse(head)
    elif b"\0" in head:
        raise LogError("is not UTF-8 text")
    keys = set(re.findall(r'"([\w-]+)"\s*:', head.decode("utf-8-sig", "replace")))
    if {"version", "status", "eval"} <= keys or {"eval", "task_id", "run_id"} <= keys:
        return INSPECT
    if {"schema_version", "evaluation_id", "model_info"} <= keys:
        raise LogError("is an aggregate of Every Eval Ever whose samples, <name>_samples.jsonl, are missing")
    if head.lstrip()[:1] == b"[" and {"doc_id", "doc"} <= keys:
        return LM_EVAL
    return "results" if _RESULTS.fullmatch(path.name) and "results" in keys else None


def _may_be(path: Path, kinds: set[str]) -> bool:
    """Whether a file that cannot be told may be of one of these kinds, by its name."""
    suffixes = tuple(suffix for kind in kinds for suffix in _SUFFIXES[kind])
    return path.is_dir() or path.name.endswith(suffixes) or (V2 in kinds and bool(lm_eval.NAME.fullmatch(path.name)))


def only_kind(found: Found, wanted: str, lenient: bool) -> list[Source]:
    """The sources of the wanted kind; with "auto" all, which must be of one kind unless lenient.

    With a wanted kind, files that cannot be of it are passed over, broken or not.
    """
    if wanted != "auto":
        alike = {V2, LM_EVAL} if wanted == LM_EVAL else {wanted}
        found.passed_over += [(s.path, f"is of kind {s.kind}") for s in found.sources if s.kind not in alike]
        other = [(p, f"is not of kind {wanted}, and {why}") for p, why in found.broken if not _may_be(p, alike)]
        found.passed_over += other
        found.broken = [(p, why) for p, why in found.broken if _may_be(p, alike)]
        found.results = found.results if alike & {LM_EVAL, V2, V1} else []
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
