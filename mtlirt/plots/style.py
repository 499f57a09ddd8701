"""What all pictures share: colours, the axes they draw on, names that fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtlirt.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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
SCORE = "score"  # of what need not be traits
GENERAL = "general trait (standard deviations)"
_WIDTH = 7.0  # inches
_ROW, _ROWS_ABOVE = 0.17, 1.2  # inches a row of names takes, and what title and axis take
_FONT, _LEGEND_FONT = 9.0, 8.0
_SMALLER, _LEAST_FONT = 0.9, 2.0  # steps in which the letters of a wide legend get smaller, and where that ends
_LEGEND_ROW = 0.16  # inches
_NAMES_SHARE = 0.5  # of the figure's width or height, which names beside the Axes take at most
_LINE = 1.25  # height of a line of text, as a multiple of its font size
_POINTS = 72  # an inch
_UNSEEN = ("Cc", "Cf", "Mn")  # classes of signs that have no width


def new_axes(ax: Axes | None, width: float = _WIDTH, height: float = 4.5) -> Axes:
    """`ax`, or the Axes of a new figure of that size in inches; without the frame's upper and right sides."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "spines"):
        raise InputError(f"ax must be matplotlib Axes, not {type(ax).__name__}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def row_axes(ax: Axes | None, names: Sequence[Hashable], legend_rows: int = 0) -> Axes:
    """As `new_axes`, tall enough for a row for each name and the rows of a legend; the first is row 0, at the top.
    `fit_rows` comes last."""
    ax = new_axes(ax, height=max(2.5, _ROWS_ABOVE + _ROW * len(names)) + _LEGEND_ROW * legend_rows)
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    return ax


def legend_above(
    ax: Axes,
    columns: int,
    title: str | None = None,
    lift: float = 0.0,
    handles: Sequence[Artist] | None = None,
    labels: Sequence[str] | None = None,
) -> Legend:
    """A legend above the Axes, where it covers nothing, of all that has a label, or of these handles and labels; `lift`
    as a share of the Axes' height.

    It has so many columns, or fewer where the Axes are too narrow for them, and smaller letters where one is too wide.
    """
    room = _settled(ax)[0]
    if handles is None or labels is None:
        handles, labels = ax.get_legend_handles_labels()

    def legend(n: int, font: float) -> Legend:
        return ax.legend(
            handles,
            labels,
            frameon=False,
            fontsize=font,
            ncols=n,
            loc="lower left",
            bbox_to_anchor=(0, 1 + lift),
            borderaxespad=0.3,
            title=title,
            title_fontsize=9,
            alignment="left",
        )

    for n in range(columns, 1, -1):
        made = legend(n, _LEGEND_FONT)
        if made.get_window_extent().width <= room:
            return made
    font = _LEGEND_FONT
    while (made := legend(1, font)).get_window_extent().width > room and font > _LEAST_FONT:
        font *= _SMALLER
    return made


def others(n: int) -> str:
    """The entry of a legend for the pale lines of so many domains."""
    return f"{n} other domain{'s' if n > 1 else ''}"


def fit_rows(ax: Axes, rows: int, texts: Iterable[Text]) -> None:
    """Give texts that stand in `rows` rows of the Axes the font size at which they keep off each other and leave the
    Axes half of the figure; when all else is drawn."""
    texts, root = list(texts), ax.figure.figure
    assert root is not None
    for text in texts:
        text.set_fontsize(_FONT)
    height = _settled(ax)[1] / root.dpi * _POINTS
    font = min(_FONT, height / rows / _LINE)
    beside = [text.get_window_extent() for text in (*ax.get_yticklabels(), *ax.get_xticklabels())]
    across = max((box.width for box in beside[: len(ax.get_yticks())]), default=0.0) / root.bbox.width
    down = max((box.height for box in beside[len(ax.get_yticks()) :]), default=0.0) / root.bbox.height
    font = min(font, _FONT * _NAMES_SHARE / max(across, down, _NAMES_SHARE))
    for text in texts:
        text.set_fontsize(font)


def _settled(ax: Axes) -> tuple[float, float]:
    """Width and height of the Axes in pixels, once the layout has made room for all that is drawn."""
    root = ax.figure.figure
    assert root is not None
    root.draw_without_rendering()
    extent = ax.get_window_extent()
    return extent.width, extent.height


def short(name: Hashable, most: int = 36) -> str:
    """A name on one line, cut in the middle to `most` characters, with nothing that matplotlib would take for a sign
    of its own, and □ for each sign that its font lacks."""
    text = _drawable(" ".join(str(name).split())) or " "
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[-tail:]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _drawable(text: str) -> str:
    """The text with □ for what the font in use cannot draw; as it is where svg leaves letters to its reader."""
    from matplotlib import font_manager, rcParams

    if (text.isascii() and text.isprintable()) or rcParams["svg.fonttype"] == "none":
        return text
    signs: set[int] = set()
    for family in font_manager.FontProperties().get_family():
        try:
            path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
        except ValueError:
            continue
        signs |= _signs(path)
    signs = signs or set(_signs(font_manager.findfont(font_manager.FontProperties())))
    box = "□" if ord("□") in signs else "?"
    return "".join(c if ord(c) in signs else "" if unicodedata.category(c) in _UNSEEN else box for c in text)


@cache
def _signs(path: str) -> frozenset[int]:
    """Code points of the signs in a font."""
    from matplotlib.font_manager import get_font

    return frozenset(get_font(path).get_charmap())


def need(plot: str, frame: object, columns: Iterable[str], numbers: Iterable[str] = ()) -> pd.DataFrame:
    """`frame` if it is one, has these columns, those of `numbers` numeric, and at least one row with a number in each
    of them; else InputError in the name of the plot."""
    numbers = tuple(numbers)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{plot}: needs a frame, not {type(frame).__name__}")
    for column in (*columns, *numbers):
        if column not in frame.columns:
            there = ", ".join(map(str, frame.columns[:12]))
            raise InputError(f"{plot}: the frame has no column {column!r}; it has {there}")
    if frame.empty:
        raise InputError(f"{plot}: the frame is empty")
    for column in numbers:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            raise InputError(f"{plot}: column {column!r} holds no numbers but {frame[column].dtype}")
    if numbers and frame[list(numbers)].isna().any(axis=1).all():
        raise InputError(f"{plot}: no row has a number in each of {', '.join(numbers)}")
    return frame


def need_series(plot: str, what: str, values: object, numbers: bool = True) -> pd.Series:
    """`values` if they are a Series with one value for each name, of numbers; else InputError."""
    kind = "a Series of numbers" if numbers else "a Series"
    if not isinstance(values, pd.Series) or (numbers and not pd.api.types.is_numeric_dtype(values)):
        given = f"one of {values.dtype}" if isinstance(values, pd.Series) else type(values).__name__
        raise InputError(f"{plot}: {what} must be {kind}, not {given}")
    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()][0]
        raise InputError(f"{plot}: {what} has more than one value for {twice!r}")
    return values


def need_traits(plot: str, traits: object, domains: int = 1) -> pd.DataFrame:
    """A frame models x domains of numbers, with so many domains at least; else InputError in the name of the plot."""
    frame = need(plot, traits, ())
    if frame.columns.has_duplicates:
        raise InputError(f"{plot}: more than one column {frame.columns[frame.columns.duplicated()][0]!r}")
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            raise InputError(f"{plot}: column {name!r} holds no numbers; give a frame models x domains, as fit.theta")
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise InputError(f"{plot}: column {frame.columns[np.isinf(values).any(axis=0)][0]!r} holds an infinite value")
    if np.isnan(values).all():
        raise InputError(f"{plot}: the frame holds no number")
    if frame.shape[1] < domains:
        raise InputError(f"{plot}: needs {domains} domains or more, not {frame.shape[1]}")
    return frame
