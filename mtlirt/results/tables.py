"""Tidy frames made from a fit. Column names here are used everywhere: csv files, summaries, plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit

from mtlirt.core.angle import sines
from mtlirt.errors import InputError

if TYPE_CHECKING:
    from mtlirt.core.options import OptionProblem
    from mtlirt.data import Responses
    from mtlirt.results.base import TraitFit
    from mtlirt.results.fit import Fit
    from mtlirt.results.nominal import NominalFit

COEF_COLUMNS = ["domain", "item", "a", "d", "b", "at_bound"]
SCORE_COLUMNS = ["model", "general", "general_rank", "mean_score", "mean_score_rank"]
OTHER_COLUMNS = (*SCORE_COLUMNS, "borrowed", "n_answers")  # of frames by model, beside domains and "se:..."


def column_of(domain: str) -> str:
    """Name of a domain's column beside the fixed columns."""
    return f"domain:{domain}" if domain in OTHER_COLUMNS or domain.startswith(("se:", "domain:")) else domain


def rank(values: pd.Series) -> pd.Series:
    """Ranks from 1 for the largest value; ties share the smallest rank; missing stays missing."""
    return values.rank(ascending=False, method="min").astype("Int64")


def item_frame(
    domain: pd.Series, item: pd.Series, a: np.ndarray, d: np.ndarray, answers: np.ndarray, right: np.ndarray, C: float
) -> pd.DataFrame:
    """The `items` frame of a fit; arguments are (J,) arrays, answers and right the sums per item."""
    mean = right / answers
    flag = np.select(
        [mean == 1, mean == 0, a == 0, a == C], ["all right", "all wrong", "slope 0", "slope at C"], default=""
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(a > 0, -d / a, np.nan)
    return pd.DataFrame(
        {
            "domain": domain.to_numpy(),
            "item": item.to_numpy(),
            "a": a,
            "d": d,
            "b": b,
            "at_bound": (a == 0) | (a == C) | (np.abs(d) == C),
            "n_answers": answers.astype(np.int64),
            "mean_score": mean,
            "flag": flag,
        }
    )


def nominal_item_frame(items: pd.DataFrame, problem: OptionProblem) -> pd.DataFrame:
    """The `items` frame of a nominal fit; `items` are the problem's, with their keys and numbers of options."""
    mean = problem.right_per_item / problem.answers_per_item
    return pd.DataFrame(
        {
            "domain": items["domain"].to_numpy(),
            "item": items["item"].to_numpy(),
            "key": items["key"].to_numpy(dtype=str),
            "n_options": problem.n_options,
            "n_answers": problem.answers_per_item.astype(np.int64),
            "mean_score": mean,
            "flag": np.select([mean == 1, mean == 0], ["all right", "all wrong"], default=""),
        }
    )


def option_frame(responses: Responses, problem: OptionProblem, a: np.ndarray, c: np.ndarray) -> pd.DataFrame:
    """The `options` frame of a nominal fit; a, c (J, K)."""
    item, option = np.nonzero(problem.options)
    return pd.DataFrame(
        {
            "domain": responses.items["domain"].to_numpy()[item],
            "item": responses.items["item"].to_numpy()[item],
            "option": np.array(responses.labels)[option],
            "a": a[item, option],
            "c": c[item, option],
            "right": option == problem.key[item],
            "share": problem.counts[item, option] / problem.answers_per_item[item],
        }
    )


def heterogeneity(fit: TraitFit) -> pd.DataFrame:
    """See `Fit.heterogeneity`."""
    sine, rho = [], []
    for domain in fit.domains:
        trait = fit.theta[domain].dropna()
        general = fit.general[trait.index]
        if fit.fused[domain]:
            sine.append(0.0)
            rho.append(1.0)
            continue
        centred = (general - general.mean()).to_numpy()
        sine.append(float(sines(centred, trait.to_numpy()[None])[0]))
        rho.append(float(trait.corr(general, method="spearman")))
    table = pd.DataFrame(
        {
            "domain": list(fit.domains),
            "sine": sine,
            "rho": rho,
            "fused": fit.fused.to_numpy(),
            "n_items": fit.items["domain"].value_counts()[list(fit.domains)].to_numpy(),
        }
    )
    return table.sort_values("sine", ascending=False, kind="stable", ignore_index=True)


def scores(fit: Fit | NominalFit, scale: str, se: bool) -> pd.DataFrame:
    """See `Fit.scores`."""
    if scale not in ("trait", "expected"):
        raise InputError(f"scores: scale must be 'trait' or 'expected', not {scale!r}")
    traits, general = fit.theta, fit.general
    slope, general_slope = traits.notna().astype(float), general.notna().astype(float)
    if scale == "expected":
        traits, slope = fit.expected(fit.theta)
        shares, slopes = fit.expected(pd.DataFrame(dict.fromkeys(fit.domains, fit.general)))
        general, general_slope = shares.mean(axis=1), slopes.mean(axis=1)
    mean_score = fit.data.mean_score.mean(axis=1)
    table = pd.DataFrame(
        {
            "model": fit.models,
            "general": general.to_numpy(),
            "general_rank": rank(general).to_numpy(),
            "mean_score": mean_score.to_numpy(),
            "mean_score_rank": rank(mean_score).to_numpy(),
        }
    )
    domains = traits.rename(columns=column_of).reset_index(drop=True)
    parts = [table, domains]
    if se:
        with np.errstate(divide="ignore"):
            errors = slope / fit.trait_information**0.5
            general_error = general_slope / fit.general_information**0.5
        errors = errors.where(np.isfinite(errors)).rename(columns=lambda d: f"se:{column_of(d)}").reset_index(drop=True)
        finite = general_error.where(np.isfinite(general_error)).to_numpy()
        parts += [pd.DataFrame({"se:general": finite}), errors]
    if not fit.gaps.empty:
        parts.append(pd.DataFrame({"borrowed": borrowed(fit.data.answers).to_numpy()}))
    return pd.concat(parts, axis=1)


def expected(fit: Fit, traits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Expected share right per domain at `traits`, and its derivative."""
    share, slope = {}, {}
    for domain, items in fit.items.groupby("domain", sort=False):
        a, d = items["a"].to_numpy(), items["d"].to_numpy()
        p = expit(np.multiply.outer(traits[domain].to_numpy(), a) + d)
        share[domain] = p.mean(axis=1)
        slope[domain] = (a * p * (1 - p)).mean(axis=1)
    return pd.DataFrame(share, index=traits.index), pd.DataFrame(slope, index=traits.index)


def borrowed(answers: pd.DataFrame) -> pd.Series:
    """Per model the domains without an answer, joined by "; ", or an empty text."""
    none = answers.to_numpy() == 0
    domains = answers.columns.to_numpy()
    return pd.Series(["; ".join(domains[row]) for row in none], index=answers.index)


def gaps(fit: TraitFit) -> pd.DataFrame:
    """See `Fit.gaps`."""
    rows, columns = np.nonzero(fit.data.answers.to_numpy() == 0)
    lost = fit.theta.isna().to_numpy()[rows, columns]
    return pd.DataFrame(
        {
            "model": fit.models[rows],
            "domain": [fit.domains[c] for c in columns],
            "kind": np.where(lost, "missing", "borrowed"),
            "reason": np.where(
                lost,
                "no answer in this domain, and at lam = 0 nothing is borrowed from the others",
                "no answer in this domain; the trait is carried by the other domains through the penalty",
            ),
        }
    )


def matching(fit: TraitFit, responses: Responses) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of theta and of items that belong to `responses`; InputError if any is not in the fit."""
    unknown = responses.models.difference(fit.models)
    if len(unknown):
        raise InputError(
            f"predict: {len(unknown)} of the models were not fitted, such as {_some(unknown)}; "
            "use score() for new models"
        )
    return fit.theta.loc[responses.models], fit.items.iloc[item_positions(fit, responses)]


def item_positions(fit: TraitFit, responses: Responses) -> np.ndarray:
    """(J',) position of each item of `responses` among the fit's items; InputError for unknown items."""
    known = pd.MultiIndex.from_frame(fit.items[["domain", "item"]])
    wanted = pd.MultiIndex.from_frame(responses.items[["domain", "item"]])
    positions = known.get_indexer(wanted)
    unknown = wanted[positions < 0]
    if len(unknown):
        raise InputError(
            f"{len(unknown)} of the items were not fitted, such as {_some(unknown)} (domain, item); "
            "keep the fitted ones with responses.subset(items=...)"
        )
    return positions


def _some(index: pd.Index) -> str:
    return ", ".join(repr(x) for x in index[:3])
