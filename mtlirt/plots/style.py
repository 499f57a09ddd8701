"""What all pictures share: colours, the axes they draw on, names that fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from mtlirt.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.text import Text

# Okabe and Ito's colours, told apart by colour-blind readers
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW, GREY = COLOURS
PALE = "#D9D9D9"  # what stands behind the rest
MAP = "viridis"  # of ordered colours
NAMED = 6  # lines that are told apart by colour: yellow and grey are too pale for lines
TRAIT = "trait (standard deviations)"
GENERAL = "general trait (standard deviations)"
_WIDTH = 7.0  # inches
_ROW, _ROWS_ABOVE = 0.17, 1.2  # inches a row of names takes, and what title and axis take
_FONT = 9.0
_LINE = 1.25  # height of a line of text, as a multiple of its font size
_POINTS = 72  # an inch


def new_axes(ax: Axes | None, width: float = _WIDTH, height: float = 4.5) -> Axes:
    """`ax`, or the Axes of a new figure of that size in inches; without the frame's upper and right sides."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def row_axes(ax: Axes | None, names: Sequence[Hashable]) -> Axes:
    """As `new_axes`, tall enough for a row for each name; the first is row 0, at the top. `fit_rows` comes
    last."""
    ax = new_axes(ax, height=max(2.5, _ROWS_ABOVE + _ROW * len(names)))
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    return ax


def legend_above(ax: Axes, columns: int, title: str | None = None, lift: float = 0.0) -> Legend:
    """A legend above the Axes, where it covers nothing; `lift` as a share of the Axes' height."""
    place = (0, 1 + lift)
    return ax.legend(
        frameon=False,
        fontsize=8,
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=place,
        borderaxespad=0.3,
        title=title,
        title_fontsize=9,
        alignment="left",
    )


def fit_rows(ax: Axes, rows: int, texts: Iterable[Text]) -> None:
    """Give texts that stand in `rows` rows of the Axes the font size at which they keep off each other; when all else
    is drawn."""
    texts, root = list(texts), ax.figure.figure
    assert root is not None
    for text in texts:
        text.set_fontsize(_FONT)
    root.draw_without_rendering()  # settles the layout
    height = ax.get_window_extent().height / root.dpi * _POINTS
    for text in texts:
        text.set_fontsize(min(_FONT, height / rows / _LINE))


def short(name: Hashable, most: int = 36) -> str:
    """A name on one line, cut in the middle to `most` characters, with nothing that matplotlib would take for a sign
    of its own."""
    text = " ".join(str(name).split()) or " "
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[-tail:]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def need(plot: str, frame: object, columns: Iterable[str]) -> pd.DataFrame:
    """`frame` if it is one, has these columns and at least one row; else InputError in the name of the plot."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{plot}: needs a frame, not {type(frame).__name__}")
    for column in columns:
        if column not in frame.columns:
            there = ", ".join(map(str, frame.columns[:12]))
            raise InputError(f"{plot}: the frame has no column {column!r}; it has {there}")
    if frame.empty:
        raise InputError(f"{plot}: the frame is empty")
    return frame


def need_traits(plot: str, traits: object, domains: int = 1) -> pd.DataFrame:
    """A frame models x domains of numbers, with so many domains at least; else InputError in the name of the plot."""
    frame = need(plot, traits, ())
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            raise InputError(f"{plot}: column {name!r} holds no numbers; give a frame models x domains, as fit.theta")
    if frame.shape[1] < domains:
        raise InputError(f"{plot}: needs {domains} domains or more, not {frame.shape[1]}")
    return frame
