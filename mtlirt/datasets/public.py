"""Public data, fetched on demand."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from mtlirt._progress import count
from mtlirt.data import Responses
from mtlirt.data.store import write_frame
from mtlirt.datasets.catalogue import SETS, Details, Table
from mtlirt.datasets.download import RemoteFile, cache_folder, obtain
from mtlirt.datasets.hub import local_details, obtain_details
from mtlirt.datasets.local import data_folder, read_local
from mtlirt.errors import DataWarning, InputError
from mtlirt.readers.tables import read_responses


def fetch(name: str, *, models: Collection[str] | None = None, tasks: Collection[str] | None = None) -> Responses:
    """Answers that others have published. Nothing of them is in this package: they are downloaded when asked for.

    * mmlu_pro: 29 models x 12,032 items in 14 domains, with chosen options and keys. Apache-2.0, from GitHub
      TIGER-AI-Lab/MMLU-Pro, eval_results.
    * lawbench: 51 models x 1,500 items in 3 domains, with chosen options and keys; a text that names several options or
      none counts as wrong. Apache-2.0, from GitHub open-compass/LawBench.
    * swebench_verified: 134 agents x 500 items. MIT, from GitHub dariakryvosheieva/agent-psychometrics.
    * terminalbench: 112 agents x 89 items. MIT, from the same.
    * open_llm_leaderboard_v1, open_llm_leaderboard_v2: thousands of models, 6 benchmarks each. From the Hugging Face
      Hub, open-llm-leaderboard-old and open-llm-leaderboard (in part gated); what licence holds is said there and by
      the benchmarks. Needs the extra: pip install 'mtlirt[hub]'.

    Parameters
    ----------
    models : names to keep. For the leaderboards they are needed, as on the Hub: "org/model".
    tasks : benchmarks or subjects to keep, plain names or patterns ("math", "bbh_*"), as the set's domains are named.
        For the leaderboards only their files are downloaded: "mmlu_pro", "bbh_*", "gpqa_diamond", ... in version 2, all
        by default; "arc", "gsm8k", "hellaswag", "mmlu", "truthfulqa", "winogrande" in version 1, these six by default,
        or the files' own words ("hendrycksTest-*").

    Where it is kept and looked for
    -------------------------------
    Downloads are kept in the operating system's cache folder for "mtlirt", or where MTLIRT_CACHE says, and are not made
    again. A download that breaks off is resumed, a busy server is given the time it asks for, and a file is there
    completely or not at all. HF_TOKEN and HF_ENDPOINT hold as for huggingface_hub.

    MTLIRT_DATA names a folder that is looked into first: a table <name>.parquet, .csv, .csv.gz or .jsonl, a wide one
    <name>_wide.csv.gz, or for the leaderboards folders with the Hub's files and named as its repositories, such as
    open_llm_leaderboard_v2/org__model-details/. What is found there is read as it is, without network.

    What is checked
    ---------------
    The sources on GitHub are fixed by a commit. Their publishers name no sha256; that of the first download is kept in
    the cache, and a later download that differs is refused. Numbers of models, items, domains and missing answers of a
    complete set are compared with those known. Files from the Hub are of one commit of their repository; they must have
    the size and, where they are large, the sha256 that the Hub names, and end as such files do.

    Raises
    ------
    InputError for an unknown name, model or task; without network and without the files; for a gated repository; where
    the extra "hub" is not installed; for a file that is broken or not what it was, which is then removed.

    Warns
    -----
    DataWarning if a complete set has other numbers than are known of it.

    >>> import os, tempfile, unittest.mock
    >>> from mtlirt.datasets import demo
    >>> with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, MTLIRT_DATA=folder):
    ...     demo().to_long().to_parquet(f"{folder}/lawbench.parquet")
    ...     fetch("lawbench", tasks=["law", "c*"])
    Responses: 120 models x 120 items in 3 domains, 13,761 answers (4.4% missing)
    """
    chosen = SETS.get(name) if isinstance(name, str) else None
    if chosen is None:
        raise InputError(f"there is no set {name!r}; there are {', '.join(SETS)}")
    models, tasks = _names("models", models), _names("tasks", tasks)
    if isinstance(chosen, Details):
        return _fetch_details(chosen, models, tasks)
    responses = read_local(name)
    if responses is None:
        responses = _fetch_table(chosen, models)
    if models is None and tasks is None:
        return responses
    return responses.subset(models=models, domains=_domains(responses, tasks))


def _names(argument: str, values: Collection[str] | None) -> list[str] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Collection) or not values or not all(map(_is_name, values)):
        raise InputError(f"{argument} must be a list of names, such as ['...'], not {values!r}")
    return list(dict.fromkeys(values))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _domains(responses: Responses, patterns: list[str] | None) -> list[str] | None:
    if patterns is None:
        return None
    for pattern in patterns:
        if not any(fnmatchcase(d, pattern) for d in responses.domains):
            raise InputError(f"there is no task {pattern!r}; there are {', '.join(responses.domains[:20])}")
    return [d for d in responses.domains if any(fnmatchcase(d, p) for p in patterns)]


def _fetch_details(details: Details, models: list[str] | None, tasks: list[str] | None) -> Responses:
    if models is None:
        raise InputError(f"{details.name} has thousands of models: name those you want, models=['org/model', ...]")
    at_hand = data_folder()
    if at_hand is not None and (at_hand / details.name).is_dir():
        paths = local_details(details, models, tasks, at_hand / details.name)
    else:
        paths = obtain_details(details, models, tasks, cache_folder() / details.name)
    from mtlirt.readers.logs import read_logs

    responses, _ = read_logs(paths, format=details.format)
    return responses


def _fetch_table(table: Table, models: list[str] | None) -> Responses:
    """The complete set from the cache, or downloaded; only the files of `models` where there is one a model."""
    folder = cache_folder() / table.name
    whole = folder / f"{table.commit[:12]}.parquet"
    responses = _kept(whole)
    if responses is None:
        files = _files_of(table, models)
        frame = tidy_frame(table, folder, files)
        if len(files) < len(table.files):
            return Responses.from_long(frame, **_columns(frame))
        write_frame(whole, frame)
        responses = read_responses(whole)
    _compare(responses, table)
    return responses


def _kept(whole: Path) -> Responses | None:
    """The table that an earlier call made, None if there is none that can be read."""
    if not whole.exists():
        return None
    try:
        return read_responses(whole)
    except InputError:
        return None


def tidy_frame(table: Table, folder: Path, files: Collection[RemoteFile] | None = None) -> pd.DataFrame:
    """The long table of a set, or of some of its files, which are downloaded to `folder` where they are missing."""
    files = table.files if files is None else files
    otherwise = f"try again with a network, or put the table at $MTLIRT_DATA/{table.name}.parquet"
    local = []
    with count(f"{table.name}: files", len(files)) as done:
        for file in files:
            local.append((file, obtain(file, table.base, folder, otherwise)))
            if done:
                done(1)
    return table.to_long(local)


def _files_of(table: Table, models: list[str] | None) -> tuple[RemoteFile, ...]:
    known = {file.model for file in table.files if file.model}
    if models is None or not known:
        return table.files
    unknown = [m for m in models if m not in known]
    if unknown:
        raise InputError(f"{table.name} has no model {unknown[0]!r}; it has {', '.join(sorted(known))}")
    return tuple(file for file in table.files if file.model in models)


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    return {name: name for name in ("option", "key", "n_options") if name in frame.columns}


def _compare(responses: Responses, table: Table) -> None:
    counts = table.counts
    missing = responses.n_models * responses.n_items - responses.n_answers
    pairs = (
        ("models", responses.n_models, counts.models),
        ("items", responses.n_items, counts.items),
        ("domains", len(responses.domains), counts.domains),
        ("missing answers", missing, counts.missing),
    )
    differing = [f"{found:,} {what}, not {known:,}" for what, found, known in pairs if found != known]
    if differing:
        warnings.warn(
            f"{table.name}: the download has {'; '.join(differing)}, so it is not the set that this version knows",
            DataWarning,
            stacklevel=4,
        )
