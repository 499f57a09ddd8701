"""`facts`: everything a report says, as plain values. Numbers come from the fit's frames and are rounded here only."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from mtlirt._version import __version__
from mtlirt.errors import InputError
from mtlirt.report import words
from mtlirt.report.evidence import GAINS, Evidence
from mtlirt.report.pictures import pictures
from mtlirt.report.reading import reading_facts
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.results.summary import counted, one_trait
from mtlirt.results.tables import SCORE_COLUMNS, rank

TRAIT, SHARE, LOSS, COEFFICIENT, CORRELATION = 4, 4, 5, 4, 4  # digits: more than the page shows, which rounds them
_FARTHEST = 100.0  # a difficulty beyond it is that of an item without a slope to speak of
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_FLAGS = ("all right", "all wrong", "flat", "at bound", "inverted", "duplicate")
NO_CV = "No cross-validation lies beside this fit, so its pictures and the ranks under other regimes are left out."
ONE_DOMAIN = "There is one domain: nothing is pooled, so there is no path, no curve and no comparison of domains."
ONE_TRAIT = "This model has one trait for all domains, so there is no path, no curve and no comparison of domains."


def facts(fit: Fit | NominalFit, evidence: Evidence | None = None) -> dict[str, Any]:
    """Everything that a report of `fit` says, as plain values that `json` can write.

    Parameters
    ----------
    fit : any fit.
    evidence : what is known beside it; `Evidence.of` collects it.

    Returns
    -------
    Dict with title, verdict (about, text), notes, summary and data (name, text), leaderboard (columns: name, label,
    kind, digits, values), gaps, ranks (label, values), spread (quantiles of each domain's trait), heterogeneity, items,
    options (None for the 2PL), habits (True for the LLM-NRM), bound (of traits), flag_legend (name, text), pictures
    (name, title, caption, svg), left_out (a sentence or None for domains and items), reading, settings, versions,
    method, references.

    Raises
    ------
    InputError if the evidence is of another fit, or the fit lacks what a report needs.

    >>> import mtlirt
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), 1.0)
    >>> facts(fit)["verdict"][0]["about"]
    'Who leads'
    """
    evidence = evidence or Evidence()
    _require_settings(fit)
    evidence.require(fit)
    scores, items = fit.scores(se=True), item_facts(fit, evidence)
    counts = {flag: sum(flag in each.split(", ") for each in items["flags"]) for flag in _FLAGS}
    one = len(fit.domains) == 1
    no_cv = NO_CV if evidence.cv is None else None
    return {
        "title": ", ".join(
            counted(n, what)
            for n, what in ((len(fit.models), "model"), (len(fit.items), "item"), (len(fit.domains), "domain"))
        ),
        "verdict": words.verdict(fit, scores, evidence, counts),
        "notes": [words.plain(note) for note in fit.summary().notes],
        "summary": [list(pair) for pair in fit.summary().facts],
        "data": data_facts(fit),
        "domains": list(fit.domains),
        "leaderboard": score_columns(fit, scores),
        "gaps": gap_facts(fit),
        "ranks": rank_facts(fit, evidence),
        "spread": [numbers(pd.Series(_quantiles(fit.theta[d])), TRAIT) for d in fit.domains],
        "heterogeneity": domain_facts(fit, evidence),
        "items": items,
        "options": option_facts(fit) if isinstance(fit, NominalFit) else None,
        "habits": "components" in fit.settings,
        "bound": float(fit.settings["C"]),
        "flag_legend": words.flag_legend(fit),
        "pictures": [] if one else pictures(fit, evidence),
        "left_out": {
            "domains": ONE_DOMAIN if one else (ONE_TRAIT if one_trait(fit) else no_cv),
            "items": None if evidence.checks is not None else words.NO_CHECKS,
        },
        "reading": None if evidence.reading is None else reading_facts(evidence.reading),
        "settings": _settings(fit),
        "versions": _versions(evidence.fitted_with),
        "method": words.method(fit),
        "references": words.references(fit),
    }


def numbers(column: pd.Series | np.ndarray, digits: int) -> list[float | int | None]:
    """Rounded values, whole ones as int, missing and infinite ones as None."""
    values = pd.Series(column).astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    rounded = np.round(values, digits)
    return [_plain(x) for x in rounded.tolist()]


def _plain(x: float) -> float | int | None:
    if not math.isfinite(x):
        return None
    return int(x) if x == int(x) else x


def _quantiles(trait: pd.Series) -> np.ndarray:
    there = trait.dropna()
    return there.quantile(list(_QUANTILES)).to_numpy() if len(there) else np.full(len(_QUANTILES), np.nan)


def score_columns(fit: Fit | NominalFit, scores: pd.DataFrame) -> list[dict[str, Any]]:
    """The columns of `fit.scores(se=True)` in its order; kind is name, rank, share, general, trait, se or text."""
    kinds = {
        "model": "name", "general": "general", "general_rank": "rank", "mean_score": "share", "mean_score_rank": "rank",
        "borrowed": "text",
    }  # fmt: skip
    labels = {"general_rank": "rank", "mean_score": "mean score", "mean_score_rank": "its rank"}
    traits = dict(
        zip(scores.columns[len(SCORE_COLUMNS) : len(SCORE_COLUMNS) + len(fit.domains)], fit.domains, strict=True)
    )
    columns = []
    for name in map(str, scores):
        kind = "trait" if name in traits else kinds.get(name, "se")
        text = kind in ("name", "text")
        digits = {"share": SHARE, "rank": 0}.get(kind, TRAIT)
        values = [str(x) for x in scores[name]] if text else numbers(scores[name], digits)
        label = traits.get(name, labels.get(name, name))
        columns.append({"name": name, "label": label, "kind": kind, "digits": digits, "values": values})
    return columns


def data_facts(fit: Fit | NominalFit) -> list[list[str]]:
    """What was answered, in words, and what was dropped or recoded when it was read."""
    answers, (N, J) = fit.data.answers, (len(fit.models), len(fit.items))
    sizes = f", {_range(fit.items['domain'].value_counts())} in each" if len(fit.domains) > 1 else ""
    by_model, constant = answers.sum(axis=1), fit.data.mean_score.isin([0.0, 1.0]).all(axis=1).sum()
    return [
        ["Models", f"{N:,}, with {_range(by_model)} answers each"],
        ["Items", f"{J:,} in {counted(len(fit.domains), 'domain')}{sizes}"],
        ["Answers", f"{fit.n_answers:,}, {1 - fit.n_answers / (N * J):.1%} of the table missing"],
        ["Mean score", f"{fit.data.mean_score.mean(axis=1).mean():.3f} over models, domains weighing alike"],
        ["All right or all wrong", f"{counted(int(constant), 'model')} in every domain"],
        ["When read", words.plain(" ".join(fit.data.notes)) or "nothing was dropped or recoded"],
        ["Fingerprint", fit.data.fingerprint],
    ]


def _range(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def gap_facts(fit: Fit | NominalFit) -> dict[str, list[Any]]:
    """Models without answers in a domain, by their positions: model, domain, kind."""
    gaps = fit.gaps
    return {
        "model": fit.models.get_indexer(pd.Index(gaps["model"])).tolist(),
        "domain": pd.Index(fit.domains).get_indexer(pd.Index(gaps["domain"])).tolist(),
        "kind": [str(kind) for kind in gaps["kind"]],
    }


def rank_facts(fit: Fit | NominalFit, evidence: Evidence) -> list[dict[str, Any]] | None:
    """Each model's rank under each regime, in the fit's order: label and values; None where it is not known.

    The chosen regime is named by its lam where the fit has another, and the fit then has a column of its own.
    """
    if evidence.ranks is None:
        return None
    ranks, own = evidence.ranks.set_index("model").reindex(fit.models), numbers(rank(fit.general), 0)
    columns = {name: numbers(ranks[name], 0) for name in ranks if name != "chosen"}
    chosen, lam = numbers(ranks["chosen"], 0), evidence.chosen
    if lam == fit.lam or (lam is None and chosen == own):
        first = {"chosen lam": chosen}
    else:
        first = {"this fit": own, "chosen lam" if lam is None else f"chosen lam, {lam:.4g}": chosen}
    labels = {"separate": "separate domains", "complete": "complete pooling", "mean_score": "mean score"}
    first |= {label: columns[name] for name, label in labels.items()}
    return [{"label": label, "values": values} for label, values in first.items()]


def domain_facts(fit: Fit | NominalFit, evidence: Evidence) -> dict[str, list[Any]]:
    """The heterogeneity table, most odd first, with the mean score and, where known, the gains by pooling."""
    table = fit.heterogeneity()
    out: dict[str, list[Any]] = {
        "domain": [str(d) for d in table["domain"]],
        "n_items": numbers(table["n_items"], 0),
        "sine": numbers(table["sine"], SHARE),
        "rho": numbers(table["rho"], CORRELATION),
        "fused": [bool(x) for x in table["fused"]],
        "mean_score": numbers(fit.data.mean_score.mean()[list(table["domain"])], SHARE),
    }
    if evidence.per_domain is not None:
        gains = evidence.per_domain.set_index("domain").reindex(table["domain"])
        for name in GAINS:
            out[name] = numbers(gains[name], LOSS)
    return out


def item_facts(fit: Fit | NominalFit, evidence: Evidence) -> dict[str, Any]:
    """Columns of the items, their domains as positions; flags are joined by commas."""
    items = fit.items
    out: dict[str, Any] = {
        "domain": pd.Index(fit.domains).get_indexer(pd.Index(items["domain"])).tolist(),
        "item": [str(x) for x in items["item"]],
        "n_answers": numbers(items["n_answers"], 0),
        "mean_score": numbers(items["mean_score"], SHARE),
    }
    flags: dict[str, np.ndarray] = {flag: (items["flag"] == flag).to_numpy() for flag in ("all right", "all wrong")}
    if isinstance(fit, Fit):
        varied = ~(flags["all right"] | flags["all wrong"])
        out |= {name: numbers(items[name], COEFFICIENT) for name in ("a", "d")}
        out["b"] = numbers(items["b"].where(varied & (items["b"].abs() <= _FARTHEST)), COEFFICIENT)
        flags["flat"] = varied & (items["a"] == 0).to_numpy()
        flags["at bound"] = varied & (items["at_bound"] & (items["a"] > 0)).to_numpy()
    else:
        out |= {"key": [str(x) for x in items["key"]], "n_options": numbers(items["n_options"], 0)}
    if evidence.checks is not None:
        checks = _of_items(evidence.checks, items)
        out["correlation"] = numbers(checks["correlation"], CORRELATION)
        same_as = checks["same_as"].fillna("").to_numpy(dtype=str)
        flags["inverted"], flags["duplicate"] = checks["inverted"].fillna(False).to_numpy(dtype=bool), same_as != ""
        out["same_as"] = _positions(same_as, items)
    held = [flag for flag in _FLAGS if flag in flags]
    out["flags"] = [", ".join(flag for flag in held if flags[flag][j]) for j in range(len(items))]
    return out


def _of_items(checks: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Rows of the checks in the order of the items."""
    keyed = checks.drop_duplicates(["domain", "item"]).set_index(["domain", "item"])
    return keyed.reindex(pd.MultiIndex.from_frame(items[["domain", "item"]])).reset_index()


