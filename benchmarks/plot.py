"""Bars that lie, as an SVG file of its own: it shows on a light page and on a dark one.

The console's plots stand upright under short names and take their colours from its style sheet;
here the names are sentences, and a document shows the file as a picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

NAMES, ROOM, VALUES = 420, 380, 90
"""Widths: the names on the left, the longest bar, and the numbers behind it."""
ROW, HEAD, FOOT = 20, 34, 26
TEXT, REACHED, MISSED, MARK = "#767676", "#2f7ebc", "#c8641e", "#767676"


@dataclass(frozen=True, slots=True)
class Bar:
    """`is_reached` None: there is nothing to reach."""

    name: str
    value: float
    told: str
    is_reached: bool | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """`mark`: a value that a line is drawn at, and its name. `is_log`: bars begin at 1 and go to
    the left below it.
    """

    title: str
    bars: Sequence[Bar]
    mark: tuple[float, str] | None = None
    is_log: bool = False


def svg(plot: Plot) -> str:
    """The whole file."""
    height = HEAD + ROW * len(plot.bars) + FOOT
    width = NAMES + ROOM + VALUES
    low, high = _ends(plot)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="sans-serif" font-size="12"><title>{escape(plot.title)}</title>',
        _text(0, 16, plot.title, "start", weight="bold"),
    ]
    for index, bar in enumerate(plot.bars):
        parts += _row(plot, bar, HEAD + ROW * index, (low, high))
    if plot.mark is not None:
        at = NAMES + _place(plot, plot.mark[0], (low, high))
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{HEAD - 6}" y2="{height - FOOT + 4}" stroke="{MARK}"'
            ' stroke-dasharray="4 3"/>'
        )
        parts.append(_text(at, height - 8, plot.mark[1], "middle"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(plot: Plot, bar: Bar, top: int, ends: tuple[float, float]) -> list[str]:
    zero, at = _place(plot, 1 if plot.is_log else 0, ends), _place(plot, bar.value, ends)
    left, width = NAMES + min(zero, at), max(1, abs(at - zero))
    fill = MISSED if bar.is_reached is False else REACHED
    return [
        _text(NAMES - 8, top + 14, bar.name, "end"),
        f'<rect x="{left}" y="{top + 3}" width="{width}" height="{ROW - 6}" fill="{fill}"/>',
        _text(left + width + 6, top + 14, bar.told, "start"),
    ]


def _ends(plot: Plot) -> tuple[float, float]:
    values = [bar.value for bar in plot.bars] + ([plot.mark[0]] if plot.mark else [])
    if plot.is_log:
        return min(0.1, *values), max(10.0, *values)
    return 0.0, max(*values, 1e-9)


def _place(plot: Plot, value: float, ends: tuple[float, float]) -> int:
    """Where a value stands, in [0, ROOM]."""
    low, high = ends
    if plot.is_log:
        return round(ROOM * math.log(value / low) / math.log(high / low))
    return round(ROOM * (value - low) / (high - low))


def _text(x: int, y: int, text: str, anchor: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="{TEXT}">'
        f"{escape(text)}</text>"
    )
