"""Places on a map of longitudes and latitudes: integers go in, SVG comes out.

    x == floor((longitude + 180 degrees) x width / 360 degrees)    y the same of 90 - latitude

There is no drawing of coasts: none comes with us, and none is loaded. Lines stand every 30 degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from api.console.drawing.plots import NARROW, WIDE

TURN_E6, HALF_E6, QUARTER_E6 = 360_000_000, 180_000_000, 90_000_000
STEP_E6 = 30_000_000
RADIUS_MIN, RADIUS_MAX = 5, 22
_LINE = Markup('<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>')
_DOT = Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>')
_NAME = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>')


@dataclass(frozen=True, slots=True)
class Dot:
    """A place: its name, where it is, how large it is drawn beside others, and what it says."""

    name: str
    latitude_e6: int
    longitude_e6: int
    size: int
    says: str
    fill: str = "f1"


def dots(places: Sequence[Dot], says: str) -> Markup:
    """A map with a dot for each place, as a figure; the same numbers stand in the page's table."""
    return Markup(
        '<figure class="plot"><div class="plot-wrap"><div class="wide-only">{}</div>'
        '<div class="narrow-only">{}</div></div></figure>'
    ).format(_svg(places, WIDE, says), _svg(places, NARROW, says))


def _svg(places: Sequence[Dot], width: int, says: str) -> Markup:
    height = width // 2
    told = Markup("")
    for at in range(0, TURN_E6 + 1, STEP_E6):
        x = at * width // TURN_E6
        told += _LINE.format(x, 0, x, height)
    for at in range(0, HALF_E6 + 1, STEP_E6):
        y = at * height // HALF_E6
        told += _LINE.format(0, y, width, y)
    most = max((one.size for one in places), default=0) or 1
    for one in sorted(places, key=lambda place: -place.size):
        x = (one.longitude_e6 + HALF_E6) * width // TURN_E6
        y = (QUARTER_E6 - one.latitude_e6) * height // HALF_E6
        radius = RADIUS_MIN + (RADIUS_MAX * width // WIDE) * one.size // most
        told += _DOT.format(one.fill, x, y, radius, one.says)
        if width == WIDE:
            told += _NAME.format(min(max(x, 60), width - 60), max(14, y - radius - 4), one.name)
    open_ = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return open_.format(width, height, says) + told + Markup("</svg>")
