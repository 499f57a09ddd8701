"""Options that several commands share, each group as one parameter of the command.

A command that takes `read` has the argument RESPONSES and the options of its columns; one that takes `how` has those of
cross-validation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

COLUMNS = ("model", "domain", "item", "score", "option", "probs", "key", "n_options", "trials")
Read = Callable[[], Any]
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


def _reader(responses: Path, domain_by: DomainBy | None, **columns: str) -> Read:
    def read() -> Any:
        from mtlirt.readers.tables import read_responses

        named: dict[str, Any] = {name.removesuffix("_col"): column for name, column in columns.items()}
        return read_responses(responses, domains=None if domain_by is None else domain_by.value, **named)

    return read


def _arguments(solver: SolverName, folds: int, seed: int, jobs: int, resume: Path | None) -> How:
    """Arguments of `cv_mtl`."""
    from mtlirt.solvers.adam import Adam
    from mtlirt.solvers.block import Block

    chosen = Block() if solver is SolverName.block else Adam()
    return {"solver": chosen, "folds": folds, "seed": seed, "n_jobs": jobs, "resume": resume}


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
