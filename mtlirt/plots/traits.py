"""Pictures of how domain traits hang together: correlations, and principal components with the general trait."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError
from mtlirt.plots.names import name_points
from mtlirt.plots.style import COLOURS, MAP, fit_rows, legend_above, need_series, need_traits, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGH = 0.9  # the colours reach down to here, or to the smallest correlation
_WRITTEN = 12  # domains up to which correlations are written into the cells
_NAMED = 12  # points that are named, those farthest from the general trait first
_CLUSTER = 0.1  # of the farthest domain's distance: nearer ones of many are not named
_MARKERS = "osD^vPX*"
_SAME = 1e-9  # share of the traits' length below which they count as one trait


def correlation(traits: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map of the correlations between domains over models, similar domains side by side.

    Pearson correlations; the order is that of hierarchical clustering (average linkage on 1 - correlation). The title
    gives the median, smallest and largest correlation of two domains. Of a fit's traits these are larger than of mean
    scores: the penalty pulls domains toward the general trait, at a large lam until all correlations are 1. Draw mean
    scores (`fit.data.mean_score`) for the correlations as they are in the answers.

    Parameters
    ----------
    traits : frame models x domains: traits, or mean scores as in the paper.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if the frame is not one of numbers, or has fewer than two domains.

    Source: figure 4 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> ax = mtlirt.plots.correlation(fit.data.mean_score)
    >>> ax.get_title()
    'median .83, from .52 to .90'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    table = need_traits("correlation", traits, domains=2).astype("float64").corr()
    table = table.iloc[_clustered(table.to_numpy())].pipe(lambda t: t[t.index])
    T, values = len(table), table.to_numpy()
    between = values[np.triu_indices(T, 1)]
    if np.isnan(between).all():
        raise InputError("correlation: no two domains vary over the same models")
    side = max(5.0, 2.0 + 0.15 * T)
    ax = new_axes(ax, width=side + 1, height=side)
    lowest = min(float(np.nanmin(between)), _HIGH)
    image = ax.imshow(values, cmap=MAP, vmin=lowest, vmax=1.0)
    names = [short(domain, 30) for domain in table.index]
    ax.set_xticks(range(T), names, rotation=90)
    ax.set_yticks(range(T), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="correlation over models", shrink=0.8)
    ax.set_title(
        f"median {_two(np.nanmedian(between))}, from {_two(np.nanmin(between))} to {_two(np.nanmax(between))}",
        fontsize=10,
    )
    if T <= _WRITTEN:
        _write_cells(ax, values, (lowest + 1) / 2)
    fit_rows(ax, T, [*ax.get_xticklabels(), *ax.get_yticklabels()])
    return ax


def _write_cells(ax: Axes, values: np.ndarray, middle: float) -> None:
    for row, column in np.argwhere(~np.isnan(values)):
        value = values[row, column]
        colour = "black" if value > middle else "white"
        ax.text(column, row, _two(value), ha="center", va="center", fontsize=8, color=colour)


def _clustered(correlations: np.ndarray) -> np.ndarray:
    """(T,) the order of hierarchical clustering; unknown correlations count as 0."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = 1 - np.nan_to_num(correlations)
    np.fill_diagonal(distance, 0)
    condensed = squareform(distance.clip(min=0), checks=False)
    return np.asarray(leaves_list(linkage(condensed, method="average", optimal_ordering=True)))


