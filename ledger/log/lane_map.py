"""Which server holds which usage lanes, as `TALLYSTICK_USAGE_LANES` says it.

every lane has exactly one address
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from domain.metering.report import LANES

MARKET: Final = "market"
"""In place of an address: the server of the market log."""
CHARACTERS_MAX = 6_000
"""PostgreSQL takes 10,000 bytes with which a session begins."""

_BETWEEN = re.compile(r",(?=\s*\d{1,2}(?:-\d{1,2})?=)")
"""Commas before lanes: an address of several hosts has commas of its own."""
_PASSWORD = re.compile(r"(://[^:@/\s]*:)[^@/]*(?=@)|([?&](?:ssl)?password=)[^&]*")
"""Behind the login, or a parameter."""
_HIDDEN = "********"
_PART = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?=(\S+)")


@dataclass(frozen=True, slots=True)
class LaneMap:
    """The address of each lane, lane 0 first; `MARKET`: it lies on the market's server."""

    addresses: tuple[str, ...] = (MARKET,) * LANES

    @classmethod
    def parse(cls, text: str) -> LaneMap:
        """`0-31=market,32-63=postgresql://...`. Raises ValueError naming the rule."""
        if len(text) > CHARACTERS_MAX:
            raise ValueError(f"at most {CHARACTERS_MAX} characters")
        found: dict[int, str] = {}
        for part in _BETWEEN.split(text):
            lanes, address = part_of(part.strip())
            for lane in lanes:
                if lane in found:
                    raise ValueError(f"every lane exactly once, and lane {lane} has two addresses")
                found[lane] = address
        if len(found) < LANES:
            missing = ranges(sorted(set(range(LANES)) - set(found)))
            raise ValueError(f"every lane exactly once, and lane {missing} has no address")
        return cls(tuple(found[lane] for lane in range(LANES)))

    def __str__(self) -> str:
        """As the setting is written."""
        parts: list[str] = []
        for address, lanes in self.servers().items():
            parts += [f"{each}={address}" for each in ranges(lanes).split(",")]
        return ",".join(sorted(parts, key=lambda part: int(re.split("[-=]", part)[0])))

    def shown(self) -> str:
        """Likewise, for what other people read: without passwords."""
        return str(LaneMap(tuple(map(_without_password, self.addresses))))

    def servers(self) -> Mapping[str, tuple[int, ...]]:
        """Each address with its lanes."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for lane, address in enumerate(self.addresses):
            found[address].append(lane)
        return {address: tuple(lanes) for address, lanes in found.items()}

    def elsewhere(self) -> Mapping[str, tuple[int, ...]]:
        """Likewise, without the market's server."""
        return {at: lanes for at, lanes in self.servers().items() if at != MARKET}

    def moved(self, lanes: Iterable[int], address: str) -> LaneMap:
        """The same with these lanes at another address."""
        addresses = list(self.addresses)
        for lane in lanes:
            addresses[lane] = address
        return LaneMap(tuple(addresses))


HERE: Final = LaneMap()
"""All lanes on the market's server."""


def part_of(text: str) -> tuple[range, str]:
    """`32-63=postgresql://...` or `5=market`: lanes and address. Raises ValueError."""
    match = _PART.fullmatch(text)
    if match is None:
        raise ValueError("each part is FIRST-LAST=ADDRESS, parts are separated by commas")
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < LANES:
        raise ValueError(f"lanes go from 0 to {LANES - 1}, the lower one first")
    return range(first, last + 1), _checked(match[3])


def _checked(address: str) -> str:
    """An address of PostgreSQL, or MARKET."""
    parts = urlsplit(address)
    is_one = parts.scheme in ("postgresql", "postgres") and bool(parts.netloc or parts.query)
    if address != MARKET and not is_one:
        raise ValueError(f"an address is postgresql://... or {MARKET}")
    if is_one:
        _require_readable(address)
    return address


def _require_readable(address: str) -> None:
    """Raises ValueError without what PostgreSQL says of it: that quotes passwords."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(address)
    except Error:
        raise ValueError(
            "PostgreSQL cannot read an address: what it holds of %, @, ? or / is"
            " written as %25, %40, %3F or %2F"
        ) from None


def _without_password(address: str) -> str:
    """One that libpq finds in another way than we do is not shown at all."""
    from psycopg.conninfo import conninfo_to_dict

    shown = _PASSWORD.sub(lambda found: f"{found[1] or found[2]}{_HIDDEN}", address)
    told = {} if address == MARKET else conninfo_to_dict(shown)
    kept = {told.get(name) for name in ("password", "sslpassword")}
    return shown if kept <= {None, _HIDDEN} else _HIDDEN


def ranges(lanes: Sequence[int]) -> str:
    """Ascending lanes as `0-3,7`."""
    found: list[list[int]] = []
    for lane in lanes:
        if found and lane == found[-1][-1] + 1:
            found[-1].append(lane)
        else:
            found.append([lane])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)
