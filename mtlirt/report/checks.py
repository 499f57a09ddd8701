"""What answers say about items beside the fit: which run against the general trait, and which repeat another item."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import gammaln

from mtlirt.data.options import option_answers
from mtlirt.data.responses import Blocks, Responses, as_float
from mtlirt.errors import InputError
from mtlirt.results.base import TraitFit
from mtlirt.results.nominal import NominalFit

_INVERTED = -2.0  # standard errors of a correlation of 0, 1 / sqrt(n)
_SURE = 3.0  # log odds against a coincidence beyond those of all J^2 / 2 pairs of items
_SAME = 1e-6  # mean scores that differ by less are the same answers: single precision holds probabilities to 1e-7


def item_checks(fit: TraitFit, responses: Responses) -> pd.DataFrame:
    """Correlation with the general trait and repeated answers, for every item of the fit.

    Parameters
    ----------
    fit : any fit.
    responses : the answers that were fitted.

    Returns
    -------
    Frame with domain, item, correlation (of the item's scores with the general trait, over the models that answered;
    missing where one of the two is constant), inverted (True where it is more than two standard errors below 0) and
    same_as ("domain: item" of an earlier item with the same answers of all models, else empty). Items that (nearly) all
    models answer alike coincide by chance and are left out: an item counts only where the log of the number of ways to
    arrange its own answers over the models exceeds log(J^2 / 2) + 3 for J items.

    Raises
    ------
    InputError if the answers lack a model or an item of the fit, or are others than were fitted.

    >>> import mtlirt
    >>> demo = mtlirt.datasets.demo()
    >>> checks = item_checks(mtlirt.fit_mtl(demo, 1.0), demo)
    >>> list(checks)
    ['domain', 'item', 'correlation', 'inverted', 'same_as']
    """
    responses = _scored(fit, responses)
    rows = responses.models.get_indexer(fit.models)
    items = pd.MultiIndex.from_frame(responses.items[["domain", "item"]])
    columns = items.get_indexer(pd.MultiIndex.from_frame(fit.items[["domain", "item"]]))
    if (rows < 0).any() or (columns < 0).any():
        raise InputError("report: the responses lack models or items of the fit; give the answers that were fitted")
    correlation, count, mean = np.full(len(items), np.nan), np.zeros(len(items)), np.full(len(items), np.nan)
    surprise = np.log(len(fit.items) ** 2 / 2) + _SURE
    same_as = np.full(len(items), "", dtype=object)
    seen: dict[bytes, str] = {}
    start = 0
    for domain in responses.domains:
        block = as_float(responses.block(domain)[rows])
        here = slice(start, start + block.shape[1])
        correlation[here], count[here] = correlations(block, fit.general.to_numpy(dtype=np.float64))
        mean[here] = np.nansum(block, axis=0) / np.maximum(count[here], 1)
        for j, answers in enumerate(np.ascontiguousarray(block.T)):
            same_as[start + j] = _earlier(answers, f"{domain}: {items[start + j][1]}", seen, surprise)
        start = here.stop
    _require_same(fit, count[columns], mean[columns])
    out = fit.items[["domain", "item"]].copy()
    out["correlation"] = correlation[columns]
    out["inverted"] = out["correlation"] < _INVERTED / np.sqrt(np.maximum(count[columns], 1))
    return out.assign(same_as=same_as[columns])


def _scored(fit: TraitFit, responses: Responses) -> Responses:
    """The answers as the fit scored them: of an option model, those with options."""
    if not isinstance(responses, Responses):
        raise InputError(f"report: responses must be Responses, not {type(responses).__name__}")
    if not isinstance(fit, NominalFit):
        return responses
    answers = option_answers(responses, fit.settings["channel"])
    return replace(answers.responses, blocks=Blocks(answers.right))


def _require_same(fit: TraitFit, count: np.ndarray, mean: np.ndarray) -> None:
    """InputError unless every item has the fit's number of answers and mean score."""
    items = fit.items
    other = (count != items["n_answers"]) | (np.abs(mean - items["mean_score"]) > _SAME)
    if other.any():
        row = items[other].iloc[0]
        raise InputError(
            f"report: the responses are other answers than the fit's, first at domain {row['domain']!r}, item "
            f"{row['item']!r}; give the answers that were fitted"
        )


def correlations(scores: np.ndarray, general: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J,) correlations of scores (N, J), NaN for missing, with a trait (N,); NaN if constant. (J,) answers."""
    there = ~np.isnan(scores)
    n = there.sum(axis=0)
    y, x = np.where(there, scores, 0.0), np.where(there, general[:, None], 0.0)
    size = np.maximum(n, 1)
    y = np.where(there, y - y.sum(axis=0) / size, 0.0)
    x = np.where(there, x - x.sum(axis=0) / size, 0.0)
    spread = np.sqrt((y * y).sum(axis=0) * (x * x).sum(axis=0))
    low, high = np.where(there, scores, np.inf).min(axis=0), np.where(there, scores, -np.inf).max(axis=0)
    flat = (low >= high) | (spread == 0)
    return np.where(flat, np.nan, (x * y).sum(axis=0) / np.where(flat, 1.0, spread)), n


def _earlier(answers: np.ndarray, name: str, seen: dict[bytes, str], surprise: float) -> str:
    """Name of the earlier item with these answers, or an empty text where chance may have made them alike."""
    key = hashlib.sha256(answers.tobytes()).digest()
    earlier = seen.setdefault(key, name)
    return earlier if earlier != name and arrangements(answers) > surprise else ""


def arrangements(answers: np.ndarray) -> float:
    """Log of the number of ways to arrange answers (N,), NaN for missing, over those who answered: log C(n, k) for k
    right of n.

    >>> round(float(np.exp(arrangements(np.array([1.0, 1.0, 0.0, 0.0, np.nan])))), 9)
    6.0
    """
    counts = np.unique(answers[~np.isnan(answers)], return_counts=True)[1]
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())
