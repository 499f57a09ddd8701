"""How lam is chosen: the path on which domains leave the general trait, and the cross-validation curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt._arguments import penalty_weight
from mtlirt.errors import InputError
from mtlirt.plots.names import name_points
from mtlirt.plots.style import BLUE, COLOURS, NAMED, PALE, VERMILLION, legend_above, need, need_traits, new_axes, others

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_END = 0.12  # of the width of the finite values: the way from there to infinity and to 0
_LEAST_END = 0.15  # decades: the same for a single value
_FEW_DECADES = 3.0  # up to which 2 and 5 are marked besides 1
_COUNTS = 0.05  # of the Axes' height, which the numbers of fused domains take above it
_CURVE = ("lam", "mean", "se", "n_fused")


def path(sines: pd.DataFrame, lam: float | None = None, *, ax: Axes | None = None) -> Axes:
    """Sine of the angle between each domain's trait and the general trait along lam: which domain leaves when.

    lam falls from infinity (complete pooling) on the left to 0 (separate domains) on the right, on a logarithmic scale
    between. A domain's dot and name stand where it leaves: at the largest lam at which its trait is not the general
    trait. Beyond six domains the six that end farthest from the general trait are named and the others are pale.

    Parameters
    ----------
    sines : frame lam x domains, of `Path.sines`.
    lam : the chosen value, marked by a line.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes; a finite lam stands at log10(lam).

    Raises
    ------
    InputError if the frame is not one of numbers by lam, or lam cannot be one.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.path(mtlirt.lambda_path(mtlirt.datasets.demo(), n=5).sines, lam=10.0)
    >>> ax.get_ylabel()
    'sine to the general trait'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    sines = _by_lam(need_traits("path", sines))
    lam = None if lam is None else penalty_weight(lam)
    ax = new_axes(ax)
    x = _lam_axis(ax, sines.index.to_numpy(dtype=np.float64), lam)
    order = list(sines.iloc[-1].sort_values(ascending=False, kind="stable").index)
    colours = dict(zip(order[:NAMED], COLOURS, strict=False))
    dots = {}
    for domain in reversed(order):
        y, colour, front = sines[domain].to_numpy(), colours.get(domain, PALE), domain in colours
        ax.plot(x, y, color=colour, linewidth=1.6 if front else 0.8, label=str(domain), zorder=2 + front)
        if (y > 0).any():
            dots[domain] = (x[y > 0][0], y[y > 0][0])
            ax.plot(*dots[domain], "o", color=colour, markersize=4 if front else 2, zorder=2 + front)
    ax.set_ylabel("sine to the general trait")
    ax.set_ylim(bottom=0)
    if len(order) > NAMED:
        pale = next(line for line in ax.lines if line.get_label() == str(order[-1]))
        legend_above(ax, 1, lift=0.0 if lam is None else _COUNTS, handles=[pale], labels=[others(len(order) - NAMED)])
    named = [domain for domain in colours if domain in dots]
    if named:
        lines = np.concatenate([_dense(x, sines[domain].to_numpy()) for domain in named])
        places = np.array([dots[domain] for domain in named])
        name_points(ax, places, named, [colours[domain] for domain in named], lines)
    return ax


