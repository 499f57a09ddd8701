"""What a careful reader would ask of freshly read answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mtlirt.data import Responses
from mtlirt.data.responses import as_float, observed
from mtlirt.data.select import constant_items, constant_models
from mtlirt.readers.runs import Run
from mtlirt.readers.sheet import REPEATED

_TOLERANCE = 1e-6  # logs give their means to six digits at least
_SHOWN = 5
_BELOW = 2.0  # standard errors


def summaries(runs: Sequence[Run], broken: set[str]) -> pd.DataFrame:
    """The logs' own means beside those of the answers read; see `ReadLog.summaries`. broken : files read in part."""
    rows = []
    for run in runs:
        sheet = run.sheet
        if sheet.summary is None:
            continue
        n, found = len(sheet.rows), float(sheet.rows["score"].mean())
        lost = run.file in broken or any(not reason.startswith(REPEATED) for reason in sheet.dropped)
        complete = sheet.summary.n in (None, n) and not lost
        same = abs(found - sheet.summary.value) <= _TOLERANCE
        verdict = "not confirmed" if not complete else "confirmed" if same else "differs"
        told = (run.file, run.model, sheet.task, sheet.metric, sheet.summary.where, sheet.summary.value, found)
        rows.append((*told, sheet.summary.n, n, verdict))
    names = ["file", "model", "task", "metric", "source", "stated", "found", "n_stated", "n_found", "verdict"]
    return pd.DataFrame(rows, columns=names).astype({"n_stated": "Int64"})


def of_summaries(table: pd.DataFrame) -> list[str]:
    """Warnings for means that differ or cannot be confirmed."""
    found = []
    for row in table[table["verdict"] == "differs"].to_dict("records"):
        ours = f"the mean of {row['metric']!r} is {row['found']:.6g} over its {row['n_found']:,} items"
        found.append(f"{row['file']}: {ours}, but {row['source']} says {row['stated']:.6g}")
    partial = table[table["verdict"] == "not confirmed"]
    for row in partial.head(_SHOWN).to_dict("records"):
        n = "another number of" if pd.isna(row["n_stated"]) else f"{row['n_stated']:,}"
        found.append(
            f"{row['file']}: its own mean, {row['stated']:.6g}, is over {n} items and cannot be confirmed from the "
            f"{row['n_found']:,} that are here"
        )
    if len(partial) > _SHOWN:
        found.append(f"{len(partial) - _SHOWN:,} further logs whose own mean cannot be confirmed")
    return found


def partial_runs(runs: Sequence[Run]) -> list[str]:
    """A warning for each task in which some models have fewer items than others."""
    sizes = pd.DataFrame([(r.sheet.task, r.model, len(r.sheet.rows)) for r in runs], columns=["task", "model", "n"])
    found = []
    for task, group in sizes.groupby("task", sort=False):
        short = group[group["n"] < group["n"].max()]
        if len(short):
            least, most = short.loc[short["n"].idxmin()], group["n"].max()
            found.append(
                f"task {task!r}: {len(short):,} of {len(group):,} models have fewer than the {most:,} items "
                f"that others have ({least['model']}: {least['n']:,})"
            )
    return found


def of_answers(responses: Responses) -> list[str]:
    """Warnings on models with identical answers, models below chance, and missing answers."""
    return _identical(responses) + _below_chance(responses) + _constant(responses) + _gaps(responses)


def _constant(responses: Responses) -> list[str]:
    items = sum(int(constant_items(block).sum()) for block in responses.blocks.scores) if responses.n_models > 1 else 0
    models = int(constant_models(responses).sum()) if responses.n_items > 1 else 0
    told = [f"{items:,} items are answered alike by all models"] if items else []
    return told + ([f"{models:,} models have all items right, or none"] if models else [])


def _identical(responses: Responses) -> list[str]:
    rows = np.concatenate([as_float(b) for b in responses.blocks.scores], axis=1, dtype=np.float32)
    groups: dict[bytes, list[str]] = {}
    for model, row in zip(responses.models, rows, strict=True):
        groups.setdefault(row.tobytes(), []).append(model)
    same = [names for names in groups.values() if len(names) > 1]
    shown = "; ".join(" = ".join(names[:_SHOWN]) for names in same[:_SHOWN])
    return [f"{sum(map(len, same)):,} models have the same answers as another: {shown}"] if same else []


def _below_chance(responses: Responses) -> list[str]:
    """Models whose mean lies more than two standard errors below that of guessing, by domain."""
    low = []
    for domain in responses.domains:
        n_options = responses.items.loc[responses.items["domain"] == domain, "n_options"]
        if n_options.isna().any():
            continue
        chance = 1 / n_options.to_numpy(dtype=float)
        block = responses.block(domain)
        seen = observed(block)
        right = np.where(seen, as_float(block), 0).sum(axis=1)
        expected, variance = seen @ chance, seen @ (chance * (1 - chance))
        below = right < expected - _BELOW * np.sqrt(variance)
        low += [f"{model} in {domain}" for model in responses.models[below]]
    shown = ", ".join(low[:_SHOWN]) + (", ..." if len(low) > _SHOWN else "")
    return [f"below what guessing would give: {shown} ({len(low):,} in all)"] if low else []


def missing(responses: Responses) -> pd.DataFrame:
    """Frame model, domain, n_items, n_answers, share_missing, where some answer is missing."""
    frames = []
    for domain, block in zip(responses.domains, responses.blocks.scores, strict=True):
        n = observed(block).sum(axis=1)
        frames.append(
            pd.DataFrame({"model": responses.models, "domain": domain, "n_items": block.shape[1], "n_answers": n})
        )
    table = pd.concat(frames, ignore_index=True)
    table["share_missing"] = 1 - table["n_answers"] / table["n_items"]
    return table[table["n_answers"] < table["n_items"]].reset_index(drop=True)


def _gaps(responses: Responses) -> list[str]:
    table = missing(responses)
    if table.empty:
        return []
    share = 1 - responses.n_answers / (responses.n_models * responses.n_items)
    nothing = int((table["n_answers"] == 0).sum())
    text = f"{share:.1%} of the answers are missing"
    if nothing:
        text += f"; {nothing:,} times a model has no answer in a domain"
    return [text]
