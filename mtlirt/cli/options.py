"""The part that all commands share: a table of answers and the options that say how it is laid out."""

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


class DomainBy(StrEnum):
    """Rules that read a domain from an item's name."""

    prefix = "prefix"


def reads_answers(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument RESPONSES and the options of its columns.

    The command takes `read` in their place: a function without arguments that returns the Responses.
    """
    own = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    table = Annotated[Path, typer.Argument(help="Table of answers: .csv, .csv.gz, .parquet or .jsonl.")]
    prefix = Annotated[DomainBy | None, typer.Option(help="prefix: domain = item's text before the first dot.")]
    column = Annotated[str, typer.Option(help="Column of a long table.", rich_help_panel="Columns of a long table")]
    responses = inspect.Parameter("responses", keyword, annotation=table)
    parameters = [
        *(responses if p.name == "read" else p.replace(kind=keyword) for p in own.parameters.values()),
        inspect.Parameter("domain_by", keyword, annotation=prefix, default=None),
        *(inspect.Parameter(f"{name}_col", keyword, annotation=column, default=name) for name in COLUMNS),
    ]

    @wraps(command)
    def run(responses: Path, domain_by: DomainBy | None, **values: Any) -> None:
        columns = {name: values.pop(f"{name}_col") for name in COLUMNS}

        def read() -> Any:
            from mtlirt.readers.tables import read_responses

            return read_responses(responses, domains=None if domain_by is None else domain_by.value, **columns)

        command(read=read, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