def _positions(same_as: np.ndarray, items: pd.DataFrame) -> list[list[int]]:
    """Pairs of an item and the earlier one that it repeats, by position."""
    named: dict[str, int] = {}
    for j, name in enumerate(items["domain"] + ": " + items["item"]):
        named.setdefault(name, j)
    pairs = [(int(j), str(same_as[j])) for j in np.flatnonzero(same_as != "")]
    for _, name in pairs:
        if name not in named:
            raise InputError(f"checks.csv: is not of this fit, it holds item {name!r}; delete it, or fit again")
    return [[j, named[name]] for j, name in pairs]


def option_facts(fit: NominalFit) -> dict[str, Any]:
    """Options, item after item: first (where each item's begin), option, a, c, right, share."""
    options, counts = fit.options, fit.items["n_options"].to_numpy()
    return {
        "first": np.concatenate([[0], np.cumsum(counts)]).tolist(),
        "option": [str(x) for x in options["option"]],
        "a": numbers(options["a"], COEFFICIENT),
        "c": numbers(options["c"], COEFFICIENT),
        "right": [int(x) for x in options["right"]],
        "share": numbers(options["share"], CORRELATION),
    }


def _settings(fit: Fit | NominalFit) -> list[list[str]]:
    told = fit.settings if one_trait(fit) else {"lam": fit.lam, **fit.settings}
    return [[name, _text(value)] for name, value in told.items() if name != "chosen"]


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _versions(fitted_with: str | None) -> list[list[str]]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas"))
    page = f"mtlirt {__version__}, python {platform.python_version()}, {packages}"
    return [*([] if fitted_with is None else [["fit made with", f"mtlirt {fitted_with}"]]), ["page made with", page]]


def _require_settings(fit: Fit | NominalFit) -> None:
    """InputError if a fit from a damaged manifest does not say how it was made."""
    settings = fit.settings
    needed = {"C": int | float, "solver": dict} | ({"channel": str, "verb": str} if isinstance(fit, NominalFit) else {})
    bad = [name for name, kind in needed.items() if not isinstance(settings.get(name), kind)]
    if not bad and "name" not in settings["solver"]:
        bad = ["solver"]
    if not bad and "components" in settings:
        bad = [name for name in ("components", "starts") if not isinstance(settings.get(name), list | tuple)]
    if bad:
        raise InputError(f"manifest.json: the fit's settings lack {', '.join(bad)}; it is damaged, fit again")
