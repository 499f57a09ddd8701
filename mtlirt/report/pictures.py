"""Pictures of the report as svg text: the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtlirt.errors import InputError
from mtlirt.report.evidence import Evidence
from mtlirt.results.base import TraitFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes"], object]

_WIDTH, _HEIGHT = 7.6, 4.6  # inches
_MARGIN = 0.1  # inches
_ROW, _ROWS_ABOVE = 0.17, 1.4  # inches that a row of names takes, and what stands above and below the rows
_CELL, _BESIDE = 0.15, 2.0  # inches that a domain takes in the square of correlations, and what its names take
_TAG, _ID = re.compile(r"<[^>]*>"), re.compile(r' id="|href="#|url\(#')
_LOOK = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mtlirt",
    "font.family": "sans-serif",
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "text.usetex": False,
}


@dataclass(frozen=True)
class _Picture:
    name: str
    title: str
    caption: str
    draw: Draw
    width: float = _WIDTH
    height: float = _HEIGHT

    def facts(self) -> dict[str, Any]:
        """The picture as svg, or why it cannot be drawn."""
        try:
            drawn, said = svg(self.name, self.draw, self.width, self.height), self.caption
        except InputError as error:
            drawn, said = None, f"Left out: {error}."
        return {"name": self.name, "title": self.title, "caption": said, "svg": drawn}


def pictures(fit: TraitFit, evidence: Evidence) -> list[dict[str, Any]]:
    """Pictures of what is known: name, title, caption and svg of each; svg is None, and the caption says why, where it
    cannot be drawn."""
    drawn = [] if fit.fused.all() else _of_domains(fit)
    return [picture.facts() for picture in (*drawn, *_of_selection(fit, evidence))]


def _of_domains(fit: TraitFit) -> list[_Picture]:
    from mtlirt import plots

    table, T = fit.heterogeneity(), len(fit.domains)
    side = max(_HEIGHT, _BESIDE + _CELL * T)
    return [
        _Picture(
            "correlation",
            "How alike the domains rank the models",
            "Correlations between the domains' traits over models, similar domains side by side. A domain that differs "
            "from the rest measures something else.",
            lambda ax: plots.correlation(fit.theta, ax=ax),
            width=max(_WIDTH, side + 1),
            height=side,
        ),
        _Picture(
            "heterogeneity",
            "How far each domain departs from the general trait",
            "Bars: sine of the angle to the general trait. Diamonds: rank correlation with it.",
            lambda ax: plots.heterogeneity(table, ax=ax),
            height=max(3.0, _ROWS_ABOVE + _ROW * T),
        ),
    ]


def _of_selection(fit: TraitFit, evidence: Evidence) -> list[_Picture]:
    from mtlirt import plots

    out, curve, sines = [], evidence.cv, evidence.sines
    if curve is not None:
        out.append(
            _Picture(
                "cv",
                "How much should the domains borrow?",
                "Held-out log-loss by lam, from complete pooling on the left to separate domains on the right, with "
                "standard errors over folds. Lower is better.",
                lambda ax: plots.cv(curve, ax=ax),
            )
        )
    if sines is not None:
        wide = sines.pivot_table(index="lam", columns="domain", values="sine", sort=False).reindex(columns=fit.domains)
        out.append(
            _Picture(
                "path",
                "Which domains leave the general trait",
                "Sine of the angle between each domain's trait and the general trait as lam falls. A domain leaves the "
                "general trait where its line rises from 0.",
                lambda ax: plots.path(wide, lam=fit.lam, ax=ax),
            )
        )
    return out


def svg(name: str, draw: Draw, width: float = _WIDTH, height: float = _HEIGHT) -> str:
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
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=_MARGIN)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL).strip()
    return _TAG.sub(lambda tag: _ID.sub(rf"\g<0>{name}-", tag[0]), text)
