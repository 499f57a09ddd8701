"""The dict of `facts` as one html page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtlirt.data.store import replacing
from mtlirt.errors import InputError
from mtlirt.report.evidence import Evidence
from mtlirt.report.facts import facts
from mtlirt.results.base import TraitFit
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.readers.read_log import ReadLog
    from mtlirt.selection.cv_result import CVResult

_HERE = Path(__file__).parent
_SCRIPTS = ("grid.js", "draw.js", "parts.js")
_DATA = ("domains", "leaderboard", "gaps", "ranks", "spread", "items", "options", "habits", "bound")
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(what: dict[str, Any]) -> str:
    """The page of a dict of `facts`. Names go through jinja2's autoescape, or into the page as JSON that no browser
    takes for markup.

    >>> import mtlirt
    >>> from mtlirt.report import facts
    >>> render(facts(mtlirt.fit_mtl(mtlirt.datasets.demo(), 1.0)))[:15]
    '<!doctype html>'
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    script = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    pages = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.filters |= {"svg": Markup, "number": number}
    return pages.get_template("page.html").render(
        **what,
        json=Markup(as_json({name: what[name] for name in _DATA})),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
    )


def as_json(value: object) -> str:
    """JSON for a script element: the characters that could end it, or a line of it, are written as escapes.

    >>> as_json({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def number(value: float | None, digits: int) -> str:
    """A number as text, with a minus sign; a dash for a missing one.

    >>> number(-0.5, 2), number(None, 2)
    ('−0.50', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def write_report(
    fit: TraitFit,
    path: str | Path = "report.html",
    *,
    cv: CVResult | None = None,
    responses: Responses | None = None,
    log: ReadLog | dict[str, Any] | None = None,
) -> Path:
    """See `Fit.report`."""
    assert isinstance(fit, Fit | NominalFit)
    path = _place(path)
    write_page(path, render(facts(fit, Evidence.of(fit, cv, responses, log))))
    return path


def _place(path: object) -> Path:
    """A path that may become a file; InputError for anything else."""
    try:
        place = Path(path)  # type: ignore[arg-type]
        os.fsencode(place)
        folder = place.is_dir()
    except (TypeError, ValueError, OSError) as error:
        raise InputError(f"report: path {path!r} cannot be a file ({error})") from error
    if not place.name or folder:
        raise InputError(f"report: path {str(path)!r} is no file to write to")
    if "\0" in str(place):
        raise InputError(f"report: path {str(path)!r} cannot be a file")
    return place


def write_page(path: Path, page: str) -> None:
    """Write a page; it is complete or not there. InputError where it cannot be written."""
    try:
        with replacing(path) as stage:
            stage.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: cannot be written, a name or record holds half a character ({error})") from error
