"""Names beside points, none over another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtlirt.plots.style import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEAR = 6.0  # typographic points between a point and its name
_RADII = _NEAR * np.array([1, 2.5, 4.5, 7, 10, 14, 19, 25])  # tried in turn; beyond the first a line leads to the name
_ANGLES = np.deg2rad([0, 180, 45, 135, 315, 225, 90, 270, 20, 160, 340, 200])
_WAY = np.linspace(0, 1, 15)  # places on the line from a point to its name
_GAP = 1.5  # pixels that stay free around a name
_COVERED = 20.0  # typographic points of distance that are gone to rather than cover a point
_CROSSED = 60.0  # the same, rather than lead a line across a name
_POINTS = 72  # an inch


def name_points(
    ax: Axes,
    points: np.ndarray,
    names: Sequence[Hashable],
    colours: Sequence[str],
    avoid: np.ndarray,
    fontsize: float = 8.0,
) -> None:
    """Write each name beside its point, in turn, where it covers no name written before and few points; a name that
    finds no such place is left out.

    points : (n, 2) in the data's units, avoid : (m, 2) all points that names should leave visible.
    """
    root = ax.figure.figure
    assert root is not None
    root.draw_without_rendering()  # settles the limits and the layout, which distances depend on
    scale = root.dpi / _POINTS
    at, others, frame = ax.transData.transform(points), ax.transData.transform(avoid), ax.get_window_extent()
    taken, leaders = np.empty((0, 4)), np.empty((0, 2))
    for (x, y), name, colour, point in zip(at, names, colours, points, strict=True):
        text = ax.annotate(
            short(name), tuple(point), (0, 0), textcoords="offset points", fontsize=fontsize, ha="center", va="center"
        )
        extent = text.get_window_extent()
        text.remove()
        offsets, boxes = _candidates(x, y, extent.width, extent.height, scale)
        outside = _outside(boxes, np.array([frame.x0, frame.y0, frame.x1, frame.y1]))
        ways = np.array([x, y]) + _WAY[:, None] * offsets[:, None]
        clash = np.array([_meet(box, taken) for box in boxes])
        crossed = np.array([_crossed(way, taken) for way in ways])
        covered = np.array([_inside(box, others) + _inside(box, leaders) for box in boxes])
        distance = np.repeat(_RADII, len(_ANGLES)) + np.tile(np.arange(len(_ANGLES)) / len(_ANGLES), len(_RADII))
        detour = distance + _COVERED * np.minimum(covered, 3) + _CROSSED * crossed
        best = int(np.argmin(1e6 * clash + 1e3 * outside + detour))
        if clash[best]:
            continue
        taken, leaders = np.vstack([taken, boxes[best]]), np.vstack([leaders, ways[best]])
        _write(ax, short(name), tuple(point), tuple(offsets[best] / scale), colour, fontsize, best >= len(_ANGLES))


def _write(
    ax: Axes,
    text: str,
    point: tuple[float, float],
    offset: tuple[float, float],
    colour: str,
    fontsize: float,
    leader: bool,
) -> None:
    from matplotlib.patheffects import withStroke

    written = ax.annotate(
        text,
        point,
        offset,
        textcoords="offset points",
        fontsize=fontsize,
        ha="center",
        va="center",
        zorder=5,
        path_effects=[withStroke(linewidth=2.0, foreground="white")],
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
        if leader
        else None,
    )
    written.set_in_layout(False)


def _candidates(x: float, y: float, width: float, height: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Offsets (k, 2) of a name's centre from its point and boxes (k, 4) x0, y0, x1, y1, in pixels, near ones first."""
    radius, angle = (v.ravel() for v in np.meshgrid(_RADII * scale, _ANGLES, indexing="ij"))
    across, up = np.cos(angle), np.sin(angle)
    offsets = np.stack([across * radius + np.sign(across.round(6)) * width / 2, up * (radius + height / 2)], axis=1)
    centre = offsets + np.array([x, y])
    half = np.array([width, height]) / 2 + _GAP
    return offsets, np.hstack([centre - half, centre + half])


def _meet(box: np.ndarray, taken: np.ndarray) -> int:
    """How many of the taken boxes (n, 4) meet the box."""
    return int(((taken[:, :2] < box[2:]) & (taken[:, 2:] > box[:2])).all(axis=1).sum())


def _crossed(way: np.ndarray, taken: np.ndarray) -> int:
    """How many of the taken boxes (n, 4) lie on the way (k, 2) from a point to its name."""
    return sum(_inside(box, way) > 0 for box in taken)


def _inside(box: np.ndarray, points: np.ndarray) -> int:
    return int(((points > box[:2]) & (points < box[2:])).all(axis=1).sum())


def _outside(boxes: np.ndarray, frame: np.ndarray) -> np.ndarray:
    return np.any(np.hstack([boxes[:, :2] < frame[:2], boxes[:, 2:] > frame[2:]]), axis=1)
