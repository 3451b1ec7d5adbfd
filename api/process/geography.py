"""Where an IP address is: a seam, and the one way behind it, a file that the operator names.

The file is CSV with a header: network,country,state,city,latitude,longitude. Networks in CIDR,
country as ISO 3166-1, state as ISO 3166-2 without its country; what is not known is empty. The
narrowest network that holds an address counts. Free databases of this shape exist; which one, and
under which licence, is the operator's to choose. Nothing is asked over the network.
"""

from __future__ import annotations

import csv
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from api.settings import SettingsInvalid
from domain.regions.boundaries import Place

COLUMNS = ("network", "country", "state", "city", "latitude", "longitude")
ROWS_MAX = 5_000_000


class GeographyUnreadable(SettingsInvalid):
    """The file of places cannot be used; the message names the line and the rule."""


class Geography(Protocol):
    """Knows places of addresses."""

    def place(self, address: str) -> Place:
        """Where an address is, as far as it is known."""
        ...


@dataclass(slots=True)
class NoGeography:
    """An operator without a file: nothing is known but the address."""

    def place(self, address: str) -> Place:
        return Place(address=_address(address))


@dataclass(slots=True)
class PlacesFile:
    """All networks of a file in memory, by IP version and length."""

    networks: dict[tuple[int, int], dict[int, Place]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> PlacesFile:
        """Raises GeographyUnreadable."""
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return cls._from(csv.DictReader(file), path)
        except (OSError, UnicodeDecodeError) as error:
            raise GeographyUnreadable(f"{path}: {error}") from error

    @classmethod
    def _from(cls, rows: Iterable[Mapping[str, str]], path: Path) -> PlacesFile:
        found = cls()
        for line, row in enumerate(rows, start=2):
            if line > ROWS_MAX + 1:
                raise GeographyUnreadable(f"{path}: more than {ROWS_MAX} networks")
            try:
                network = ipaddress.ip_network(row["network"])
                place = _place(row)
            except (KeyError, TypeError, ValueError) as error:
                raise GeographyUnreadable(
                    f"{path}, line {line}: {error}. Columns: {','.join(COLUMNS)}"
                ) from error
            key = (network.version, network.prefixlen)
            found.networks.setdefault(key, {})[int(network.network_address)] = place
        return found

    def place(self, address: str) -> Place:
        known = _address(address)
        if known is None:
            return Place()
        parsed = ipaddress.ip_address(known)
        bits = parsed.max_prefixlen
        for length in range(bits, -1, -1):
            networks = self.networks.get((parsed.version, length))
            if networks is None:
                continue
            start = int(parsed) >> (bits - length) << (bits - length)
            found = networks.get(start)
            if found is not None:
                return Place(
                    found.country,
                    found.state,
                    found.city,
                    known,
                    found.latitude_e6,
                    found.longitude_e6,
                )
        return Place(address=known)


def of(path: Path | None) -> Geography:
    """What the settings name. Raises GeographyUnreadable."""
    return NoGeography() if path is None else PlacesFile.read(path)


def _address(text: str) -> str | None:
    """The address, an IPv4 one inside IPv6 as itself; None for what is no address."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    inner = getattr(parsed, "ipv4_mapped", None)
    return str(parsed if inner is None else inner)


def _place(row: Mapping[str, str]) -> Place:
    country = row["country"].strip().upper() or None
    state = row["state"].strip().upper()
    return Place(
        country=country,
        state=f"{country}-{state}" if country and state else None,
        city=row["city"].strip() or None,
        latitude_e6=_e6(row["latitude"]),
        longitude_e6=_e6(row["longitude"]),
    )


def _e6(text: str) -> int | None:
    """Millionths of a degree from decimal text, cut after six places; never through a float."""
    text = text.strip()
    if not text:
        return None
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("+-").partition(".")
    return sign * (int(whole or "0") * 1_000_000 + int((part + "000000")[:6]))
