"""Pictures of items: trace curves, information, and the map of slopes and intercepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from mtlirt._arguments import one_of
from mtlirt.core.distractors import information_split
from mtlirt.errors import InputError
from mtlirt.plots.style import (
    BLUE,
    COLOURS,
    NAMED,
    ORANGE,
    PALE,
    TRAIT,
    VERMILLION,
    legend_above,
    need,
    new_axes,
    others,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THETA = np.linspace(-4, 4, 161)  # the usual box of traits
_ITEM = ["domain", "item"]
_RIGHT = (("domain", "item"), ("a", "d"))
_OPTIONS = (("domain", "item", "option", "right"), ("a", "c"))
_MANY = 500  # items from which points are drawn pale
_LINES = ("-", "--", "-.", ":", (0, (7, 3)), (0, (5, 1, 1, 1, 1, 1)))  # as many as colours


def trace(coef: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Trace curves: the probability of a right answer to some items, or of each option of one item, at each trait.

    P(right) = 1 / (1 + exp(-(a theta + d))), or P(option k) proportional to exp(a_k theta + c_k), with the key as a
    thick black line. Options of the LLM-NRM are drawn at sharpness 1, without the models' positions and fallback.

    Parameters
    ----------
    coef : rows of `Fit.coef`, one for each of up to 6 items, or the rows of one item from `NominalFit.coef`.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or holds no numbers, or there are too many items.

    Source: figure 1 of the LLM-NRM paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> fit = mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10)
    >>> ax = mtlirt.plots.trace(fit.coef().head(3))
    >>> ax.get_ylabel()
    'P(right)'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    options = _has_options("trace", coef)
    items = coef[_ITEM].drop_duplicates()
    if len(items) > (1 if options else NAMED):
        most = "the options of one item" if options else f"up to {NAMED} items"
        raise InputError(f"trace draws {most}, not {len(items)} items: choose rows of the frame")
    ax = new_axes(ax)
    ax.set(xlabel=TRAIT, ylabel="P(option)" if options else "P(right)", ylim=(-0.02, 1.02))
    if options:
        probabilities = softmax(np.multiply.outer(_THETA, coef["a"].to_numpy()) + coef["c"].to_numpy(), axis=1)
        _option_lines(ax, probabilities, coef)
        legend_above(ax, 5, title=_label(*items.iloc[0]))
    else:
        probabilities = expit(np.multiply.outer(_THETA, coef["a"].to_numpy()) + coef["d"].to_numpy())
        for k, (domain, item) in enumerate(items.itertuples(index=False)):
            ax.plot(_THETA, probabilities[:, k], color=COLOURS[k], linestyle=_LINES[k], label=_label(domain, item))
        legend_above(ax, 2)
    return ax


def information(coef: pd.DataFrame, *, by: Literal["domain", "item"] = "domain", ax: Axes | None = None) -> Axes:
    """Fisher information about the trait, at each trait: of domains' items together, or of single items.

    An item of the 2PL has a**2 P (1 - P). Options are drawn as one area for all items of the frame: at its bottom what
    right or wrong tells, (a_g - mean slope of the wrong options)**2 P (1 - P) with a_g the key's slope, and above it
    what the choice among wrong options adds.

    Parameters
    ----------
    coef : rows of `Fit.coef` or `NominalFit.coef`, whole items.
    by : a curve for each "domain" (the sum over its items) or "item" of the 2PL. Beyond six domains the six with the
        highest peaks are named and the others pale; of items there may be six.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or holds no numbers, or there are too many items.

    Source: section 3.2 and figure 2 of the LLM-NRM paper.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.information(mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10).coef())
    >>> ax.get_ylabel()
    'information'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    one_of("by", by, ("domain", "item"))
    if _has_options("information", coef):
        binary, wrong = _option_information(coef)
        ax = new_axes(ax)
        ax.stackplot(
            _THETA, binary, wrong, labels=["right or wrong", "added by options"], colors=[BLUE, ORANGE], linewidth=0
        )
    else:
        curves = _information_curves(coef, by)
        ax = new_axes(ax)
        for k, label in enumerate(curves.columns):
            look = {"color": COLOURS[k], "label": label, "zorder": 3} if k < NAMED else {"color": PALE}
            ax.plot(_THETA, curves.iloc[:, k], **look)
        if len(curves.columns) > NAMED:
            ax.lines[-1].set_label(others(len(curves.columns) - NAMED))
    ax.set(xlabel=TRAIT, ylabel="information")
    ax.set_ylim(bottom=0)
    legend_above(ax, 2)
    return ax


