"""Commands and their options. Work is done elsewhere; imports wait until a command runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtlirt.cli.importing import import_logs
from mtlirt.cli.nominal import nrm
from mtlirt.cli.options import CV_PANEL, Force, How, Out, Quiet, Read, cross_validates, reads_answers, weight_of
from mtlirt.cli.simulate import simulated
from mtlirt.cli.talk import finish, say, talk

if TYPE_CHECKING:
    from mtlirt.selection.cv_result import CVResult

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="From the item-level answers of many language models to one score per domain and one general score.",
)

app.add_typer(simulated, name="simulate")
app.command()(nrm)
app.command("import")(import_logs)


class GridName(StrEnum):
    """Grids of lam by name."""

    threshold = "threshold"
    paper = "paper"


class SchemeName(StrEnum):
    """What a fold holds out."""

    cells = "cells"
    items = "items"


Grid = Annotated[
    GridName,
    typer.Option(help="threshold: .03 to 1 times lam_max. paper: C_lambda = .1 to 2.", rich_help_panel=CV_PANEL),
]
Scheme = Annotated[SchemeName, typer.Option(help="What a fold holds out: answers or items.", rich_help_panel=CV_PANEL)]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from mtlirt._version import __version__

        typer.echo(f"mtlirt {__version__}")
        raise typer.Exit


@app.command()
@reads_answers
@cross_validates
def fit(
    read: Read,
    how: How,
    out: Out,
    lam: Annotated[
        str, typer.Option(help="Penalty weight: cv chooses it; 0 separate domains, inf one trait for all.")
    ] = "cv",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit the multi-domain 2PL: one score per domain and a general score for every model, and the items.

    Writes report.html, a page with all of it that any browser opens; scores.csv, items.csv, heterogeneity.csv,
    checks.csv (items that run against the general trait or repeat another), trace.csv, summary.txt and the folder fit;
    and, where lam is chosen by cross-validation, cv.csv, per_domain.csv, sines.csv (the path) and ranks.csv (of each
    model under each regime). A record that `mtlirt import` left beside the table is copied as reading.json.
    """
    from mtlirt._parallel import check_jobs
    from mtlirt.cli.output import check_folder
    from mtlirt.data.splits import check_folds
    from mtlirt.errors import InputError
    from mtlirt.models.mtl import fit_mtl
    from mtlirt.selection.cv import cv_mtl

    weight = weight_of(lam)
    check_folds(how["folds"], how["seed"])
    check_jobs(how["n_jobs"])
    if lam != "cv" and how["resume"] is not None:
        raise InputError("--resume goes with --lam cv: a fit at a given lam has nothing to resume")
    check_folder(out, force)
    chosen: CVResult | None = None
    with talk(quiet, how["resume"]):
        table = read()
        if lam == "cv" and len(table.domains) > 1:
            chosen = cv_mtl(table, **how)
            result = chosen.fit
        else:
            result = fit_mtl(table, weight, solver=how["solver"])
            result.settings["seed"] = how["seed"]
        finish(result, table, out, quiet, chosen, read.log)


@app.command()
@reads_answers
@cross_validates
def cv(
    read: Read,
    how: How,
    out: Out,
    grid: Grid = GridName.threshold,
    scheme: Scheme = SchemeName.cells,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """How much should the domains borrow? The penalty weight by cross-validation.

    Writes cv.csv (the curve), folds.csv, per_domain.csv, path.csv and sines.csv (the path of all answers, by lam and by
    lam and domain), summary.txt.
    """
    from mtlirt.cli.output import check_folder, write
    from mtlirt.selection.cv import cv_mtl

    check_folder(out, force)
    with talk(quiet, how["resume"]):
        result = cv_mtl(read(), grid=grid.value, scheme=scheme.value, **how)
    files: dict[str, Any] = {
        "cv.csv": result.table,
        "folds.csv": result.folds,
        "per_domain.csv": result.per_domain,
        "path.csv": result.path.table,
        "sines.csv": result.path.sines.melt(var_name="domain", value_name="sine", ignore_index=False).reset_index(),
        "summary.txt": f"{result}\n",
    }
    write(out, files)
    say(result, out, files, quiet)


@app.command()
@reads_answers
@cross_validates
def compare(
    read: Read,
    how: How,
    out: Out,
    top: Annotated[int, typer.Option(help="Number of leading models whose overlap is counted.")] = 20,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Separate domains, the chosen penalty, complete pooling and mean scores side by side.

    Writes compare.csv, per_domain.csv, ranks.csv, rank_correlation.csv, top_shared.csv, flat_items.csv, cv.csv and
    summary.txt.
    """
    from mtlirt.cli.output import check_folder, write
    from mtlirt.selection.compare import compare_pooling

    check_folder(out, force)
    with talk(quiet, how["resume"]):
        result = compare_pooling(read(), top=top, **how)
    files: dict[str, Any] = {
        "compare.csv": result.table,
        "per_domain.csv": result.per_domain,
        "ranks.csv": result.movers,
        "rank_correlation.csv": result.rank_correlation.rename_axis("regime").reset_index(),
        "top_shared.csv": result.top_shared.rename_axis("regime").reset_index(),
        "flat_items.csv": result.flat_items,
        "cv.csv": result.cv.table,
        "summary.txt": f"{result}\n",
    }
    write(out, files)
    say(result, out, files, quiet)


@app.command()
@reads_answers
def score(
    fit: Annotated[Path, typer.Argument(help="A saved fit: the folder `fit`, or the results folder it lies in.")],
    read: Read,
    out: Out,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Score new models with the fitted items held fixed: scores.csv."""
    from mtlirt.cli.output import check_folder, write
    from mtlirt.results.store import load

    check_folder(out, force)
    with talk(quiet):
        fitted = load(fit / "fit" if (fit / "fit").is_dir() else fit)
        scores = fitted.score(read())
    write(out, {"scores.csv": scores})
    if not quiet:
        typer.echo(f"{len(scores):,} models scored against {len(fitted.items):,} items: {out / 'scores.csv'}")


@app.command()
def demo(out: Out = Path("mtlirt-demo"), force: Force = False, quiet: Quiet = False) -> None:
    """Fit the bundled demo answers, lam chosen by cross-validation, and say where the results lie."""
    from mtlirt.cli.output import check_folder
    from mtlirt.datasets import demo as demo_responses
    from mtlirt.selection.cv import cv_mtl

    check_folder(out, force)
    with talk(quiet):
        responses = demo_responses()
        chosen = cv_mtl(responses)
        finish(chosen.fit, responses, out, quiet, chosen)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of fit, nrm or demo, or a saved fit.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write, .html.")] = Path("report.html"),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """One html page about a fit, for people who decide: leaderboard, domains, models, items, and what is sure.

    It takes the fit and what lies beside it: cv.csv, per_domain.csv, sines.csv, ranks.csv, checks.csv, reading.json.
    """
    from mtlirt.cli.output import check_table
    from mtlirt.report import Evidence, facts, render
    from mtlirt.report.page import write_page
    from mtlirt.results.store import load

    check_table(out, force, kinds=(".html",))
    with talk(quiet):
        fitted = load(folder / "fit" if (folder / "fit").is_dir() else folder)
        page = render(facts(fitted, Evidence.read(folder)))
        write_page(out, page)
    if not quiet:
        typer.echo(f"report of {len(fitted.models):,} models: {out} ({len(page.encode()) / 1e6:.1f} MB)")
