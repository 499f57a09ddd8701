"""Pictures of models: one against all, trait against size, ranks under several regimes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.style import COLOURS, GREY, PALE, TRAIT, need_traits, row_axes, short
from mtlirt.results.tables import SCORE_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 6  # models in one profile
_MARKERS = "osD^vP"
_SPREAD = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of all models


def profile(scores: pd.DataFrame, model: str | Sequence[str], *, ax: Axes | None = None) -> Axes:
    """Domain traits of one model, or of up to six, against the distribution of all models.

    A row for each domain: the pale line spans the middle 90 % of all models, the grey one the middle half, and the tick
    is the median. Domains are ordered by the first model's trait, highest at the top.

    Parameters
    ----------
    scores : frame models x domains, such as `Fit.theta`, or the frame of `Fit.scores`.
    model : name of a model, or a list of names.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError for a model that is not in the frame, or more than six.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> ax = mtlirt.plots.profile(fit.theta, fit.general.idxmax())
    >>> ax.get_yticklabels()[0].get_text()
    'coding'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    theta = _domain_traits(scores)
    models = [model] if isinstance(model, str) else list(model)
    _check_models(theta, models)
    domains = list(theta.T[models[0]].sort_values(ascending=False, kind="stable").index)
    theta = theta[domains]
    ax = row_axes(ax, domains)
    rows = np.arange(len(domains))
    low, lower, middle, upper, high = np.nanquantile(theta.to_numpy(dtype=np.float64), _SPREAD, axis=0)
    ax.hlines(rows, low, high, color=PALE, linewidth=3, label="middle 90 % of all models")
    ax.hlines(rows, lower, upper, color=GREY, linewidth=3, label="middle half")
    ax.plot(middle, rows, "|", color="black", markersize=6, label="median")
    for k, name in enumerate(models):
        ax.plot(theta.loc[name], rows, _MARKERS[k], color=COLOURS[k], markersize=5, label=short(name), zorder=3)
    ax.set_xlabel(TRAIT)
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3)
    return ax


def _domain_traits(scores: pd.DataFrame) -> pd.DataFrame:
    """Models x domains, from such a frame or from one of `Fit.scores`."""
    if isinstance(scores, pd.DataFrame) and "model" in scores.columns:
        scores = scores.set_index("model")
        other = [c for c in scores.columns if c in (*SCORE_COLUMNS, "borrowed") or str(c).startswith("se:")]
        scores = scores.drop(columns=other).rename(columns=lambda c: str(c).removeprefix("domain:"))
    return need_traits("profile", scores)


def _check_models(theta: pd.DataFrame, models: list[str]) -> None:
    if not 1 <= len(models) <= _MOST:
        raise InputError(f"profile: name 1 to {_MOST} models, not {len(models)}")
    for name in models:
        if name not in theta.index:
            raise InputError(f"profile: there is no model {name!r}")
