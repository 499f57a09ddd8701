"""What a command says while it works and when it is done."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from mtlirt.models.settings import AnyFit
    from mtlirt.selection.cv_result import CVResult


def say(result: object, out: Path, files: Iterable[str], quiet: bool) -> None:
    """Print a result and where its files are."""
    if not quiet:
        typer.echo(f"{result}\n\nResults are in {out}: {', '.join(files)}")


def report(result: AnyFit, out: Path, quiet: bool, more: Mapping[str, Any]) -> None:
    """Write all files of a fit, and `more`, and print its summary."""
    from mtlirt.cli.output import FIT_FILES, fit_files, write

    files = {**fit_files(result), **more}
    write(out, files, stale=FIT_FILES)
    say(result.summary(), out, files, quiet)


def curve(chosen: CVResult) -> dict[str, Any]:
    """The files of a cross-validation that go with its fit."""
    return {"cv.csv": chosen.table, "per_domain.csv": chosen.per_domain}


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