def item_map(items: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Slopes against intercepts of the items of a 2PL; slopes of 0 and other parameters on a bound are marked.

    Items with slope 0 say nothing about the trait.

    Parameters
    ----------
    items : frame with a, d and at_bound, of `Fit.items` or `Fit.coef`.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or holds no numbers.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.item_map(mtlirt.fit_mtl(mtlirt.datasets.demo(), lam=10).items)
    >>> ax.get_ylabel()
    'slope a'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    items = need("item_map", items, ["at_bound"], ["a", "d"])
    ax = new_axes(ax)
    flat = items["a"] == 0
    bound = items["at_bound"].astype(bool) & ~flat
    many = len(items) >= _MANY
    kinds = (("within the bounds", ~flat & ~bound, BLUE, "o"), ("slope 0", flat, VERMILLION, "x"))
    for name, some, colour, marker in (*kinds, ("on another bound", bound, ORANGE, "^")):
        label, rows = f"{name} ({some.sum():,})", items[some]
        alpha = 0.3 if many and marker == "o" else 0.8
        ax.plot(rows["d"], rows["a"], marker, color=colour, markersize=3, alpha=alpha, rasterized=many, label=label)
    ax.set(xlabel="intercept d", ylabel="slope a")
    legend = legend_above(ax, 3)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    return ax


def _option_lines(ax: Axes, probabilities: np.ndarray, coef: pd.DataFrame) -> None:
    """A line for each option (M, K): the key black, the others in colours and dashes, no two alike up to 36."""
    looks = iter({"color": COLOURS[k % NAMED], "linestyle": _LINES[(k + k // NAMED) % NAMED]} for k in range(len(coef)))
    for k, (option, right) in enumerate(zip(coef["option"], coef["right"], strict=True)):
        look = {"color": "black", "linewidth": 2.5} if right else next(looks)
        label = f"{short(option, 24)}, the key" if right else short(option, 24)
        ax.plot(_THETA, probabilities[:, k], label=label, **look)


def _information_curves(coef: pd.DataFrame, by: str) -> pd.DataFrame:
    """Frame theta x labels of domains or of items of the 2PL, highest peak first."""
    a, d = coef["a"].to_numpy(), coef["d"].to_numpy()
    p = expit(np.multiply.outer(a, _THETA) + d[:, None])
    information = a[:, None] ** 2 * p * (1 - p)
    if by == "item":
        if len(coef) > NAMED:
            raise InputError(f"information draws up to {NAMED} items one by one, not {len(coef)}: choose rows")
        labels = [_label(domain, item) for domain, item in coef[_ITEM].itertuples(index=False)]
        curves = pd.DataFrame(information.T, columns=labels)
    else:
        curves = pd.DataFrame(information).groupby(coef["domain"].to_numpy(), sort=False).sum().T.rename(columns=short)
    return curves.iloc[:, np.argsort(-curves.to_numpy().max(axis=0), kind="stable")]


def _option_information(coef: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(M,) information of right or wrong, and what the choice among wrong options adds, over all items."""
    by_item = coef.groupby(_ITEM, sort=False)
    item, option = by_item.ngroup().to_numpy(), by_item.cumcount().to_numpy()
    shape = (item.max() + 1, option.max() + 1)
    a, c, right, own = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for array, values in ((a, coef["a"]), (c, coef["c"]), (right, coef["right"]), (own, True)):
        array[item, option] = values
    if not right.any(axis=1).all():
        raise InputError("information: an item has no row of its key; give whole items")
    split = information_split(_THETA, a, c, own, right.argmax(axis=1))
    return split.binary.sum(axis=0), split.wrong.sum(axis=0)


def _label(domain: str, item: str) -> str:
    return f"{short(item, 24)} ({short(domain, 24)})"


def _has_options(plot: str, coef: object) -> bool:
    """Whether the rows are options' (a, c) rather than items' (a, d); InputError unless they are either."""
    options = isinstance(coef, pd.DataFrame) and "option" in coef.columns
    need(plot, coef, *(_OPTIONS if options else _RIGHT))
    return options
