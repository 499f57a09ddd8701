"""`mtlirt simulate`: studies, and answers to play with."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtlirt.cli.options import Force, Quiet, Study, runs_study
from mtlirt.cli.talk import say, talk

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

simulated = typer.Typer(no_args_is_help=True, help="Simulation studies and simulated answers.")
_PICTURE = (7.0, 4.0)  # inches


class CenterName(StrEnum):
    """Centres of the heterogeneity design by name."""

    grid = "grid"
    normal = "normal"
    clustered = "clustered"
    skewed = "skewed"


@simulated.command()
@runs_study
def heterogeneity(
    study: Study,
    h0: Annotated[list[float], typer.Option(help="Heterogeneity, the largest sine; several values may follow.")],
    more: Annotated[list[float] | None, typer.Argument(metavar="", show_default=False, hidden=True)] = None,
    center: Annotated[CenterName, typer.Option(help="How the models are spread.")] = CenterName.grid,
    quiet: Quiet = False,
) -> None:
    """The R-MTL paper's study of heterogeneous domains.

    Writes study.parquet (every estimate's error), table.csv (means and paired differences), general.png and domains.png
    (box plots, figures 5 and 6 of the paper).
    """
    from mtlirt.cli.output import write
    from mtlirt.plots import study_domains, study_general
    from mtlirt.simulation.heterogeneity import HeterogeneityDesign
    from mtlirt.simulation.summary import reference_cost, study_table

    designs = [HeterogeneityDesign(h0=h, center=center.value) for h in [*h0, *(more or [])]]
    with talk(quiet, study.out):
        frame = study.run(designs, ("table.csv", "general.png", "domains.png"))
    table = study_table(frame, against=study.estimators[0])
    files: dict[str, Any] = {
        "table.csv": table,
        "general.png": _picture(study_general, frame),
        "domains.png": _picture(study_domains, frame),
    }
    write(study.out, files)
    text = table.to_string(index=False, float_format="{:.4f}".format)
    cost = reference_cost(frame)
    say(text if cost is None else f"{text}\n\n{cost}", study.out, ("study.parquet", *files), quiet)


@simulated.command()
@runs_study
def rates(study: Study, quiet: Quiet = False) -> None:
    """How the errors fall as models and items grow in number, and grow as the domains differ, beside the theory.

    Writes study.parquet, table.csv (means) and rates.csv (slopes).
    """
    from mtlirt.cli.output import write
    from mtlirt.errors import InputError
    from mtlirt.simulation.rates import rates_designs, rates_table
    from mtlirt.simulation.summary import study_table

    if not {"separate", "pooled"} <= set(study.estimators):
        raise InputError("rates compare with the estimators separate and pooled: name both, or none")
    with talk(quiet, study.out):
        frame = study.run(rates_designs(), ("table.csv", "rates.csv"))
    table = rates_table(frame)
    files = {"table.csv": study_table(frame, against=study.estimators[0]), "rates.csv": table}
    write(study.out, files)
    say(table.to_string(index=False, float_format="{:.3f}".format), study.out, ("study.parquet", *files), quiet)


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


def _picture(plot: Callable[..., Axes], frame: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_PICTURE, layout="constrained")
    plot(frame, ax=figure.subplots())
    return figure
