"""What a command says while it works and when it is done."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.models.settings import AnyFit
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
    from mtlirt.cli.output import FIT_FILES, fit_files, write
    from mtlirt.report import Evidence, facts, render

    evidence = Evidence.of(result, cv, responses, log)
    files = {**fit_files(result), **evidence.files()}
    write(out, files, stale=FIT_FILES)
    page = {"report.html": render(facts(result, evidence))}  # the results are safe before it is made
    write(out, page)
    say(result.summary(), out, [*files, *page], quiet)


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