def cv(
    table: pd.DataFrame, *, lam_min: float | None = None, lam_1se: float | None = None, ax: Axes | None = None
) -> Axes:
    """Held-out log-loss along lam, with standard errors over folds, both ends and the two choices.

    lam falls from infinity (complete pooling) on the left to 0 (separate domains) on the right; these two stand apart
    and are not joined to the curve. The numbers above count the domains that are fused at each lam in the fit to all
    answers, the dashed line lies one standard error above the smallest loss.

    Bars are standard errors of the loss itself. Folds that are hard at one lam are hard at all, so differences between
    lams, which are paired by fold, are surer than the bars suggest: `CVResult.table` has them as excess and excess_se.

    Parameters
    ----------
    table : frame of `CVResult.table`: lam, mean, se and n_fused. Rows without a mean are left out.
    lam_min : the lam with the smallest mean, and lam_1se the largest within one standard error of it, as `CVResult`
        has them; found in the table if not given.
    ax : Axes to draw on; a new figure if none are given.

    Returns
    -------
    The Axes; a finite lam stands at log10(lam).

    Raises
    ------
    InputError if a column is missing or holds no numbers, no row has a mean, or the smallest has no standard error.

    >>> import matplotlib, mtlirt
    >>> matplotlib.use("agg")
    >>> ax = mtlirt.plots.cv(mtlirt.cv_mtl(mtlirt.datasets.demo(), lams=[20.0, 5.0], folds=3).table)
    >>> ax.get_ylabel()
    'held-out log-loss per answer'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    table = need("cv", table, (), _CURVE).dropna(subset=["mean"])
    table = _by_lam(table.set_index("lam"))
    lams, mean, se = (np.asarray(v, dtype=np.float64) for v in (table.index, table["mean"], table["se"]))
    best = int(mean.argmin()) if lam_min is None else _position(lams, lam_min)
    limit = mean[best] + se[best]
    if np.isnan(limit):
        raise InputError(f"cv: the mean loss at lam = {_text(lams[best])} has no standard error")
    largest = int(np.flatnonzero(mean <= limit)[0]) if lam_1se is None else _position(lams, lam_1se)
    ax = new_axes(ax)
    x = _lam_axis(ax, lams)
    inner = np.isfinite(lams) & (lams > 0)
    for some, colour, line in ((inner, BLUE, "-"), (~inner, VERMILLION, "none")):
        if some.any():
            ax.errorbar(
                x[some], mean[some], se[some], color=colour, linestyle=line, marker="o", markersize=4, capsize=2
            )
    ax.axhline(limit, color="black", linestyle="--", linewidth=0.8, label="one standard error above the smallest loss")
    pooling = f"most pooling within one standard error: lam = {_text(lams[largest])}"
    smallest = f"smallest loss: lam = {_text(lams[best])}"
    ax.axvline(
        x[best], color="black", linewidth=1.0, label=smallest if best != largest else f"smallest loss and {pooling}"
    )
    if best != largest:
        ax.axvline(x[largest], color="black", linestyle=":", linewidth=1.4, label=pooling)
    for place, n in zip(x, table["n_fused"], strict=True):
        ax.annotate(f"{n}", (place, 1), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
                    ha="center", fontsize=7)  # fmt: skip
    ax.annotate("fused", (1, 1), (2, 3), xycoords="axes fraction", textcoords="offset points", fontsize=7)
    ax.set_ylabel("held-out log-loss per answer")
    legend_above(ax, 1, lift=_COUNTS)
    return ax


def _by_lam(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows from infinity down to 0; InputError unless they are lams, each once."""
    lams = [penalty_weight(lam) for lam in frame.index]
    if len(set(lams)) < len(lams):
        raise InputError("a lam has more than one row")
    return frame.set_axis(pd.Index(lams, name="lam"), axis=0).sort_index(ascending=False)


def _lam_axis(ax: Axes, lams: np.ndarray, marked: float | None = None) -> np.ndarray:
    """Places of the lams, log10 between the ends; sets up the axis, with a line at the marked lam."""
    values = lams if marked is None else np.append(lams, marked)
    inner = np.log10(values[np.isfinite(values) & (values > 0)])
    low, high = (inner.min(), inner.max()) if len(inner) else (0.0, 0.0)
    step = max(_END * (high - low), _LEAST_END)
    digits = (1, 2, 5) if high - low <= _FEW_DECADES else (1,)
    decades = range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1)
    round_values = [m * 10.0**k for k in decades for m in digits] if len(inner) else []
    ticks = {np.log10(v): f"{v:g}" for v in round_values if low - step / 3 <= np.log10(v) <= high + step / 3}
    for end, place, name in ((np.inf, high + step, "∞\ncomplete\npooling"), (0, low - step, "0\nseparate\ndomains")):
        if end in values:
            ax.axvspan(place - step / 2, place + step / 2, color="#F4F4F4", zorder=0, linewidth=0)
            ticks[place] = name
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_xlim(high + 1.6 * step, low - 1.6 * step)
    ax.set_xlabel("lam, the penalty weight")
    with np.errstate(divide="ignore"):
        x = np.clip(np.log10(values), low - step, high + step)
    if marked is not None:
        ax.axvline(x[-1], color="black", linewidth=1.0, zorder=1)
        ax.annotate(f"lam = {_text(marked)}", (x[-1], 1), (0, 3), xycoords=("data", "axes fraction"),
                    textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
    return x[: len(lams)]


def _position(lams: np.ndarray, lam: float) -> int:
    found = np.flatnonzero(np.isclose(lams, penalty_weight(lam), rtol=1e-12, atol=0))
    if not len(found):
        raise InputError(f"cv: the table has no mean loss at lam = {lam!r}")
    return int(found[0])


def _text(lam: float) -> str:
    return "infinity" if np.isinf(lam) else f"{lam:.4g}"


def _dense(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Points along a curve, so that names can keep off it."""
    at = np.linspace(0, len(x) - 1, 20 * len(x))
    return np.stack([np.interp(at, np.arange(len(x)), v) for v in (x, y)], axis=1)
