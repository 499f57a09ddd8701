"""How models move between ranking regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.style import MAP, need, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIERS = 10
_COLUMNS = {"complete": "complete pooling", "chosen": "chosen lam", "mean_score": "mean score"}
_BOX = 0.09  # width of a column of boxes, the columns being 1 apart
_GAP = 0.012  # height between boxes, of all models together
_STEPS = np.linspace(0, 1, 41)
_SMOOTH = _STEPS**2 * (3 - 2 * _STEPS)


def rank_flow(ranks: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How models move between tenths of three rankings: complete pooling, the chosen lam, and mean scores.

    Boxes are tenths of the models, the best at the top. Each band joins a tenth of the chosen ranking, which gives its
    colour, to a tenth of another; its height is the number of models in both. rho is the Spearman correlation with
    the chosen ranking.

    Parameters
    ----------
    ranks : frame of `PoolingComparison.ranks`: complete, chosen and mean_score by model, 1 for the best. Models
        without one of the ranks are left out; equal ranks are split in the order of the frame.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or holds no numbers, or there are fewer than ten models.

    Source: figure 8 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> comparison = mtlirt.compare_pooling(mtlirt.datasets.demo(), lams=[11.0], folds=3)
    >>> ax = mtlirt.plots.rank_flow(comparison.ranks)
    >>> [label.get_text().split(chr(10))[0] for label in ax.get_xticklabels()]
    ['complete pooling', 'chosen lam', 'mean score']
    >>> matplotlib.pyplot.close(ax.figure)
    """
    ranks = need("rank_flow", ranks, (), _COLUMNS)[list(_COLUMNS)].dropna().astype("float64")
    if len(ranks) < TIERS:
        raise InputError(f"rank_flow: needs {TIERS} models or more that have all three ranks, not {len(ranks)}")
    ax = new_axes(ax, height=5.5)
    colours = _colours()
    for column, name in ((0, "complete"), (2, "mean_score")):
        _bands(ax, flows(ranks["chosen"], ranks[name]).to_numpy(), column, colours)
    for column, name in enumerate(_COLUMNS):
        _boxes(ax, tiers(ranks[name]).value_counts().sort_index().to_numpy(), column, colours)
    rho = ranks.corr(method="spearman")["chosen"]
    words = [text if name == "chosen" else f"{text}\nrho = {rho[name]:.3f}" for name, text in _COLUMNS.items()]
    ax.set_xticks(range(3), words)
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_xlim(-0.5, 2.5)
    ax.set_ylim(len(ranks) * (1 + TIERS * _GAP), -len(ranks) * _GAP)
    return ax


def tiers(ranks: pd.Series) -> pd.Series:
    """The tenth of each model, 1 for the best; tenths differ by one model at most."""
    place = ranks.rank(method="first").to_numpy()
    return pd.Series(np.ceil(place * TIERS / len(ranks)).astype(int), ranks.index)


def flows(chosen: pd.Series, other: pd.Series) -> pd.DataFrame:
    """Number of models in each tenth of the chosen ranking (rows) and of the other one (columns)."""
    every = range(1, TIERS + 1)
    counts = pd.crosstab(tiers(chosen).to_numpy(), tiers(other).to_numpy())
    return counts.reindex(index=every, columns=every, fill_value=0)


def _colours() -> np.ndarray:
    from matplotlib import colormaps

    return colormaps[MAP](np.linspace(0.0, 0.95, TIERS))


def _tops(sizes: np.ndarray) -> np.ndarray:
    """Upper ends of boxes of these sizes, one below the other."""
    return np.cumsum(sizes) - sizes + np.arange(len(sizes)) * _GAP * sizes.sum()


def _bands(ax: Axes, counts: np.ndarray, column: int, colours: np.ndarray) -> None:
    """A band for each pair of tenths: from the middle column to the one on its left (0) or right (2)."""
    start = _tops(counts.sum(axis=1))[:, None] + np.cumsum(counts, axis=1) - counts
    end = _tops(counts.sum(axis=0))[None] + np.cumsum(counts, axis=0) - counts
    side = column - 1
    x = 1 + side * (_BOX / 2 + _STEPS * (1 - _BOX))
    for i, j in np.argwhere(counts):
        top = start[i, j] + _SMOOTH * (end[i, j] - start[i, j])
        ax.fill_between(x, top, top + counts[i, j], color=colours[i], alpha=0.6, linewidth=0)


def _boxes(ax: Axes, sizes: np.ndarray, column: int, colours: np.ndarray) -> None:
    """The tenths of one column, named at the outer sides."""
    tops = _tops(sizes)
    middle = column == 1
    ax.bar(
        np.full(TIERS, column),
        sizes,
        _BOX,
        bottom=tops,
        color=colours if middle else "white",
        edgecolor="black",
        linewidth=0.6,
        zorder=3,
    )
    if middle:
        return
    side = column - 1
    for k, (top, models) in enumerate(zip(tops, sizes, strict=True)):
        text = f"top {100 // TIERS} %" if k == 0 else f"{100 // TIERS * k}–{100 // TIERS * (k + 1)} %"
        place = (column + side * _BOX, top + models / 2)
        ax.text(*place, text, ha="left" if side > 0 else "right", va="center", fontsize=8)