def _two(value: float) -> str:
    """Two digits, without the zero before the point."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.2f}")


@dataclass(frozen=True)
class Components:
    """domains : (T, 2) places of the domain traits in the plane of their first two principal components.
    general : (2,) place of the general trait.  shares : (2,) of the variance of the domain traits."""

    domains: np.ndarray
    general: np.ndarray
    shares: np.ndarray


def components(theta: np.ndarray, general: np.ndarray) -> Components:
    """Of domain traits (N, T) and the general trait (N,), each centred and scaled to length 1.

    Signs are such that each component's farthest domain has a positive coordinate.
    """
    unit = np.column_stack([theta, general]).T
    unit = unit - unit.mean(axis=1, keepdims=True)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    centre = unit[:-1].mean(axis=0)
    _, length, axes = np.linalg.svd(unit[:-1] - centre, full_matrices=False)
    if not length[0] > _SAME:
        raise InputError("pca: all domains share one trait; take a smaller lam")
    places = (unit - centre) @ axes[:2].T
    places *= np.sign(places[np.abs(places[:-1]).argmax(axis=0), [0, 1]])
    return Components(places[:-1], places[-1], (length**2 / (length**2).sum())[:2])


def pca(theta: pd.DataFrame, general: pd.Series, groups: pd.Series | None = None, *, ax: Axes | None = None) -> Axes:
    """Domain traits and the general trait as points in the plane of the domains' first two principal components.

    Each domain's trait over all models is one vector of length 1. The axes say how much of the vectors' variance each
    component holds, and have one scale, so that distances compare in all directions. Up to 12 domains are named; of
    more, those that stand away from the general trait.

    Parameters
    ----------
    theta : frame models x domains, of a fit with three domains or more; models without a trait in every domain are
        left out.
    general : the general trait by model.
    groups : optional, the group of each domain, which gives colour and shape; up to 8 groups.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError for fewer than three domains or models, if all domains share one trait or one is the same for all models,
    or if a domain has no group.

    Source: figure 7 of the R-MTL paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=5)
    >>> ax = mtlirt.plots.pca(fit.theta, fit.general)
    >>> ax.get_xlabel()
    'first component (81 % of the variance)'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    theta = need_traits("pca", theta, domains=3).dropna()
    general = need_series("pca", "general", general).reindex(theta.index).dropna()
    theta = theta.loc[general.index]
    if len(theta) < 3:
        raise InputError(f"pca: needs 3 models with a trait in every domain and a general trait, not {len(theta)}")
    for name, trait in (*theta.items(), ("the general trait", general)):
        if not np.ptp(trait) > _SAME:
            raise InputError(f"pca: {name!r} is the same for all models")
    found = components(theta.to_numpy(dtype=np.float64), general.to_numpy(dtype=np.float64))
    group = _group_of(theta.columns, groups)
    ax = new_axes(ax, height=5.0)
    colours = _grouped_points(ax, found.domains, group)
    ax.plot(
        *found.general,
        "*",
        color="black",
        markerfacecolor="none",
        markersize=15,
        label="general trait",
        linestyle="none",
    )
    for axis, word, share in zip((ax.xaxis, ax.yaxis), ("first", "second"), found.shares, strict=True):
        axis.set_label_text(f"{word} component ({100 * share:.0f} % of the variance)")
    ax.margins(0.1)
    ax.set_aspect("equal", "datalim")
    legend_above(ax, 3)
    distance = np.linalg.norm(found.domains - found.general, axis=1)
    far = np.argsort(-distance, kind="stable")[:_NAMED]
    if len(distance) > _NAMED:
        far = far[distance[far] > _CLUSTER * distance.max()]
    every = np.vstack([found.domains, found.general])
    name_points(ax, found.domains[far], [theta.columns[t] for t in far], [colours[t] for t in far], every)
    return ax


def _group_of(domains: pd.Index, groups: pd.Series | None) -> pd.Series:
    """The group of each domain; InputError where one has none, or there are too many to tell apart."""
    if groups is None:
        return pd.Series("domains", domains)
    group = need_series("pca", "groups", groups, numbers=False).reindex(domains)
    if group.isna().any():
        raise InputError(f"pca: groups has none for domain {group.index[group.isna()][0]!r}")
    if group.nunique() > len(COLOURS):
        raise InputError(f"pca: up to {len(COLOURS)} groups can be told apart, not {group.nunique()}")
    return group


def _grouped_points(ax: Axes, places: np.ndarray, group: pd.Series) -> list[str]:
    """Draws the points; returns each one's colour."""
    names = list(group.unique())
    for k, name in enumerate(names):
        own = (group == name).to_numpy()
        ax.plot(*places[own].T, _MARKERS[k], color=COLOURS[k], markersize=5, label=short(name))
    return [COLOURS[names.index(name)] for name in group]
