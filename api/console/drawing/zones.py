"""Times as a reader sees them: in the reader's zone, with UTC behind them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Zone:
    """Where a reader's clock stands; `now` is the server's moment."""

    name: str
    at: tzinfo
    now: datetime

    def short(self, moment: datetime) -> str:
        """`20 Nov, 10:00`, with the year where it is not the present one."""
        local, now = moment.astimezone(self.at), self.now.astimezone(self.at)
        year = "" if local.year == now.year else f" {local.year}"
        return f"{local.day} {MONTHS[local.month - 1]}{year}, {local:%H:%M}"

    def day(self, moment: datetime) -> str:
        """`20 Nov`, with the year where it is not the present one."""
        return self.short(moment).rpartition(",")[0]

    def clock(self, moment: datetime) -> str:
        """`10:00`"""
        return f"{moment.astimezone(self.at):%H:%M}"


def zone_of(name: str, now_us: int) -> Zone:
    """The zone that a cookie names (IANA); UTC for every other text."""
    name = name.replace("%2F", "/")
    found = _found(name) if _NAME.fullmatch(name) else None
    now = _EPOCH + timedelta(microseconds=now_us)
    return Zone("UTC", UTC, now) if found is None else Zone(name, found, now)


@lru_cache(maxsize=600)
def _found(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def moment_of(text: str) -> datetime:
    """A moment as the API writes it, RFC 3339 in UTC. Raises ValueError."""
    return datetime.fromisoformat(text)


def utc(moment: datetime) -> str:
    """`20 Nov 2026, 09:00:00 UTC`"""
    found = moment.astimezone(UTC)
    return f"{found.day} {MONTHS[found.month - 1]} {found:%Y, %H:%M:%S} UTC"
