"""What every page shares: asking the API, saying amounts in words, and the frame of a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Any

import httpx
from nicegui import ui

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Told = dict[str, Any]

TIMEOUT_SECONDS = 20.0
DECIMALS = {"CREDIT": 6, "TOKEN": 8, "GPU_MS": 3, "SEAT_MS": 3}
GPU_HOUR_US = 3_600_000_000
_ASGI: list[Asgi] = []


class Refused(Exception):
    """The API answered with a problem; the message is its title and detail."""


def read_from(asgi: Asgi) -> None:
    """Have all pages of this process read from this application."""
    _ASGI[:] = [asgi]


class Reader:
    """Reads with one visitor's key; without one, what everybody may read."""

    def __init__(self, key: str) -> None:
        self._headers = {"Authorization": f"Bearer {key.strip()}"} if key.strip() else {}

    async def read(self, path: str, **query: str | int) -> Told:
        """The answer of a GET. Raises Refused."""
        transport = httpx.ASGITransport(app=_ASGI[0], client=("127.0.0.1", 1))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://console", timeout=TIMEOUT_SECONDS
        ) as http:
            answer = await http.get(path, params=query, headers=self._headers)
        told: Told = answer.json()
        if answer.status_code != 200:
            raise Refused(f"{told.get('title', answer.status_code)}: {told.get('detail', path)}")
        return told

    async def account_id(self) -> str:
        """Whose key it is. Raises Refused."""
        found = await self.read("/v1/accounts", limit=1)
        if not found["data"]:
            raise Refused("this key sees no account")
        return str(found["data"][0]["account_id"])


def amount(money: Told | None) -> str:
    """Units as a decimal, exactly: `1.265000 CREDIT`."""
    if money is None:
        return ""
    units, places = int(money["units"]), DECIMALS[money["asset"]]
    whole, rest = divmod(abs(units), 10**places)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole:,}.{rest:0{places}d} {money['asset']}"


def gpu_hours(gpu_us: str) -> str:
    """GPU-microseconds as GPU-hours, cut after six decimals."""
    whole, rest = divmod(int(gpu_us), GPU_HOUR_US)
    return f"{whole:,}.{rest * 1_000_000 // GPU_HOUR_US:06d}"


def when(moment: str | None) -> str:
    """A time to the second, in UTC."""
    return "" if moment is None else moment[:19].replace("T", " ")


def month_of(text: str) -> tuple[str, str]:
    """The first moments of a month and of the next one. Raises Refused."""
    try:
        first = date.fromisoformat(f"{text.strip()}-01")
    except ValueError:
        raise Refused(f"{text!r} is not a month such as 2026-11") from None
    following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return f"{first}T00:00:00Z", f"{following}T00:00:00Z"


def frame(title: str, show: Callable[[Reader, str, str, str, str], Awaitable[None]]) -> None:
    """A page: a key, a month, a button, and what `show(reader, account, month, from, to)` draws."""
    ui.page_title(f"tallystick: {title}")
    header()
    with ui.column().classes("w-full max-w-6xl mx-auto"):
        ui.label(title).classes("text-2xl")
        with ui.row().classes("items-end"):
            key = ui.input("API key", password=True).props("autocomplete=off").classes("w-96")
            month = ui.input("Month", value=f"{datetime.now(UTC):%Y-%m}").classes("w-32")
            button = ui.button("Show")
        result = ui.column().classes("w-full")

    async def shown() -> None:
        result.clear()
        with result:
            try:
                reader = Reader(key.value or "")
                from_, to = month_of(month.value or "")
                await show(reader, await reader.account_id(), month.value.strip(), from_, to)
            except Refused as refused:
                ui.label(str(refused)).classes("text-negative")

    button.on_click(shown)


def header() -> None:
    """What every page has at its top."""
    with ui.header().classes("items-center"):
        ui.label("tallystick").classes("text-xl font-bold")
        for heading, path in (("Bill", "bill"), ("Earnings", "earnings"), ("Epoch", "epoch")):
            # Relative to where the console is mounted, which NiceGUI puts before it.
            ui.link(heading, f"/{path}").classes("text-white")


def table(title: str, columns: list[tuple[str, str]], rows: list[Told], name: str) -> ui.table:
    """A plain table; `columns` are (field, heading). `name` marks it for whoever tests the page."""
    ui.label(title).classes("text-lg mt-4")
    heads: list[dict[str, Any]] = [
        {"name": field, "label": heading, "field": field, "align": "left"}
        for field, heading in columns
    ]
    made = ui.table(columns=heads, rows=rows, row_key=columns[0][0], pagination=25)
    return made.classes("w-full").props(f"dense flat data-testid={name}")


def facts(pairs: list[tuple[str, str]], name: str) -> None:
    """A row of figures with what they are."""
    with ui.row().props(f"data-testid={name}"):
        for heading, text in pairs:
            with ui.card().classes("p-3"):
                ui.label(heading).classes("text-xs text-gray-600")
                ui.label(text).classes("text-base font-mono")


def by_day(title: str, days: list[tuple[str, str]], name: str) -> None:
    """Bars: an amount of credits for each day."""
    ui.echart(
        {
            "title": {"text": title, "textStyle": {"fontSize": 14}},
            "tooltip": {},
            "xAxis": {"type": "category", "data": [day for day, _ in days]},
            "yAxis": {"type": "value", "name": "CREDIT"},
            "series": [{"type": "bar", "data": [text for _, text in days]}],
        }
    ).classes("w-full h-56").props(f"data-testid={name}")


def decimal(money: Told) -> str:
    """Only the number of `amount`, without separators: for a plot."""
    return amount(money).split(" ")[0].replace(",", "")
