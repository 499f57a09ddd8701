"""What answers say about items beside the fit: which run against the general trait, and which repeat another item."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from mtlirt.data.responses import Responses, as_float
from mtlirt.errors import InputError
from mtlirt.results.base import TraitFit

_INVERTED = -2.0  # standard errors of a correlation of 0, 1 / sqrt(n)


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
    same_as ("domain: item" of an earlier item with the same answers of all models, else empty; items that all models
    answer alike are left out).

    Raises
    ------
    InputError if the answers lack a model or an item of the fit.

    >>> import mtlirt
    >>> demo = mtlirt.datasets.demo()
    >>> checks = item_checks(mtlirt.fit_mtl(demo, 1.0), demo)
    >>> list(checks)
    ['domain', 'item', 'correlation', 'inverted', 'same_as']
    """
    rows = responses.models.get_indexer(fit.models)
    items = pd.MultiIndex.from_frame(responses.items[["domain", "item"]])
    columns = items.get_indexer(pd.MultiIndex.from_frame(fit.items[["domain", "item"]]))
    if (rows < 0).any() or (columns < 0).any():
        raise InputError("report: the responses lack models or items of the fit; give the answers that were fitted")
    correlation, count = np.full(len(items), np.nan), np.zeros(len(items))
    same_as = np.full(len(items), "", dtype=object)
    seen: dict[bytes, str] = {}
    start = 0
    for domain in responses.domains:
        block = as_float(responses.block(domain)[rows])
        here = slice(start, start + block.shape[1])
        correlation[here], count[here] = correlations(block, fit.general.to_numpy(dtype=np.float64))
        for j, answers in enumerate(np.ascontiguousarray(block.T)):
            same_as[start + j] = _earlier(answers, f"{domain}: {items[start + j][1]}", seen)
        start = here.stop
    out = fit.items[["domain", "item"]].copy()
    out["correlation"] = correlation[columns]
    out["inverted"] = out["correlation"] < _INVERTED / np.sqrt(np.maximum(count[columns], 1))
    return out.assign(same_as=same_as[columns])


def correlations(scores: np.ndarray, general: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J,) correlations of scores (N, J), NaN for missing, with a trait (N,); NaN if constant. (J,) answers."""
    there = ~np.isnan(scores)
    n = there.sum(axis=0)
    y, x = np.where(there, scores, 0.0), np.where(there, general[:, None], 0.0)
    size = np.maximum(n, 1)
    y = np.where(there, y - y.sum(axis=0) / size, 0.0)
    x = np.where(there, x - x.sum(axis=0) / size, 0.0)
    spread = np.sqrt((y * y).sum(axis=0) * (x * x).sum(axis=0))
    flat = (np.ptp(np.where(there, scores, np.nanmean(scores, axis=0)), axis=0) == 0) | (spread == 0)
    return np.where(flat, np.nan, (x * y).sum(axis=0) / np.where(flat, 1.0, spread)), n


def _earlier(answers: np.ndarray, name: str, seen: dict[bytes, str]) -> str:
    """Name of the earlier item with these answers, or an empty text; constant answers repeat nothing."""
    if np.nanmin(answers) == np.nanmax(answers):
        return ""
    key = hashlib.sha256(answers.tobytes()).digest()
    earlier = seen.get(key, "")
    seen.setdefault(key, name)
    return earlier
