"""From the sheets of all models to one table of answers: which rows are the same item, and what they disagree on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase

import numpy as np
import pandas as pd

from mtlirt.data.columns import option_labels
from mtlirt.readers.runs import Run
from mtlirt.readers.sheet import most_common

DOMAIN_BY = ("task", "subject", "prefix")
_BEFORE_SUBJECT = re.compile(
    r"((leaderboard_)?(mmlu_pro|mmlu|cmmlu|bbh|musr|gpqa)_(?!pro$)((cot|zeroshot|fewshot)_)*|hendrycksTest-|.*\bsubject=)(?P<subject>[^,)]+).*"
)
_SHOWN = 3


@dataclass
class Table:
    """rows : one row per answer.  warnings : sentences on what models disagree on."""

    rows: pd.DataFrame
    warnings: list[str] = field(default_factory=list)


def one_table(runs: Sequence[Run], domain_by: str) -> Table:
    """Columns model, domain, item, score, and option, key, n_options, logprobs, trials where some log has them."""
    table = Table(pd.DataFrame())
    tasks: dict[str, list[Run]] = {}
    for run in runs:
        tasks.setdefault(run.sheet.task, []).append(run)
    parts = [_task(task, group, domain_by, table) for task, group in tasks.items()]
    rows = pd.concat(parts, ignore_index=True)
    del parts
    for name in ("model", "domain", "item"):
        rows[name] = rows[name].astype("category")
    table.rows = _options(rows, table)
    return table


def _task(task: str, runs: list[Run], domain_by: str, table: Table) -> pd.DataFrame:
    rows = pd.concat([r.sheet.rows.assign(run=i) for i, r in enumerate(runs)], ignore_index=True)
    item = _same_item(rows, np.array([r.sheet.by_position for r in runs]))
    code, _ = pd.factorize(item)
    first = pd.Series(np.arange(len(rows))).groupby(code).first().to_numpy()
    names = [f"{task}/{name}" for name in item.iloc[first]]
    subjects = rows.groupby(code)["subject"].first().where(pd.notna, None)
    plain = task if domain_by == "task" else task.removeprefix(f"{runs[0].kind}:")
    domains = [_domain(plain, subject, domain_by) for subject in subjects]
    table.warnings += _disagreements(task, rows, code, runs)
    rows["item"] = pd.Categorical.from_codes(code, categories=pd.Index(names, dtype=str))
    rows["domain"] = np.array(domains, dtype=object)[code]
    rows["model"] = np.array([r.model for r in runs], dtype=object)[rows["run"]]
    _drop_other_options(task, rows, code, table)
    return rows.drop(columns=["run", "digest", "prompt", "layout", "subject", "position"]).astype({"item": object})


def _same_item(rows: pd.DataFrame, by_position: np.ndarray) -> pd.Series:
    """What identifies an item, and ends its name: the beginning of the hash of its text; with the position where one
    run has the text twice; or the position alone."""
    code, hashed = pd.factorize(rows["digest"])
    names = np.array([f"{int(h) >> 16:012x}" for h in hashed], dtype=object)
    item = pd.Series(names[code], index=rows.index)
    twice = np.zeros(len(hashed), dtype=bool)
    twice[code[rows.duplicated(["run", "digest"])]] = True
    item = item.mask(twice[code], item + "@" + rows["position"])
    return item.mask(by_position[rows["run"]], rows["position"])


def _domain(task: str, subject: str | None, domain_by: str) -> str:
    if domain_by == "prefix":
        return re.split(r"[_:/-]", task.removeprefix("leaderboard_"))[0] or task
    if domain_by == "subject":
        match = _BEFORE_SUBJECT.fullmatch(task)
        told = subject or (match["subject"] if match else task)
        return re.sub(r"[\s\-]+", "_", told.strip().lower()) or task
    return task


def _disagreements(task: str, rows: pd.DataFrame, code: np.ndarray, runs: list[Run]) -> list[str]:
    found = []
    prompts = rows.assign(item=code)[["item", "prompt", "run"]]
    prompts = prompts[prompts["prompt"] != 0]
    several = prompts.groupby("item")["prompt"].transform("nunique") > 1
    if several.any():
        one = prompts[several & (prompts["item"] == prompts.loc[several, "item"].iloc[0])]
        groups = [_models(runs, g) for _, g in one.groupby("prompt", sort=False)["run"]]
        n = prompts.loc[several, "item"].nunique()
        found.append(
            f"task {task!r}: {n:,} items were shown with different prompts, which makes them different tests: "
            + " | ".join(groups[:4])
        )
    places, _ = pd.factorize(rows["position"])
    moved = pd.Series(places).groupby(code).agg(["min", "max"])
    n_moved = int((moved["min"] != moved["max"]).sum())
    if n_moved:
        found.append(f"task {task!r}: {n_moved:,} items stand at other positions in other models")
    return found + _groups(task, rows["run"].to_numpy(), code, runs)


def _groups(task: str, run: np.ndarray, code: np.ndarray, runs: list[Run]) -> list[str]:
    """A warning if the models fall into groups that share no item."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(runs) + int(code.max()) + 1
    links = coo_matrix((np.ones(len(run), dtype=np.int8), (run, code + len(runs))), shape=(n, n))
    count, label = connected_components(links, directed=False)
    if count == 1:
        return []
    groups = [_models(runs, np.flatnonzero(label[: len(runs)] == c)) for c in np.unique(label[: len(runs)])]
    return [
        f"task {task!r}: the models fall into {count:,} groups that share no item, so their data sets differ: "
        + " | ".join(groups[:4])
    ]


