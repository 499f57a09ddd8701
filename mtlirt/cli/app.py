"""Commands and their options. Work is done elsewhere; imports wait until a command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtlirt.cli.options import CV_PANEL, JOBS_HELP, How, Read, cross_validates, reads_answers

if TYPE_CHECKING:
    from mtlirt.results.fit import Fit
    from mtlirt.selection.cv_result import CVResult

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="From the item-level answers of many language models to one score per domain and one general score.",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; made if missing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are already there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


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

    Writes scores.csv, items.csv, heterogeneity.csv, trace.csv, summary.txt and the folder fit; and, where lam is chosen
    by cross-validation, cv.csv and per_domain.csv.
    """
    from mtlirt._parallel import check_jobs
    from mtlirt.cli.output import check_folder
    from mtlirt.data.splits import check_folds
    from mtlirt.errors import InputError
    from mtlirt.models.mtl import fit_mtl
    from mtlirt.selection.cv import cv_mtl

    weight = _weight(lam)
    check_folds(how["folds"], how["seed"])
    check_jobs(how["n_jobs"])
    if lam != "cv" and how["resume"] is not None:
        raise InputError("--resume goes with --lam cv: a fit at a given lam has nothing to resume")
    check_folder(out, force)
    more: dict[str, Any] = {}
    with _talk(quiet, how["resume"]):
        table = read()
        if lam == "cv" and len(table.domains) > 1:
            chosen = cv_mtl(table, **how)
            result, more = chosen.fit, _curve(chosen)
        else:
            result = fit_mtl(table, weight, solver=how["solver"])
            result.settings["seed"] = how["seed"]
    _report(result, out, quiet, more)


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
    with _talk(quiet, how["resume"]):
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
    _say(result, out, files, quiet)


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
    with _talk(quiet, how["resume"]):
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
    _say(result, out, files, quiet)


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
    with _talk(quiet):
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
    with _talk(quiet):
        chosen = cv_mtl(demo_responses())
    _report(chosen.fit, out, quiet, _curve(chosen))


simulated = typer.Typer(no_args_is_help=True, help="Simulated answers.")
app.add_typer(simulated, name="simulate")


class CenterName(StrEnum):
    """Centres of the heterogeneity design by name."""

    grid = "grid"
    normal = "normal"
    clustered = "clustered"
    skewed = "skewed"


@simulated.command()
def heterogeneity(
    out: Out,
    h0: Annotated[list[float], typer.Option(help="Heterogeneity, the largest sine; several values may follow.")],
    more: Annotated[list[float] | None, typer.Argument(metavar="", show_default=False, hidden=True)] = None,
    reps: Annotated[int, typer.Option(help="Replications of each h0.")] = 100,
    center: Annotated[CenterName, typer.Option(help="How the models are spread.")] = CenterName.grid,
    estimator: Annotated[
        list[str] | None,
        typer.Option(help="rmtl, separate, pooled, mean_score, adam; all but adam if none is named."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the study.")] = 0,
    jobs: Annotated[int, typer.Option(help=JOBS_HELP)] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with, or add to, the study in --out.")] = False,
    quiet: Quiet = False,
) -> None:
    """The R-MTL paper's study of heterogeneous domains: study.parquet (every estimate) and table.csv (the means)."""
    from mtlirt.cli.output import write
    from mtlirt.errors import InputError
    from mtlirt.simulation.heterogeneity import HeterogeneityDesign
    from mtlirt.simulation.study import DEFAULT, run_study
    from mtlirt.simulation.summary import study_table

    if (out / "replications").exists() and not resume:
        raise InputError(f"{out}: holds a study; add --resume to go on with it, or choose another --out")
    designs = [HeterogeneityDesign(h0=h, center=center.value) for h in [*h0, *(more or [])]]
    names = estimator or DEFAULT
    with _talk(quiet, out):
        study = run_study(designs, out=out, reps=reps, estimators=names, seed=seed, n_jobs=jobs)
    table = study_table(study, against=names[0])
    write(out, {"table.csv": table})
    _say(table.to_string(index=False, float_format="{:.4f}".format), out, ("study.parquet", "table.csv"), quiet)


@simulated.command()
def leaderboard(
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write: .parquet, .csv or .csv.gz.")],
    models: Annotated[int, typer.Option(help="Number of models.")] = 4272,
    missing: Annotated[float, typer.Option(help="Share of the answers left out at random.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Answers to MMLU's 56 subjects, with families of models, clones, dead and inverted items."""
    from mtlirt.cli.output import check_table
    from mtlirt.data.store import write_frame
    from mtlirt.simulation.draw import simulate
    from mtlirt.simulation.leaderboard import LeaderboardDesign

    check_table(out, force)
    responses = simulate(LeaderboardDesign(models=models, missing=missing), seed).responses
    write_frame(out, responses.to_long())
    if not quiet:
        typer.echo(f"{responses}: {out}")


def _weight(lam: str) -> Any:
    from mtlirt._arguments import penalty_weight

    try:
        return penalty_weight(float(lam))
    except ValueError:
        return lam if lam == "cv" else penalty_weight(lam)


def _curve(chosen: CVResult) -> dict[str, Any]:
    return {"cv.csv": chosen.table, "per_domain.csv": chosen.per_domain}


def _report(result: Fit, out: Path, quiet: bool, more: dict[str, Any]) -> None:
    from mtlirt.cli.output import FIT_FILES, fit_files, write

    files = {**fit_files(result), **more}
    write(out, files, stale=FIT_FILES)
    _say(result.summary(), out, files, quiet)


def _say(result: object, out: Path, files: Iterable[str], quiet: bool) -> None:
    if not quiet:
        typer.echo(f"{result}\n\nResults are in {out}: {', '.join(files)}")


@contextmanager
def _talk(quiet: bool, resume: Path | None = None) -> Iterator[None]:
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
