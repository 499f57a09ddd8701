"""Pictures of the report as svg text: the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from mtlirt.report.evidence import Evidence
from mtlirt.results.base import TraitFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[[Axes], object]

_WIDTH, _HEIGHT = 7.6, 4.6  # inches
_ROW, _ROWS_ABOVE = 0.17, 1.4  # inches that a row of names takes, and what stands above and below the rows
_TAG, _ID = re.compile(r"<[^>]*>"), re.compile(r' id="|href="#|url\(#')
_LOOK = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mtlirt",
    "font.family": "sans-serif",
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "text.usetex": False,
}


def pictures(fit: TraitFit, evidence: Evidence) -> list[dict[str, Any]]:
    """Pictures that can be drawn from what is known: name, title, caption and svg of each."""
    from mtlirt import plots

    drawn, rows = [], max(3.0, _ROWS_ABOVE + _ROW * len(fit.domains))
    if not fit.fused.all():
        caption = (
            "Correlations between the domains' traits over models, similar domains side by side. A domain that differs "
            "from the rest measures something else."
        )
        square = max(_HEIGHT, rows - 2.0)
        title = "How alike the domains rank the models"
        drawn.append(_picture("correlation", title, caption, lambda ax: plots.correlation(fit.theta, ax=ax), square))
        caption = "Bars: sine of the angle to the general trait. Diamonds: rank correlation with it."
        table, title = fit.heterogeneity(), "How far each domain departs from the general trait"
        drawn.append(_picture("heterogeneity", title, caption, lambda ax: plots.heterogeneity(table, ax=ax), rows))
    if evidence.cv is not None and evidence.cv["mean"].notna().any():
        cv = evidence.cv
        caption = (
            "Held-out log-loss by lam, from complete pooling on the left to separate domains on the right, with "
            "standard errors over folds. Lower is better."
        )
        drawn.append(_picture("cv", "How much should the domains borrow?", caption, lambda ax: plots.cv(cv, ax=ax)))
    if evidence.sines is not None:
        sines = _wide(evidence.sines, fit.domains)
        caption = (
            "Sine of the angle between each domain's trait and the general trait. A domain leaves the general trait at "
            "the lam where its line leaves 0; those that leave first differ most."
        )
        title = "Which domains leave the general trait"
        drawn.append(_picture("path", title, caption, lambda ax: plots.path(sines, lam=fit.lam, ax=ax)))
    return drawn


def _wide(sines: pd.DataFrame, domains: tuple[str, ...]) -> pd.DataFrame:
    """Frame lam x domains, from infinity down to 0."""
    wide = sines.pivot_table(index="lam", columns="domain", values="sine", sort=False)
    return wide.reindex(columns=list(domains)).sort_index(ascending=False)


def _picture(name: str, title: str, caption: str, draw: Draw, height: float = _HEIGHT) -> dict[str, Any]:
    return {"name": name, "title": title, "caption": caption, "svg": svg(name, draw, height)}


def svg(name: str, draw: Draw, height: float = _HEIGHT) -> str:
    """The svg element that `draw` makes, without date; every id in it begins with `name`, so ids are unique in a page.

    >>> svg("empty", lambda ax: None).startswith("<svg ")
    True
    """
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with mpl.style.context(["default", _LOOK]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser, not matplotlib's font, writes the names
        warnings.filterwarnings("ignore", category=mpl.MatplotlibDeprecationWarning)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL).strip()
    return _TAG.sub(lambda tag: _ID.sub(rf"\g<0>{name}-", tag[0]), text)