def _models(runs: list[Run], members: Sequence[int] | np.ndarray | pd.Series) -> str:
    names = list(dict.fromkeys(runs[i].model for i in members))
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def _drop_other_options(task: str, rows: pd.DataFrame, code: np.ndarray, table: Table) -> None:
    """Options count only where they were shown, keyed and numbered as in most models."""
    for column, unknown, what in (
        ("n_options", 0, "numbers of options"),
        ("layout", 0, "orders of options"),
        ("key", -1, "keys"),
    ):
        known = (rows[column] != unknown) & (rows["n_options"] > 0)
        expected = pd.Series(code).map(most_common(code[known], rows.loc[known, column]))
        odd = known & (rows[column] != expected)
        if odd.any():
            rows.loc[odd, ["option", "key", "n_options"]] = [-1, -1, 0]
            rows.loc[odd, "logprobs"] = None
            table.warnings.append(
                f"task {task!r}: {what} differ between models in {len(np.unique(code[odd])):,} items; the options of "
                f"{int(odd.sum()):,} answers are left out, their scores are kept"
            )


def _options(rows: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Columns that some log fills; options as letters where letters suffice; trials where some item was run twice."""
    kept = ["model", "domain", "item", "score"]
    if (rows["n_options"] > 0).any():
        most = int(rows["n_options"].max())
        labels = option_labels(most, letters=most <= len(ascii_uppercase))
        for name in ("option", "key"):
            rows[name] = pd.Categorical.from_codes(rows[name].to_numpy(), categories=pd.Index(labels, dtype=str))
        rows["n_options"] = rows["n_options"].astype("Int16").mask(rows["n_options"] == 0)
        kept += ["option", "key", "n_options"]
        if rows["logprobs"].notna().any():
            kept.append("logprobs")
    if (rows["trials"] > 1).any():
        right = rows["score"] * rows["trials"]
        if np.allclose(right, right.round(), atol=1e-6, rtol=0):
            kept.append("trials")
        else:
            partly = rows.loc[~np.isclose(right, right.round(), atol=1e-6, rtol=0), "domain"].iloc[0]
            table.warnings.append(
                f"numbers of runs are left out, since some runs are scored between 0 and 1 (in {partly}, for one)"
            )
    return rows[kept]
