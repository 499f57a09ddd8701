"""Pictures with a row for each domain: number of items, their accuracy, distance to the general trait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.style import BLUE, GREY, ORANGE, fit_rows, legend_above, need, row_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def item_counts(items: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Number of items in each domain, most at the top.

    Parameters
    ----------
    items : frame with a row for each item and a column domain: of a fit, or of `Responses`.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if there is no column domain, or no row.

    Source: figure 2 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.item_counts(mtlirt.datasets.demo().items)
    >>> ax.get_yticklabels()[0].get_text()
    'reading'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    counts = need("item_counts", items, ["domain"])["domain"].value_counts()
    if counts.empty:
        raise InputError("item_counts: no row has a domain")
    ax = row_axes(ax, list(counts.index))
    bars = ax.barh(range(len(counts)), counts, color=BLUE)
    numbers = ax.bar_label(bars, fmt="{:,.0f}", padding=3)
    ax.margins(x=0.08)
    ax.set_xlabel("items")
    fit_rows(ax, len(counts), [*ax.get_yticklabels(), *numbers])
    return ax


def item_accuracy(items: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Box plots of the items' mean scores by domain, the easiest domain at the top.

    An item's mean score is the share of models that answer it correctly. Boxes span the middle half of a domain's
    items, whiskers reach the outermost item within 1.5 times the box, dots are items beyond.

    Parameters
    ----------
    items : frame with columns domain and mean_score, of a fit.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing, or no row has a number.

    Source: figure 3 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.item_accuracy(mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10).items)
    >>> ax.get_xlabel()
    'mean score of an item (share of models right)'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    items = need("item_accuracy", items, ["domain"], ["mean_score"]).dropna(subset="mean_score")
    scores = items.groupby("domain", sort=False)["mean_score"]
    order = list(scores.median().sort_values(ascending=False, kind="stable").index)
    ax = row_axes(ax, order)
    boxes = ax.boxplot(
        [scores.get_group(domain) for domain in order],
        positions=range(len(order)),
        orientation="horizontal",
        widths=0.6,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": "#B3D4E8", "edgecolor": BLUE},
        medianprops={"color": "black"},
        whiskerprops={"color": BLUE},
        capprops={"color": BLUE},
        flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": GREY},
    )
    for outliers in boxes["fliers"]:
        outliers.set_rasterized(True)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("mean score of an item (share of models right)")
    fit_rows(ax, len(order), ax.get_yticklabels())
    return ax


def heterogeneity(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How far each domain departs from the general trait, most odd at the top.

    Bars are sines of the angle between the two traits, diamonds Spearman correlations of the two rankings of models.
    Fused domains, whose trait is the general trait, are marked.

    Parameters
    ----------
    table : frame of `Fit.heterogeneity`: domain, sine, rho and fused.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or sine and rho are no numbers.

    Source: table 1 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> ax = mtlirt.plots.heterogeneity(fit.heterogeneity())
    >>> ax.get_yticklabels()[0].get_text()
    'chess'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    table = need("heterogeneity", table, ["domain", "fused"], ["sine", "rho"])
    table = table.sort_values("sine", ascending=False, kind="stable")
    ax = row_axes(ax, list(table["domain"]))
    rows = np.arange(len(table))
    ax.barh(rows, table["sine"], color=BLUE, height=0.6, label="sine of the angle to the general trait")
    ax.plot(
        table["rho"], rows, "D", color=ORANGE, markersize=4, clip_on=False, label="Spearman correlation with it (rho)"
    )
    for row in rows[table["fused"].to_numpy(dtype=bool)]:
        ax.annotate("fused", (0, row), (3, 0), textcoords="offset points", va="center", color="#555555")
    ax.set_xlim(min(0.0, table["rho"].min()), 1)
    ax.set_xlabel("sine, rho")
    legend_above(ax, 2)
    fit_rows(ax, len(table), [*ax.get_yticklabels(), *ax.texts])
    return ax
