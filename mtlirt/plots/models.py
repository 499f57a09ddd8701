"""Pictures of models: some against all, and the general trait against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.names import name_points
from mtlirt.plots.style import (
    BLUE,
    COLOURS,
    GENERAL,
    GREY,
    PALE,
    SCORE,
    TRAIT,
    VERMILLION,
    fit_rows,
    legend_above,
    need_series,
    need_traits,
    new_axes,
    row_axes,
    short,
)
from mtlirt.results.tables import OTHER_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 6  # models in one profile
_MARKERS = "osD^vP"
_MANY = 500  # models from which points are drawn small and pale
_OUTLIERS = 5  # named at most
_FAR = 2.5  # robust standard deviations from the smooth, from where a model is an outlier
_ROBUST = 1.4826  # standard deviation of a normal, as a multiple of its median absolute deviation
_NARROW, _WIDE = 0.6, 3.0  # decades of sizes: below, ticks are spaced evenly; up to there, 2 and 5 are ticks besides 1
_FRACTION = 2 / 3  # of the models that the smooth looks at around each size
_SPREAD = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of all models


def profile(
    scores: pd.DataFrame, model: str | Sequence[str], *, hollow: pd.DataFrame | None = None, ax: Axes | None = None
) -> Axes:
    """Domain traits of one model, or of up to six, against the distribution of all models.

    A row for each domain: the pale line spans the middle 90 % of all models, the grey one the middle half, and the tick
    is the median. Domains are ordered by the first model's trait, highest at the top.

    Parameters
    ----------
    scores : frame models x domains, such as `Fit.theta`, or the frame of `Fit.scores` or `Fit.score`, on either scale.
    model : name of a model, or a list of names.
    hollow : optional frame models x domains of truths: values to be drawn as hollow markers. `Fit.plot` draws so the
        traits that rest on no answers in the domain (`Fit.gaps`) or lie on the bound C.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError for a model that is not in the frame or has no number in any domain, or more than six.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> ax = mtlirt.plots.profile(fit.theta, fit.general.idxmax())
    >>> ax.get_yticklabels()[0].get_text()
    'coding'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    theta, label = _domain_traits(scores)
    models: list[Any] = list(model) if pd.api.types.is_list_like(model) else [model]
    _check_models(theta, models)
    domains = list(theta.T[models[0]].sort_values(ascending=False, kind="stable").index)
    theta = theta[domains]
    marked = _marked(theta, models, hollow)
    ax = row_axes(ax, domains, legend_rows=len(models) + 2)
    rows = np.arange(len(domains))
    low, lower, middle, upper, high = np.nanquantile(theta.to_numpy(dtype=np.float64), _SPREAD, axis=0)
    ax.hlines(rows, low, high, color=PALE, linewidth=3, label="middle 90 % of all models")
    ax.hlines(rows, lower, upper, color=GREY, linewidth=3, label="middle half")
    ax.plot(middle, rows, "|", color="black", markersize=6, label="median")
    for k, name in enumerate(models):
        ax.plot(
            theta.loc[name].where(~marked[k]),
            rows,
            _MARKERS[k],
            color=COLOURS[k],
            markersize=5,
            label=short(name),
            zorder=3,
        )
        if marked[k].any():
            ax.plot(
                theta.loc[name].where(marked[k]),
                rows,
                _MARKERS[k],
                color=COLOURS[k],
                markersize=5,
                mfc="white",
                zorder=3,
            )
    if marked.any():
        ax.plot([], [], "o", color="black", markersize=5, mfc="white", label="without answers, or on a bound")
    ax.set_xlabel(label)
    legend_above(ax, 2)
    fit_rows(ax, len(domains), ax.get_yticklabels())
    return ax


