"""`mtlirt nrm`: option models."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mtlirt.cli.options import Force, How, Out, Quiet, Read, cross_validates, reads_answers, weight_of
from mtlirt.cli.talk import finish, talk

if TYPE_CHECKING:
    from mtlirt.models.settings import AnyFit
    from mtlirt.selection.cv_result import CVResult


class ModelName(StrEnum):
    """Option models by name."""

    nrm = "nrm"
    llm_nrm = "llm-nrm"
    mtl_nrm = "mtl-nrm"


class ChannelName(StrEnum):
    """What is fitted."""

    auto = "auto"
    hard = "hard"
    soft = "soft"


@reads_answers
@cross_validates
def nrm(
    read: Read,
    how: How,
    out: Out,
    model: Annotated[
        ModelName,
        typer.Option(help="nrm: Bock's. llm-nrm: with sharpness, position and fallback. mtl-nrm: a trait per domain."),
    ] = ModelName.nrm,
    channel: Annotated[
        ChannelName, typer.Option(help="hard: chosen options. soft: probabilities. auto: soft where there are any.")
    ] = ChannelName.auto,
    ridge: Annotated[float, typer.Option(help="Of slopes and intercepts; raise it where models are few.")] = 0.04,
    lam: Annotated[str | None, typer.Option(help="Penalty weight of mtl-nrm, as for fit; cv if not given.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit an option model: which option, not just right or wrong.

    Writes scores.csv, items.csv, options.csv (slopes and intercepts), information.csv (of each item, right or wrong and
    which wrong option), distractors.csv (wrong options that are the most probable ones somewhere), heterogeneity.csv,
    checks.csv, trace.csv, summary.txt, report.html and the folder fit; for llm-nrm models.csv (sharpness, preferences
    for positions); and, where lam is chosen by cross-validation, cv.csv, per_domain.csv, sines.csv and ranks.csv.
    """
    from mtlirt.cli.output import check_folder
    from mtlirt.errors import InputError
    from mtlirt.models.llm_nrm import fit_llm_nrm
    from mtlirt.models.nrm import NominalSettings, fit_mtl_nrm, fit_nrm
    from mtlirt.selection.cv import cv_mtl
    from mtlirt.solvers.adam import Adam
    from mtlirt.solvers.adam_options import AdamOptions

    weight = weight_of("cv" if lam is None else lam)
    if model is not ModelName.mtl_nrm and (lam is not None or how["resume"] is not None):
        raise InputError("--lam and --resume go with --model mtl-nrm")
    check_folder(out, force)
    result: AnyFit
    chosen: CVResult | None = None
    with talk(quiet, how["resume"]):
        table = read()
        if model is ModelName.nrm:
            result = fit_nrm(table, channel=channel.value, ridge=ridge, solver=how["solver"])
        elif model is ModelName.llm_nrm:
            reference = AdamOptions() if isinstance(how["solver"], Adam) else None
            result = fit_llm_nrm(table, channel=channel.value, ridge=ridge, solver=reference)
        elif weight == "cv" and len(NominalSettings(channel=channel.value).prepare(table).domains) > 1:
            chosen = cv_mtl(table, model="nrm", channel=channel.value, ridge=ridge, **how)
            result = chosen.fit
        else:
            result = fit_mtl_nrm(table, weight, channel=channel.value, ridge=ridge, solver=how["solver"])
        finish(result, table, out, quiet, chosen, read.log)
