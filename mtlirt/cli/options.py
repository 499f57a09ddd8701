"""Options that several commands share, each group as one parameter of the command.

A command that takes `read` has the argument RESPONSES and the options of its columns; one that takes `how` has those of
cross-validation; one that takes `study` has those of replicated studies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mtlirt.data import Responses

COLUMNS = ("model", "domain", "item", "score", "option", "probs", "logprobs", "key", "n_options", "trials")
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; made if missing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are already there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
How = dict[str, Any]
Command = Callable[..., None]
CV_PANEL = "Cross-validation"
JOBS_HELP = "Processes; -1: one per core. The results are the same."


class DomainBy(StrEnum):
    """Rules that read a domain from an item's name."""

    prefix = "prefix"


class SolverName(StrEnum):
    """Solvers by name."""

    block = "block"
    adam = "adam"


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _expand(name: str, options: list[inspect.Parameter], combine: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command `options` in place of its parameter `name`, which gets what `combine` makes of them."""

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        before = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        position = [p.name for p in before].index(name)
        parameters = [*before[:position], *options, *before[position + 1 :]]

        @wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(**{name: combine(**given)}, **values)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


@dataclass(frozen=True)
class Read:
    """The table of answers that a command was given."""

    path: Path
    domains: str | None
    columns: dict[str, Any]

    def __call__(self) -> Responses:
        """Read it."""
        from mtlirt.readers.tables import read_responses

        return read_responses(self.path, domains=self.domains, **self.columns)

    @property
    def log(self) -> dict[str, Any] | None:
        """The record that `mtlirt import` wrote beside the table, or None."""
        from mtlirt.report.evidence import read_record

        return read_record(self.path.with_suffix(".log.json"))


def _reader(responses: Path, domain_by: DomainBy | None, **columns: str) -> Read:
    named = {name.removesuffix("_col"): column for name, column in columns.items()}
    return Read(responses, None if domain_by is None else domain_by.value, named)


def _arguments(solver: SolverName, folds: int, seed: int, jobs: int, resume: Path | None) -> How:
    """Arguments of `cv_mtl`."""
    from mtlirt.solvers.adam import Adam
    from mtlirt.solvers.block import Block

    chosen = Block() if solver is SolverName.block else Adam()
    return {"solver": chosen, "folds": folds, "seed": seed, "n_jobs": jobs, "resume": resume}


@dataclass(frozen=True)
class Study:
    """How a study is run, and where."""

    out: Path
    reps: int
    estimators: list[str]
    seed: int
    jobs: int
    scheduler: str | None
    resume: bool

    def run(self, designs: list[Any], files: tuple[str, ...]) -> Any:
        """The frame of `run_study`; InputError if `out` holds a study, or one of `files`, and is not to be resumed."""
        from mtlirt.errors import InputError
        from mtlirt.simulation.study import run_study

        if self.out.exists() and not self.out.is_dir():
            raise InputError(f"{self.out}: is a file, not a folder; choose another --out")
        held = [name for name in ("replications", "study.parquet", *files) if (self.out / name).exists()]
        if held and not self.resume:
            raise InputError(
                f"{self.out}: holds a study ({', '.join(held)}); add --resume to go on with it, or choose another --out"
            )
        return run_study(
            designs,
            out=self.out,
            reps=self.reps,
            estimators=self.estimators,
            seed=self.seed,
            n_jobs=self.jobs,
            scheduler=self.scheduler,
        )


def _study(estimator: list[str] | None, **how: Any) -> Study:
    from mtlirt.simulation.study import DEFAULT

    return Study(estimators=list(estimator or DEFAULT), **how)


def weight_of(lam: str) -> Any:
    """The penalty weight that --lam names, or "cv"; InputError for anything else."""
    from mtlirt._arguments import penalty_weight

    try:
        return penalty_weight(float(lam))
    except ValueError:
        return lam if lam == "cv" else penalty_weight(lam)


_COLUMN = Annotated[str, typer.Option(help="Column of a long table.", rich_help_panel="Columns of a long table")]
reads_answers = _expand(
    "read",
    [
        _parameter(
            "responses", Annotated[Path, typer.Argument(help="Table of answers: .csv, .csv.gz, .parquet or .jsonl.")]
        ),
        _parameter(
            "domain_by",
            Annotated[DomainBy | None, typer.Option(help="prefix: domain = item's text before the first dot.")],
            None,
        ),
        *(_parameter(f"{name}_col", _COLUMN, name) for name in COLUMNS),
    ],
    _reader,
)
cross_validates = _expand(
    "how",
    [
        _parameter(
            "solver", Annotated[SolverName, typer.Option(help="block, or adam, the paper's.")], SolverName.block
        ),
        _parameter("folds", Annotated[int, typer.Option(help="Number of folds.", rich_help_panel=CV_PANEL)], 5),
        _parameter("seed", Annotated[int, typer.Option(help="Seed of the folds.", rich_help_panel=CV_PANEL)], 0),
        _parameter("jobs", Annotated[int, typer.Option(help=JOBS_HELP, rich_help_panel=CV_PANEL)], 1),
        _parameter(
            "resume",
            Annotated[
                Path | None,
                typer.Option(
                    help="Folder that keeps finished work, to go on after an interruption.", rich_help_panel=CV_PANEL
                ),
            ],
            None,
        ),
    ],
    _arguments,
)
runs_study = _expand(
    "study",
    [
        _parameter("out", Out),
        _parameter("reps", Annotated[int, typer.Option(help="Replications of each design.")], 100),
        _parameter(
            "estimator",
            Annotated[
                list[str] | None,
                typer.Option(
                    help="rmtl, separate, pooled, mean_score, rmtl_items, adam; the first four if none is named. adam, "
                    "the paper's solver, is timed on two replications."
                ),
            ],
            None,
        ),
        _parameter("seed", Annotated[int, typer.Option(help="Seed of the study.")], 0),
        _parameter("jobs", Annotated[int, typer.Option(help=JOBS_HELP)], 1),
        _parameter(
            "scheduler",
            Annotated[
                str | None,
                typer.Option(help="Address of a dask scheduler, tcp://host:port, to use in place of --jobs."),
            ],
            None,
        ),
        _parameter(
            "resume",
            Annotated[bool, typer.Option("--resume", help="Go on with, or add to, the study in --out.")],
            False,
        ),
    ],
    _study,
)
