"""Months of UTC, as bills and earnings count them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from api.console.visits.reading import refused
from api.console.visits.visit import Visit

NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Month:
    """`2026-11`, with its first moment and that of the next month."""

    year: int
    number: int

    @property
    def text(self) -> str:
        return f"{self.year:04d}-{self.number:02d}"

    @property
    def name(self) -> str:
        return f"{NAMES[self.number - 1]} {self.year}"

    @property
    def next(self) -> Month:
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def before(self) -> Month:
        return Month(self.year - (self.number == 1), (self.number - 2) % 12 + 1)

    @property
    def period(self) -> dict[str, str]:
        """The parameters `from` and `to` of the API."""
        return {"from": f"{self.text}-01T00:00:00Z", "to": f"{self.next.text}-01T00:00:00Z"}

    @property
    def days(self) -> list[str]:
        """Every day, `2026-11-01` first."""
        first = date(self.year, self.number, 1)
        count = (date(self.next.year, self.next.number, 1) - first).days
        return [f"{self.text}-{number:02d}" for number in range(1, count + 1)]


def this_month(visit: Visit) -> Month:
    """The month that the server's clock is in."""
    now = datetime.fromtimestamp(visit.service.clock.now_us() // 1_000_000, UTC)
    return Month(now.year, now.month)


def month_of(visit: Visit) -> Month:
    """The month in the address of a page. Raises Refused."""
    text = visit.params["month"]
    try:
        found = date.fromisoformat(f"{text}-01")
    except ValueError:
        raise refused("invalid", f"{text[:40]!r} is not a month such as 2026-11") from None
    if not 2000 <= found.year <= 2200:
        raise refused("invalid", "a month lies between 2000-01 and 2200-12")
    return Month(found.year, found.month)
