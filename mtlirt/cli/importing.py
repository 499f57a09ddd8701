"""`mtlirt import`: evaluation logs to one table of answers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mtlirt.cli.options import JOBS_HELP, Force, Quiet
from mtlirt.cli.talk import talk


class FormatName(StrEnum):
    """Kinds of logs by name."""

    auto = "auto"
    lm_eval = "lm-eval"
    inspect = "inspect"
    helm = "helm"
    eee = "eee"
    openllm_v1 = "openllm-v1"
    openllm_v2 = "openllm-v2"
    table = "table"


class DomainBy(StrEnum):
    """What the domains are."""

    task = "task"
    subject = "subject"
    prefix = "prefix"


class Failed(StrEnum):
    """What a failed answer counts as."""

    missing = "missing"
    wrong = "wrong"


def import_logs(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Logs, and folders of logs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write, .parquet.")],
    format: Annotated[FormatName, typer.Option(help="Kind of the logs; auto tells it, and refuses several kinds.")] = (
        FormatName.auto
    ),
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Score to take. May be given several times: the first that a task has."),
    ] = None,
    filter: Annotated[
        list[str] | None,
        typer.Option(help="Filter of lm-evaluation-harness to take. May be given several times."),
    ] = None,
    domain_by: Annotated[
        DomainBy,
        typer.Option(help="Domain of mmlu_law: task mmlu_law, subject law (or the log's own), prefix mmlu."),
    ] = DomainBy.task,
    model: Annotated[str | None, typer.Option(help="Name for logs that do not say whose they are.")] = None,
    failed: Annotated[
        Failed, typer.Option(help="Answers that ended with an error or at a limit (Inspect, Every Eval Ever).")
    ] = Failed.missing,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Leave out what cannot be used, and say so, instead of refusing all.")
    ] = False,
    jobs: Annotated[int, typer.Option(help=JOBS_HELP)] = 1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Read evaluation logs of lm-evaluation-harness, Inspect, HELM, Every Eval Ever or the Open LLM Leaderboard.

    Writes the answers as one table, which the other commands read, and beside it, as .log.json, the record of what was
    read and what was left out. Folders are searched to their depths; compressed files other than .eval, .parquet and
    .csv.gz are not read. By default the score is the one by which the Open LLM Leaderboard or HELM ranks, else the only
    one. A model is named by its log, by the results_*.json of the same time, by --model, or by its folder.
    """
    from mtlirt.cli.output import check_table
    from mtlirt.data.store import write_frame
    from mtlirt.readers.logs import read_logs

    record = out.with_suffix(".log.json")
    check_table(out, force, kinds=(".parquet",))
    check_table(record, force, kinds=(".json",))
    with talk(quiet):
        responses, log = read_logs(
            paths,
            format=format.value,
            metric=metric,
            filter=filter,
            domain_by=domain_by.value,
            model=model,
            failed=failed.value,
            lenient=lenient,
            n_jobs=jobs,
        )
    write_frame(out, responses.to_long())
    log.save(record)
    if not quiet:
        typer.echo(f"{log}\n\n{responses}: {out}\nall of the record: {record}")
