"""Columns of a log, declared once: where each lies, of what type it is, whether it must be there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "whole": (int,),
    "number": (int, float),
    "flag": (bool,),
    "list": (list,),
    "object": (dict,),
    "any": (object,),
}
Row = TypeVar("Row")
_DEEP = "is nested too deeply to be a log"


class LogError(Exception):
    """A log, or a part of it, cannot be used; the message says why, the file and line are known where it is caught."""


@dataclass
class Problems:
    """What is wrong in one file: pairs of a line (0: the file as a whole) and a sentence."""

    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, what: str) -> None:
        """Note one more."""
        self.found.append((line, what))


@dataclass(frozen=True)
class Field:
    """A column of a log.

    name : what it is called here.
    path : keys that lead to it, joined by dots.
    kind : text, whole, number, flag, list, object or any.
    required : whether a record without it is an error; otherwise it is None there.
    """

    name: str
    path: str
    kind: str
    required: bool = False

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The path, key by key."""
        return tuple(self.path.split("."))

    def read(self, record: dict[str, Any]) -> Any:
        """The value in `record`; LogError if it is missing though required, or of another type."""
        value: Any = record
        for key in self.keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            if self.required:
                raise LogError(f"there is no {self.path!r}")
            return None
        wrong_flag = isinstance(value, bool) and self.kind == "whole"
        if wrong_flag or not isinstance(value, _TYPES[self.kind]):
            raise LogError(f"{self.path!r} is {json.dumps(value, default=str)[:60]}, not a {self.kind}")
        return clean(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """Without halves of characters, as cut-off text and names of files may have them: no table takes these."""
    return text.encode("utf-8", "replace").decode("utf-8")


def take(fields: tuple[Field, ...], record: Any) -> dict[str, Any]:
    """The declared columns of one record; LogError names every column that is missing or of another type."""
    if not isinstance(record, dict):
        raise LogError("is not a JSON object")
    values, wrong = {}, []
    for declared in fields:
        try:
            values[declared.name] = declared.read(record)
        except LogError as error:
            wrong.append(str(error))
    if wrong:
        raise LogError("; ".join(wrong))
    return values


def parse(raw: bytes) -> Any:
    """JSON written as UTF-8; LogError says what is wrong with it."""
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise LogError(f"is not UTF-8 text (byte {error.start}: {error.reason})") from error
    except ValueError as error:
        raise LogError(f"is not JSON, or is cut off ({error})") from error
    except RecursionError as error:
        raise LogError(_DEEP) from error


def load(path: Path) -> Any:
    """The JSON in a file; LogError if it cannot be read."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LogError(f"cannot be read ({error.strerror})") from error
    if not raw.strip():
        raise LogError("is empty")
    return parse(raw)


def load_shared(path: Path) -> Any:
    """As `load`, for a file that many logs share: kept for the next of them, unless the file has changed."""
    try:
        state = path.stat()
    except OSError as error:
        raise LogError(f"cannot be read ({error.strerror})") from error
    return _load_once(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _load_once(path: Path, changed: int, size: int) -> Any:
    return load(path)


def lines(path: Path, problems: Problems) -> Iterator[tuple[int, Any]]:
    """(line, value) of a JSON-lines file, one line in memory at a time; lines that are no JSON become problems."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.strip():
                    continue
                try:
                    yield number, parse(raw)
                except LogError as error:
                    problems.add(number, str(error))
    except OSError as error:
        raise LogError(f"cannot be read ({error.strerror})") from error


def in_utc(time: str | None) -> str:
    """A time in UTC, so that runs sort by it, from ISO 8601 or seconds since 1970; as it is if it is no time."""
    text = (time or "").strip()
    seconds = number(text)
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        told = datetime.fromisoformat(text)
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return text


def each(records: Iterable[tuple[int, Any]], make: Callable[[int, Any], Row], problems: Problems) -> list[Row]:
    """`make(line, record)` of every record; those of which it raises LogError become problems."""
    rows = []
    for line, record in records:
        try:
            rows.append(make(line, record))
        except LogError as error:
            problems.add(line, str(error))
    return rows


def take_beside(fields: tuple[Field, ...], paths: Iterable[Path], problems: Problems) -> dict[str, Any] | None:
    """The declared columns of the first of these files that is there and can be read; None if there is none."""
    for path in paths:
        if path.exists():
            try:
                return take(fields, load_shared(path))
            except LogError as error:
                problems.add(0, f"its {path.name} {error}")
    return None


def no_parquet(error: Exception) -> LogError:
    """What to say of a parquet file that pyarrow refuses."""
    return LogError(f"is no parquet file, or is cut off ({str(error).splitlines()[0][:120]})")


def number(value: Any) -> float | None:
    """A finite number, also one written as text or a flag; None for anything else."""
    if not isinstance(value, (bool, int, float, str)):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None
