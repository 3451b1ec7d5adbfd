"""Amounts, times, ids and states as a reader sees them: short, with all digits behind them.

    what is shown == the integer of the API, rounded half up to the places shown, and only here
    <data value=...> holds the integer itself, its title all digits

Nothing is added up here: a sum is a number of the API. What would be shown as zero and is not, is
shown with all its digits.
"""

from __future__ import annotations

from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from api.console.drawing.zones import Zone, moment_of, utc

PLACES = {"CREDIT": 6, "TOKEN": 8, "GPU_MS": 3, "SEAT_MS": 3}
GPU_HOUR_US = 3_600_000_000
SHOWN, SHOWN_OF_PRICES = 2, 3
ID_SHOWN = 8
STATES = {
    "good": {
        "active",
        "open",
        "paid",
        "settled",
        "ready",
        "valid",
        "accepted",
        "sealed",
        "running",
    },
    "warn": {"draining", "waiting", "pending", "closing", "quarantined", "disputed", "held"},
    "bad": {"failed", "refused", "rejected", "revoked", "error", "lost"},
}
"""Which words of the API need a reader's eye; every other is idle."""

Told = dict[str, Any]


def decimal(units: int, places: int, shown: int | None = None) -> str:
    """`units` of which 10^places are one, with `shown` places: `1,234.57`. Half is rounded up."""
    size, kept = abs(units), places if shown is None else min(shown, places)
    step = 10 ** (places - kept)
    rounded = (size + step // 2) // step
    if size and not rounded:
        rounded, kept = size, places
    whole, rest = divmod(rounded, 10**kept)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole:,}.{rest:0{kept}d}" if kept else f"{sign}{whole:,}"


def amount(money: Told) -> str:
    """All digits, and the unit: `1.265000 CREDIT`."""
    asset = str(money["asset"])
    return f"{decimal(int(money['units']), PLACES[asset])} {asset}"


def amt(money: Told | None, *, estimate: bool = False, unit: bool = False) -> Markup:
    """An amount with two places; `unit` says its unit too, where no heading does."""
    return _money(money, SHOWN, estimate=estimate, unit=unit)


def tok(money: Told | None) -> Markup:
    """An amount of TOKEN or CREDIT with its unit, for running text."""
    return _money(money, SHOWN, estimate=False, unit=True)


def price(money: Told | None, *, unit: bool = False) -> Markup:
    """A price with three places."""
    return _money(money, SHOWN_OF_PRICES, estimate=False, unit=unit)


def _money(money: Told | None, shown: int, *, estimate: bool, unit: bool) -> Markup:
    if money is None:
        return Markup('<span class="muted">none</span>')
    asset, units = str(money["asset"]), int(money["units"])
    told = Markup('<data value="{}" title="{}"{}>{}</data>').format(
        units,
        amount(money),
        Markup(' class="est"') if estimate else "",
        decimal(units, PLACES[asset], shown),
    )
    return told + Markup(' <span class="unit">{}</span>').format(asset) if unit else told


def hours(gpu_us: int | str | None) -> Markup:
    """GPU-microseconds as GPU-hours with two places."""
    if gpu_us is None:
        return Markup('<span class="muted">none</span>')
    units = int(gpu_us)
    hundredths = (units * 100 + GPU_HOUR_US // 2) // GPU_HOUR_US
    text = decimal(hundredths, 2) if hundredths or not units else "< 0.01"
    return Markup('<data value="{}" title="{} GPU-microseconds">{}</data>').format(
        units, f"{units:,}", text
    )


def percent(ppm: int | None, absent: str = "none") -> str:
    """Parts per million as a percentage, exactly: `87.5 %`."""
    if ppm is None:
        return absent
    text = f"{ppm // 10_000}.{ppm % 10_000:04d}".rstrip("0").rstrip(".")
    return f"{text} %"


@pass_context
def when(context: Context, moment: str | None, form: str = "short", absent: str = "") -> Markup:
    """A moment in the reader's zone, UTC in its title. `form`: short, day or clock."""
    if moment is None:
        return escape(absent)
    zone: Zone = context["visit"].zone
    found = moment_of(moment)
    shown = {"short": zone.short, "day": zone.day, "clock": zone.clock}[form](found)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, utc(found), shown)


@pass_context
def form_marks(context: Context) -> Markup:
    """What every form that is sent with POST has: that it is ours, and its own number."""
    visit = context["visit"]
    return Markup(
        '<input type="hidden" name="csrf" value="{}"><input type="hidden" name="once" value="{}">'
    ).format(visit.csrf, visit.once)


def ident(text: str | None, *, copy: bool = True) -> Markup:
    """An id, short; all of it in its title and behind the button that copies it."""
    if text is None:
        return Markup("")
    kind, line, rest = text.rpartition("_")
    short = f"{kind}{line}{rest[:ID_SHOWN]}…" if len(rest) > ID_SHOWN + 2 else text
    told = Markup('<span class="id" title="{}">{}</span>').format(text, short)
    if not copy:
        return told
    button = Markup('<button type="button" class="copy" data-copy="{}" aria-label="Copy {}">')
    return told + button.format(text, text) + Markup("Copy</button>")


def pill(state: str, tone: str | None = None) -> Markup:
    """A state: a word with a shape. `tone`: good, warn, bad or idle; else by the word."""
    found = tone or next((each for each, words in STATES.items() if state in words), "idle")
    return Markup('<span class="pill {}">{}</span>').format(found, state.replace("_", " "))


def plain(word: str) -> str:
    """A word of the API in letters for people: `gpu_hours` is `gpu hours`."""
    return word.replace("_", " ").replace(".", " ")