def _domain_traits(scores: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Models x domains, from such a frame or from one of `Fit.scores` or `Fit.score`, and what the values are.

    Only a frame with names in a column model and with the general trait is one of scores: domains may be named like
    columns.
    """
    text = isinstance(scores, pd.DataFrame) and {"model", "general"} <= set(scores.columns)
    if text and not pd.api.types.is_numeric_dtype(scores["model"]):
        scores = scores.set_index("model")
        other = [c for c in scores.columns if c in OTHER_COLUMNS or str(c).startswith("se:")]
        scores = scores.drop(columns=other).rename(columns=lambda c: str(c).removeprefix("domain:"))
    theta = need_traits("profile", scores)
    if theta.index.has_duplicates:
        raise InputError(f"profile: more than one row for model {theta.index[theta.index.duplicated()][0]!r}")
    outside = ((theta < 0) | (theta > 1)).to_numpy(dtype=bool, na_value=False).any()
    return theta, TRAIT if outside else SCORE  # traits have mean 0; shares lie in [0, 1]


def _marked(theta: pd.DataFrame, models: list[Any], hollow: pd.DataFrame | None) -> np.ndarray:
    """(models, domains) whether a marker is hollow."""
    if hollow is None:
        return np.zeros((len(models), theta.shape[1]), dtype=bool)
    if not isinstance(hollow, pd.DataFrame):
        raise InputError(f"profile: hollow must be a frame models x domains, not {type(hollow).__name__}")
    return hollow.reindex(index=models, columns=theta.columns).eq(True).to_numpy(dtype=bool)


def _check_models(theta: pd.DataFrame, models: list[Any]) -> None:
    if not 1 <= len(models) <= _MOST:
        raise InputError(f"profile: name 1 to {_MOST} models, not {len(models)}")
    for name in models:
        if not pd.api.types.is_hashable(name) or name not in theta.index:
            raise InputError(f"profile: there is no model {name!r}")
        if theta[theta.index == name].isna().all(axis=None):
            raise InputError(f"profile: model {name!r} has no number in any domain")


def size(general: pd.Series, size: pd.Series, *, ax: Axes | None = None) -> Axes:
    """The general trait against the models' size, with a smooth.

    The smooth is a lowess of the trait on log size (statsmodels). Up to five models farthest from it are named, those
    beyond 2.5 robust standard deviations.

    Parameters
    ----------
    general : the general trait by model.
    size : billions of parameters by model. Models without a size, or one of 0 or less, are left out and counted above
        the picture.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if these are no Series of numbers with one value for each model, or fewer than three models have both.

    Source: section 6.2 and table 2 of the R-MTL paper, which set ranks beside sizes.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> billions = pd.Series([float(name.split("-")[1].rstrip("B")) for name in fit.models], fit.models)
    >>> ax = mtlirt.plots.size(fit.general, billions)
    >>> ax.get_xscale()
    'log'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    x, y, names = _sized(general, size)
    ax = new_axes(ax)
    many = len(x) >= _MANY
    ax.plot(
        x, y, "o", color=BLUE, markersize=3 if many else 4, alpha=0.3 if many else 0.7, rasterized=many, linewidth=0
    )
    _size_axis(ax, x)
    ax.set(xlabel="size (billions of parameters)", ylabel=GENERAL)
    if len(general) > len(x):
        ax.set_title(f"{len(general) - len(x):,} of {len(general):,} models have no known size", fontsize=8, loc="left")
    smooth = _smooth(np.log(x), y)
    if smooth is None:
        return ax
    order = np.argsort(x, kind="stable")
    ax.plot(x[order], smooth[order], color=VERMILLION, linewidth=2, label="lowess")
    ax.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.3)
    off = np.abs(y - smooth)
    far = np.argsort(-off, kind="stable")[:_OUTLIERS]
    far = far[off[far] > _FAR * _ROBUST * np.median(off)]
    if len(far):
        name_points(ax, np.column_stack([x, y])[far], list(names[far]), [GREY] * len(far), np.column_stack([x, y]))
    return ax


def _sized(general: pd.Series, size: pd.Series) -> tuple[np.ndarray, np.ndarray, pd.Index]:
    """Sizes, traits and names of the models that have both."""
    general, size = need_series("size", "general", general), need_series("size", "size", size)
    x = size.reindex(general.index).to_numpy(dtype=np.float64, na_value=np.nan)
    y = general.to_numpy(dtype=np.float64, na_value=np.nan)
    both = np.isfinite(x) & (x > 0) & np.isfinite(y)
    if both.sum() < 3:
        raise InputError(f"size: needs 3 models with a trait and a size above 0, not {both.sum()}")
    return x[both], y[both], general.index[both]


def _size_axis(ax: Axes, x: np.ndarray) -> None:
    """A logarithmic axis with plain numbers, enough of them for sizes that lie close together too."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    ax.set_xscale("log")
    span = np.log10(x.max() / x.min())
    if span < _NARROW:
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.xaxis.set_minor_locator(NullLocator())
    elif span < _WIDE:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _smooth(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The lowess at each x, or None where all x are equal; it always looks beyond the commonest x."""
    from statsmodels.nonparametric.smoothers_lowess import lowess

    if np.ptp(x) == 0:
        return None
    commonest = np.unique(x, return_counts=True)[1].max() / len(x)
    fraction = min(1.0, max(_FRACTION, 1.1 * commonest))
    return np.asarray(lowess(y, x, frac=fraction, return_sorted=False, delta=0.01 * np.ptp(x)))
