"""Files of Inspect AI: .eval, a zip archive of header.json and samples/<id>_epoch_<n>.json, and .json, one object.

Read through inspect_ai itself where it is installed and can, since it knows all versions of these files; else by the
documented layout, one sample in memory at a time, so that a damaged one costs no other. Nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, cast

from mtlirt.readers.fields import LogError, Problems, load, parse

_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)
_CHUNKED = re.compile(r"samples/.+_epoch_\d+/sample\.json", re.DOTALL)
# a sample takes kilobytes to some megabytes, and JSON shrinks by a factor of 5 to 50
_LARGEST, _LARGE, _RATIO = 256 << 20, 16 << 20, 500
_ZSTANDARD = 93
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    IndexError,
    RuntimeError,
    OverflowError,
)


def open_log(path: Path, problems: Problems) -> tuple[Any, Iterator[tuple[str, Any]]]:
    """The header, and the samples with their names."""
    archive = path.suffix == ".eval"
    installed = find_spec("inspect_ai") is not None
    members = _members(path) if archive else []
    if installed and not any(_refusal(member) for member in members):
        with suppress(LogError):
            return _through_inspect(path)
    return _from_zip(path, members, problems) if archive else _from_json(path)


def _through_inspect(path: Path) -> tuple[Any, Iterator[tuple[str, Any]]]:
    try:
        log = import_module("inspect_ai.log").read_eval_log(str(path))
        header = log.model_dump(mode="json", exclude={"samples", "reductions"}, exclude_none=True)
    except Exception as error:
        raise LogError(f"cannot be read by inspect_ai ({type(error).__name__}: {str(error)[:200]})") from error
    samples = log.samples or []
    dumped = (s.model_dump(mode="json", exclude={"events", "attachments", "store"}, exclude_none=True) for s in samples)
    return header, ((f"sample {s.get('id')!r}", s) for s in dumped)


def _from_json(path: Path) -> tuple[Any, Iterator[tuple[str, Any]]]:
    log = load(path)
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise LogError("is no Inspect log with a list of samples")
    return log, ((f"sample {place}", sample) for place, sample in enumerate(samples, start=1))


def _members(path: Path) -> list[zipfile.ZipInfo]:
    """What the archive holds; LogError if it is none, is cut off, or holds names that point out of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except _ZIP_ERRORS as error:
        raise LogError(f"is no zip archive, or is cut off ({error})") from error
    for member in members:
        parts = member.filename.replace("\\", "/").split("/")
        if parts[0] == "" or ":" in parts[0] or ".." in parts:
            raise LogError(f"holds a member named {member.filename[:80]!r}, which no log does")
    return members


def _from_zip(path: Path, members: list[zipfile.ZipInfo], problems: Problems) -> tuple[Any, Iterator[tuple[str, Any]]]:
    named = {member.filename: member for member in members}
    if any(_CHUNKED.fullmatch(name) for name in named):
        problems.add(0, "some samples are in chunks, as in version 3 of these logs, and are not read")
    start = next((name for name in ("header.json", "_journal/start.json") if name in named), None)
    if start is None:
        raise LogError("holds neither header.json nor _journal/start.json, so it is no Inspect log")
    with zipfile.ZipFile(path) as archive:
        try:
            header = _member(archive, named[start])
        except LogError as error:
            raise LogError(f"its {start} {error}") from error
    if start != "header.json" and isinstance(header, dict):
        header["status"] = "started"
    return header, _read_members(path, [m for m in members if _SAMPLE.fullmatch(m.filename)], problems)


def _read_members(path: Path, members: list[zipfile.ZipInfo], problems: Problems) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        for member in members:
            try:
                yield member.filename, _member(archive, member)
            except LogError as error:
                problems.add(0, f"{member.filename[:80]} {error}")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    reason = _refusal(member)
    if reason is not None:
        raise LogError(reason)
    if member.compress_type not in _COMPRESSIONS:
        raise LogError(f"is compressed by method {member.compress_type}, which is not read here")
    try:
        return parse(_unpacked(archive, member))
    except _ZIP_ERRORS as error:
        raise LogError(f"is damaged ({error})") from error


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's content, of which no more is unpacked than its size says: Python's zipfile trusts the archive there,
    and reads zstandard, which inspect_ai writes since 2026, from 3.14 on."""
    import pyarrow as pa

    file = cast("BinaryIO", archive.fp)
    file.seek(member.header_offset)
    name, extra = struct.unpack("<26x2H", file.read(30))
    file.seek(name + extra, 1)
    packed, most = file.read(member.compress_size), member.file_size + 1
    if member.compress_type == _ZSTANDARD:
        content: bytes = pa.input_stream(pa.py_buffer(packed), compression="zstd").read(most)
    else:
        content = (
            packed if member.compress_type == zipfile.ZIP_STORED else zlib.decompressobj(-15).decompress(packed, most)
        )
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("another size or checksum than the archive says")
    return content


def _refusal(member: zipfile.ZipInfo) -> str | None:
    if member.flag_bits & 1:
        return "is encrypted"
    size = member.file_size
    if size > _LARGEST or (size > _LARGE and size > _RATIO * member.compress_size):
        return f"would unpack to {size:,} bytes from {member.compress_size:,}, which no sample takes"
    return None
