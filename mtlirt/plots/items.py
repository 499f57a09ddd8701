"""Pictures of items: trace curves, information, and the map of slopes and intercepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from mtlirt.errors import InputError
from mtlirt.plots.style import COLOURS, NAMED, TRAIT, need, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THETA = np.linspace(-4, 4, 161)  # the usual box of traits
_ITEM = ["domain", "item"]
_RIGHT = ("domain", "item", "a", "d")
_OPTIONS = ("domain", "item", "option", "a", "c", "right")
_LINES = ("-", "--", "-.", ":")


def trace(coef: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Trace curves: the probability of a right answer to some items, or of each option of one item, at each trait.

    P(right) = 1 / (1 + exp(-(a theta + d))), or P(option k) proportional to exp(a_k theta + c_k), with the key as a
    thick black line.

    Parameters
    ----------
    coef : rows of `Fit.coef`, one for each of up to 6 items, or the rows of one item from `NominalFit.coef`.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes.

    Raises
    ------
    InputError if a column is missing or there are too many items.

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
    if options:
        probabilities = softmax(np.multiply.outer(_THETA, coef["a"].to_numpy()) + coef["c"].to_numpy(), axis=1)
        _option_lines(ax, probabilities, coef)
        ax.set_title(", ".join(short(x) for x in items.iloc[0]), fontsize=10)
    else:
        probabilities = expit(np.multiply.outer(_THETA, coef["a"].to_numpy()) + coef["d"].to_numpy())
        for k, (domain, item) in enumerate(items.itertuples(index=False)):
            line = _LINES[k % len(_LINES)]
            label = f"{short(item, 24)} ({short(domain, 24)})"
            ax.plot(_THETA, probabilities[:, k], color=COLOURS[k], linestyle=line, label=label)
    ax.set(xlabel=TRAIT, ylabel="P(option)" if options else "P(right)", ylim=(-0.02, 1.02))
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _option_lines(ax: Axes, probabilities: np.ndarray, coef: pd.DataFrame) -> None:
    """A line for each option (M, K): the key black, the others in colours and, beyond the colours, dashes."""
    colours = iter(COLOURS[k % NAMED] for k in range(len(coef)))
    for k, (option, right) in enumerate(zip(coef["option"], coef["right"], strict=True)):
        look = {"color": "black", "linewidth": 2.5} if right else {"color": next(colours), "linestyle": _LINES[k % 4]}
        label = f"{short(option, 24)}, the key" if right else short(option, 24)
        ax.plot(_THETA, probabilities[:, k], label=label, **look)


def _has_options(plot: str, coef: object) -> bool:
    """Whether the rows are options' (a, c) rather than items' (a, d); InputError unless they are either."""
    options = isinstance(coef, pd.DataFrame) and "option" in coef.columns
    need(plot, coef, _OPTIONS if options else _RIGHT)
    return options
