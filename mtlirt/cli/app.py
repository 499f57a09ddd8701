"""Commands and their options. Work is done elsewhere; imports wait until a command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mtlirt.data import Responses
    from mtlirt.results.fit import Fit

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="From the item-level answers of many language models to one score per domain and one general score.",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; made if missing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are already there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Column = Annotated[str, typer.Option(help="Column of a long table.", rich_help_panel="Columns of a long table")]


class SolverName(StrEnum):
    """Solvers by name."""

    block = "block"
    adam = "adam"


class DomainBy(StrEnum):
    """Rules that read a domain from an item's name."""

    prefix = "prefix"


Prefix = Annotated[DomainBy | None, typer.Option(help="prefix: domain = item's text before the first dot.")]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from mtlirt._version import __version__

        typer.echo(f"mtlirt {__version__}")
        raise typer.Exit


@app.command()
def fit(
    responses: Annotated[Path, typer.Argument(help="Table of answers: .csv, .csv.gz, .parquet or .jsonl.")],
    lam: Annotated[float, typer.Option(help="Penalty weight: 0 separate domains, inf one trait for all.")],
    out: Out,
    solver: Annotated[SolverName, typer.Option(help="block, or adam, the paper's.")] = SolverName.block,
    domain_by: Prefix = None,
    seed: Annotated[int, typer.Option(help="Recorded with the results; a fit at a given lam has no random step.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    model_col: Column = "model",
    domain_col: Column = "domain",
    item_col: Column = "item",
    score_col: Column = "score",
    option_col: Column = "option",
    probs_col: Column = "probs",
    key_col: Column = "key",
    n_options_col: Column = "n_options",
    trials_col: Column = "trials",
) -> None:
    """Fit the multi-domain 2PL: scores.csv, items.csv, heterogeneity.csv, trace.csv, summary.txt and the folder fit."""
    from mtlirt.cli.output import check_folder
    from mtlirt.models.mtl import fit_mtl
    from mtlirt.solvers.adam import Adam
    from mtlirt.solvers.block import Block

    check_folder(out, force)
    with _talk(quiet):
        table = _read(
            responses,
            domain_by,
            model=model_col,
            domain=domain_col,
            item=item_col,
            score=score_col,
            option=option_col,
            probs=probs_col,
            key=key_col,
            n_options=n_options_col,
            trials=trials_col,
        )
        result = fit_mtl(table, lam, solver=Block() if solver is SolverName.block else Adam())
    result.settings["seed"] = seed
    _report(result, out, quiet)


@app.command()
def score(
    fit: Annotated[Path, typer.Argument(help="A saved fit: the folder `fit`, or the results folder it lies in.")],
    new: Annotated[Path, typer.Argument(help="Answers of new models to fitted items.")],
    out: Out,
    domain_by: Prefix = None,
    force: Force = False,
    quiet: Quiet = False,
    model_col: Column = "model",
    domain_col: Column = "domain",
    item_col: Column = "item",
    score_col: Column = "score",
) -> None:
    """Score new models with the fitted items held fixed: scores.csv."""
    from mtlirt.cli.output import check_folder, write
    from mtlirt.results.store import load

    check_folder(out, force)
    with _talk(quiet):
        fitted = load(fit / "fit" if (fit / "fit").is_dir() else fit)
        table = _read(new, domain_by, model=model_col, domain=domain_col, item=item_col, score=score_col)
        scores = fitted.score(table)
    write(out, {"scores.csv": scores})
    if not quiet:
        typer.echo(f"{len(scores):,} models scored against {len(fitted.items):,} items: {out / 'scores.csv'}")


@app.command()
def demo(out: Out = Path("mtlirt-demo"), force: Force = False, quiet: Quiet = False) -> None:
    """Fit the bundled demo answers at a fixed lam and say where the results lie."""
    from mtlirt.cli.output import check_folder
    from mtlirt.datasets import demo as demo_responses
    from mtlirt.models.mtl import fit_mtl

    check_folder(out, force)
    with _talk(quiet):
        result = fit_mtl(demo_responses(), 1.0)
    _report(result, out, quiet)


def _read(path: Path, domain_by: DomainBy | None, **columns: Any) -> Responses:
    from mtlirt.readers.tables import read_responses

    return read_responses(path, domains=None if domain_by is None else domain_by.value, **columns)


def _report(result: Fit, out: Path, quiet: bool) -> None:
    from mtlirt.cli.output import write_fit

    write_fit(result, out)
    if not quiet:
        typer.echo(str(result.summary()))
        typer.echo(f"\nResults are in {out}: scores.csv, items.csv, heterogeneity.csv, trace.csv, summary.txt, fit/")


@contextmanager
def _talk(quiet: bool) -> Iterator[None]:
    """Progress bars and one-line warnings on standard error, unless quiet."""
    from mtlirt._progress import progress

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            sys.stderr.write(f"mtlirt: warning: {message}\n")

    with warnings.catch_warnings(), nullcontext() if quiet else progress():
        warnings.showwarning = show
        warnings.simplefilter("always")
        yield
