"""`plot(type)` of results: which picture each word stands for, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt import plots
from mtlirt.errors import InputError
from mtlirt.results.base import TraitFit
from mtlirt.results.fit import Fit
from mtlirt.results.nominal import NominalFit
from mtlirt.selection.compare import PoolingComparison
from mtlirt.selection.cv_result import CVResult
from mtlirt.selection.path import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 6  # items of which traces are drawn if none are named


@dataclass(frozen=True)
class Word:
    """sources : the kinds of result that hold what is drawn.  draw : the picture of such a result, with its options.
    instead : what to do with any other result.  options : the names of the options."""

    sources: tuple[type, ...]
    draw: Callable[..., Axes]
    instead: str
    options: tuple[str, ...] = ()


def draw(
    result: TraitFit | Path | CVResult | PoolingComparison, type: str, ax: Axes | None, how: dict[str, Any]
) -> Axes:
    """The picture called `type` of a result or of what it holds; InputError if it cannot be drawn from it."""
    held = _held(result)
    if isinstance(type, str) and type in _ELSEWHERE:
        raise InputError(f"plot: {type!r} cannot be drawn from a {result.__class__.__name__}; {_ELSEWHERE[type]}")
    if not isinstance(type, str) or type not in WORDS:
        able = [name for name, word in WORDS.items() if any(isinstance(part, word.sources) for part in held)]
        raise InputError(f"plot: there is no type {type!r}; of this result there are {', '.join(able)}")
    word = WORDS[type]
    for part in held:
        if isinstance(part, word.sources):
            _check_options(type, how, word.options)
            return word.draw(part, ax=ax, **how)
    kind = result.__class__.__name__
    raise InputError(f"plot: {type!r} cannot be drawn from a {kind}; {word.instead}")


def _check_options(type: str, how: dict[str, Any], options: tuple[str, ...]) -> None:
    for name in how:
        if name not in options:
            there = f"its options are {', '.join((*options, 'ax'))}" if options else "it has none but ax"
            raise InputError(f"plot: {type!r} has no option {name!r}; {there}")


def _held(result: TraitFit | Path | CVResult | PoolingComparison) -> tuple[object, ...]:
    """The result and the results in it."""
    if isinstance(result, PoolingComparison):
        return result, *_held(result.cv)
    return (result, result.path, result.fit) if isinstance(result, CVResult) else (result,)


def _path(source: Path | CVResult, **how: Any) -> Axes:
    if isinstance(source, CVResult):
        return plots.path(source.path.sines, **{"lam": source.lam_min, **how})
    return plots.path(source.sines, **how)


def _cv(cv: CVResult, **how: Any) -> Axes:
    return plots.cv(cv.table, lam_min=cv.lam_min, lam_1se=cv.lam_1se, **how)


def _size(fit: TraitFit, size: pd.Series | None = None, **how: Any) -> Axes:
    if size is None:
        raise InputError("plot: 'size' needs the models' sizes: plot('size', size=...), a Series by model")
    return plots.size(fit.general, size, **how)


def _profile(fit: TraitFit, model: str | Sequence[str] | None = None, **how: Any) -> Axes:
    unsure = (fit.data.answers == 0) | (fit.theta.abs() >= fit.settings["C"])
    return plots.profile(fit.theta, str(fit.general.idxmax()) if model is None else model, hollow=unsure, **how)


def _trace(fit: Fit | NominalFit, domain: str | None = None, items: Sequence[str] | None = None, **how: Any) -> Axes:
    return plots.trace(_most_telling(fit, domain) if items is None else _chosen(fit, domain, items), **how)


def _information(
    fit: Fit | NominalFit, domain: str | None = None, items: Sequence[str] | None = None, **how: Any
) -> Axes:
    return plots.information(_chosen(fit, domain, items), **how)


def _chosen(fit: Fit | NominalFit, domain: str | None, items: Sequence[str] | None) -> pd.DataFrame:
    """Rows of `coef` of a domain and of some items; InputError if one is not there."""
    coef = fit.coef()
    if domain is not None:
        if domain not in fit.domains:
            raise InputError(f"plot: there is no domain {domain!r}")
        coef = coef[coef["domain"] == domain]
    if items is not None:
        if not isinstance(items, str | Collection):
            raise InputError(f"plot: items must be a name or a list of names, not {items!r}")
        wanted = [items] if isinstance(items, str) else list(items)
        known = list(coef["item"].unique())
        for item in wanted:
            if item not in known:
                raise InputError(
                    f"plot: there is no item {item!r}" + ("" if domain is None else f" in domain {domain!r}")
                )
        coef = coef[coef["item"].isin(wanted)]
    return coef


def _most_telling(fit: Fit | NominalFit, domain: str | None) -> pd.DataFrame:
    """Rows of `coef` of the steepest items off the bounds (if there are any), by turns from every domain; or of the one
    item whose options tell most."""
    coef = _chosen(fit, domain, None)
    if isinstance(fit, Fit):
        inside = coef[~coef["at_bound"]]
        steepest = (coef if inside.empty else inside).sort_values("a", ascending=False, kind="stable")
        turn = steepest.groupby("domain", sort=False).cumcount()
        return steepest.iloc[np.argsort(turn.to_numpy(), kind="stable")[:_SHOWN]]
    information = fit.information()
    if domain is not None:
        information = information[information["domain"] == domain]
    best = information.iloc[int(information["nominal"].argmax())]
    return coef[(coef["domain"] == best["domain"]) & (coef["item"] == best["item"])]


_ELSEWHERE = {name: f"draw it from a study: plots.{name}(study)" for name in ("study_general", "study_domains")}
_FIT = "draw it from a fit: fit_mtl(responses, lam).plot(...), or path.at(lam).plot(...)"
_ANY = (Fit, NominalFit)

WORDS = {
    "heterogeneity": Word(_ANY, lambda fit, **how: plots.heterogeneity(fit.heterogeneity(), **how), _FIT),
    "item_counts": Word(_ANY, lambda fit, **how: plots.item_counts(fit.items, **how), _FIT),
    "item_accuracy": Word(_ANY, lambda fit, **how: plots.item_accuracy(fit.items, **how), _FIT),
    "correlation": Word(_ANY, lambda fit, **how: plots.correlation(fit.theta, **how), _FIT),
    "pca": Word(_ANY, lambda fit, **how: plots.pca(fit.theta, fit.general, **how), _FIT, ("groups",)),
    "profile": Word(_ANY, _profile, _FIT, ("model",)),
    "size": Word(_ANY, _size, _FIT, ("size",)),
    "trace": Word(_ANY, _trace, _FIT, ("domain", "items")),
    "information": Word(_ANY, _information, _FIT, ("domain", "items", "by")),
    "item_map": Word(
        (Fit,),
        lambda fit, **how: plots.item_map(fit.items, **how),
        "it maps the 2PL's slopes; take 'trace' for options",
    ),
    "path": Word(
        (CVResult, Path), _path, "run lambda_path(responses).plot(), or cv_mtl(responses).plot('path')", ("lam",)
    ),
    "cv": Word((CVResult,), _cv, "run cv_mtl(responses).plot()"),
    "rank_flow": Word(
        (PoolingComparison,),
        lambda comparison, **how: plots.rank_flow(comparison.ranks, **how),
        "run compare_pooling(responses, cv=...).plot()",
    ),
}
