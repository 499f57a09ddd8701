"""What a command says while it works and when it is done."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.models.settings import AnyFit
    from mtlirt.report import Evidence
    from mtlirt.selection.cv_result import CVResult


def say(result: object, out: Path, files: Iterable[str], quiet: bool) -> None:
    """Print a result and where its files are."""
    if not quiet:
        typer.echo(f"{result}\n\nResults are in {out}: {', '.join(files)}")


def finish(
    result: AnyFit,
    responses: Responses,
    out: Path,
    quiet: bool,
    cv: CVResult | None = None,
    log: dict[str, Any] | None = None,
) -> None:
    """Write all files of a fit with its report, and print its summary."""
    from mtlirt.cli import StoppedError
    from mtlirt.cli.output import FIT_FILES, fit_files, write
    from mtlirt.report import Evidence

    files = fit_files(result)
    write(out, files, stale=FIT_FILES)
    try:  # the results are safe before what is said about them
        files |= _told(result, out, Evidence.of(result, cv, responses, log))
    except KeyboardInterrupt as error:
        raise StoppedError(f"interrupted while the report was made; the results are in {out}") from error
    say(result.summary(), out, files, quiet)


def _told(result: AnyFit, out: Path, evidence: Evidence) -> dict[str, Any]:
    """Write what is known beside a fit and, once that is safe, the page."""
    from mtlirt._version import __version__
    from mtlirt.cli.output import write
    from mtlirt.report import facts, render

    files: dict[str, Any] = evidence.files()
    if files:
        write(out, files)
    page = {"report.html": render(facts(result, replace(evidence, fitted_with=__version__)))}
    write(out, page)
    return files | page


@contextmanager
def talk(quiet: bool, resume: Path | None = None) -> Iterator[None]:
    """Progress bars on a terminal and one-line warnings, on standard error, unless quiet."""
    from mtlirt._progress import progress
    from mtlirt.cli import StoppedError

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            sys.stderr.write(f"mtlirt: warning: {message}\n")

    try:
        with warnings.catch_warnings(), progress() if sys.stderr.isatty() and not quiet else nullcontext():
            warnings.showwarning = show
            warnings.simplefilter("always")
            yield
    except KeyboardInterrupt as error:
        kept = "" if resume is None else f"; with --resume it goes on from what is kept in {resume}"
        raise StoppedError(f"interrupted, no results were written{kept}") from error
