"""Plain tables among the paths to import, one or several, as one Responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt.data import Responses
from mtlirt.errors import InputError
from mtlirt.readers import checks, detect
from mtlirt.readers.detect import Found
from mtlirt.readers.fields import clean
from mtlirt.readers.read_log import DROPPED, FILES, ReadLog, refuse
from mtlirt.readers.tables import PREFIX, read_responses

_OPTIONAL = ("option", "key", "probs", "n_options", "trials")


def read_tables(paths: list[Path], found: Found, domain_by: str, lenient: bool) -> tuple[Responses, ReadLog]:
    """All tables as one, and the record. domain_by "prefix" holds for tables without domains."""
    parts: dict[Path, Responses] = {}
    problems = [(path, why) for path, why in found.broken]
    for path in paths:
        try:
            parts[path] = read_responses(path, domains=PREFIX if domain_by == PREFIX else None)
        except InputError as error:
            problems.append((path, str(error).removeprefix(f"{path}: ")))
    refuse([f"{clean(str(path))}: {why}" for path, why in problems], lenient, some=bool(parts))
    responses = next(iter(parts.values())) if len(parts) == 1 else _joined(parts)
    told = [
        (clean(str(path)), detect.TABLE, "", "", "", "score", "none", part.n_answers, True, "")
        for path, part in parts.items()
    ]
    dropped = [(clean(str(path)), 0, why, None) for path, why in (*problems, *found.passed_over)]
    log = ReadLog(
        files=pd.DataFrame(told, columns=list(FILES)),
        dropped=pd.DataFrame(dropped, columns=list(DROPPED)).astype({"rows": "Int64"}),
        summaries=checks.summaries([], set()),
        missing=checks.missing(responses),
        warnings=(*responses.notes, *checks.of_answers(responses)),
    )
    return responses, log


def _joined(parts: dict[Path, Responses]) -> Responses:
    """One Responses; an answer of a table without numbers of runs is one run."""
    frames = [part.to_long() for part in parts.values()]
    rows = pd.concat([f.astype({"model": str, "domain": str, "item": str}) for f in frames], ignore_index=True)
    rows = rows[rows["score"].notna()]
    known: dict[str, Any] = {name: name for name in _OPTIONAL if name in rows}
    rows = rows.astype({name: object for name in ("option", "key") if name in known})
    if "trials" in known:
        rows["trials"] = rows["trials"].fillna(1)
    infos = [part.model_info for part in parts.values() if part.model_info is not None]
    try:
        responses = Responses.from_long(rows, **known)
    except InputError as error:
        raise InputError(f"{', '.join(map(str, parts))}: {error}") from error
    if infos:
        info = pd.concat(infos)
        responses = responses.with_model_info(info[~info.index.duplicated()])
    return responses.with_notes(*(f"{path}: {note}" for path, part in parts.items() for note in part.notes))
