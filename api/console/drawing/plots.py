"""Plots: integers go in, SVG comes out. No script, no style in the mark-up, no float.

    height of a bar == floor(value x plot height / top of the axis)

Axes begin at 0 and have at most four steps of a round number. Each plot is drawn twice, wide and
for a phone, so that its letters stay as large; the style sheet shows one. `role="img"` comes with
the sentence that the caller gives, and the same numbers stand as a table beneath.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from api.console.drawing.words import decimal

WIDE, NARROW = 960, 328
STEPS = (10, 12, 16, 20, 24, 32, 40, 50, 60, 80)
LEFT, TOP, BELOW = 52, 22, 26
LABEL_WIDTH = 46
_LINE = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
_RECT = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
_SQUARE = Markup(
    '<li><svg width="12" height="12" aria-hidden="true"><rect class="{}" width="12" height="12"/>'
    "</svg>{}</li>"
)
FILLS = ("f1", "f2", "f3", "f4", "hatch")


@dataclass(frozen=True, slots=True)
class Bar:
    """One place on the axis: its name, and a part for each series, in the smallest unit."""

    name: str
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.parts)


@dataclass(frozen=True, slots=True)
class Bars:
    """What `bars` draws: `series` names the parts of a bar, `places` are those of the unit."""

    title: str
    unit: str
    places: int
    bars: Sequence[Bar]
    series: tuple[str, ...]
    says: str = ""
    fills: tuple[str, ...] = field(default=FILLS)


def top_of(most: int, places: int) -> tuple[int, int]:
    """The top of the axis, and the step between its lines, for a highest value of `most`."""
    unit = max(1, 10 ** (places - 2))
    size = unit
    while True:
        for step in STEPS:
            if step * size * 4 >= 10 * max(most, unit):
                found = step * size // 10
                return found * -(-max(most, unit) // found), found
        size *= 10


def bars(drawn: Bars) -> Markup:
    """Stacked bars, as a figure with its key and its numbers as a table."""
    wide, narrow = _svg(drawn, WIDE, 210), _svg(drawn, NARROW, 190)
    return Markup(
        '<figure class="plot"><div class="plot-wrap"><div class="wide-only">{}</div>'
        '<div class="narrow-only">{}</div></div>{}{}</figure>'
    ).format(wide, narrow, _key(drawn), _table(drawn))


def sentence(drawn: Bars) -> str:
    """What is to be seen, for those who do not see it."""
    if drawn.says:
        return f"{drawn.title}. {drawn.says}"
    if not drawn.bars or not any(one.total for one in drawn.bars):
        return f"{drawn.title}. All {len(drawn.bars)} are zero"
    most = max(drawn.bars, key=lambda one: one.total)
    none = sum(1 for one in drawn.bars if not one.total)
    text = f"{drawn.title}. Highest: {most.name} with {decimal(most.total, drawn.places, 2)}"
    return f"{text} {drawn.unit}; {none} of {len(drawn.bars)} are zero"


def _svg(drawn: Bars, width: int, height: int) -> Markup:
    most = max((one.total for one in drawn.bars), default=0)
    top, step = top_of(most, drawn.places)
    low, room = height - BELOW, height - BELOW - TOP
    parts = [Markup('<text x="0" y="12">{}</text>').format(drawn.unit)]
    for value in range(0, top + 1, step):
        y = low - value * room // top
        kind = "axis" if value == 0 else "grid"
        parts.append(_LINE.format(kind, LEFT, width, y, y))
        label = decimal(value, drawn.places, 2 if step < 10**drawn.places else 0)
        text = Markup('<text x="{}" y="{}" text-anchor="end">{}</text>')
        parts.append(text.format(LEFT - 8, y + 4, label))
    count = max(1, len(drawn.bars))
    every = max(1, -(-count * LABEL_WIDTH // (width - LEFT)))
    for index, one in enumerate(drawn.bars):
        left = LEFT + index * (width - LEFT) // count
        wide = max(2, (width - LEFT) * 2 // (3 * count))
        parts.append(_bar(drawn, one, left, min(wide, 60), (low, room, top)))
        if index % every == 0:
            text = Markup('<text x="{}" y="{}">{}</text>')
            parts.append(text.format(left, height - 8, one.name))
    open_ = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return open_.format(width, height, sentence(drawn)) + Markup("").join(parts) + Markup("</svg>")


def _bar(drawn: Bars, one: Bar, left: int, width: int, axis: tuple[int, int, int]) -> Markup:
    low, room, top = axis
    told, below = Markup(""), 0
    for index, part in enumerate(one.parts):
        if part <= 0:
            continue
        high, under = (below + part) * room // top, below * room // top
        name = drawn.series[index] if len(drawn.series) > 1 else one.name
        tip = f"{one.name}, {name}" if name != one.name else name
        tip = f"{tip}: {decimal(part, drawn.places)} {drawn.unit}"
        height = max(1, high - under)
        told += _RECT.format(drawn.fills[index], left, low - high, width, height, tip)
        below += part
    return told


def _key(drawn: Bars) -> Markup:
    if len(drawn.series) < 2:
        return Markup("")
    items = [
        _SQUARE.format(fill, name) for name, fill in zip(drawn.series, drawn.fills, strict=False)
    ]
    return Markup('<ul class="key">') + Markup("").join(items) + Markup("</ul>")


def _table(drawn: Bars) -> Markup:
    heads = Markup("").join(
        Markup('<th scope="col" class="num">{}, {}</th>').format(name, drawn.unit)
        for name in drawn.series
    )
    cell = Markup('<td class="num"><data value="{}" title="{} {}">{}</data></td>')
    rows = [
        Markup('<tr><th scope="row">{}</th>').format(one.name)
        + Markup("").join(
            cell.format(
                part, decimal(part, drawn.places), drawn.unit, decimal(part, drawn.places, 2)
            )
            for part in one.parts
        )
        + Markup("</tr>")
        for one in drawn.bars
    ]
    return Markup(
        '<details class="asdata"><summary>The same as a table</summary>'
        '<div class="scroll" tabindex="0" role="group" aria-label="{}, table"><table><thead><tr>'
        '<th scope="col"><span class="sr">Name</span></th>{}</tr></thead><tbody>{}</tbody></table>'
        "</div></details>"
    ).format(drawn.title, heads, Markup("").join(rows))


def spark(values: Sequence[int], says: str, *, key: str = "") -> Markup:
    """A line without an axis, of the last values; `key` is what live events call it."""
    width, height = 240, 56
    most, last = max([*values, 1]), max(1, len(values) - 1)
    points = " ".join(
        f"{index * width // last},{height - 4 - value * (height - 8) // most}"
        for index, value in enumerate(values)
    )
    named = Markup(' data-key="{}"').format(key) if key else Markup("")
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">'
        '<polyline class="l1" points="{}"{}/></svg>'
    ).format(width, height, says, points, named)


def split(parts: Sequence[tuple[str, int]], says: str) -> Markup:
    """One bar that is divided: (name, size) of each part."""
    whole, left = max(1, sum(size for _, size in parts)), 0
    told = Markup("")
    for index, (name, size) in enumerate(parts):
        right = (left + size) * 1000 // whole
        begin = left * 1000 // whole
        told += _RECT.format(FILLS[index % 4], begin, max(0, right - begin), name)
        left += size
    return Markup(
        '<svg class="bar thick" viewBox="0 0 1000 22" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">'
        "{}</svg>"
    ).format(says, told)
