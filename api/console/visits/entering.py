"""What a person writes into a field, as the API asks for it: amounts and whole numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from api.console.drawing import words
from api.console.visits.reading import Told, refused

PLACES = words.PLACES["CREDIT"]
_AMOUNT = re.compile(r"([0-9]{1,12})(?:[.]([0-9]{1,6}))?")
_PERCENT = re.compile(r"([0-9]{1,3})(?:[.]([0-9]{1,4}))?")
_MINUTE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")
_WHOLE = re.compile(r"[0-9]{1,12}")


def credits_of(text: str, field: str) -> Told:
    """`12.5` as an amount of the API, exactly. Raises Refused."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise refused(
            "invalid",
            f"{field} is an amount of CREDIT such as 25 or 12.50, with at most {PLACES} places",
        )
    whole, places = found[1], (found[2] or "").ljust(PLACES, "0")
    return {"asset": "CREDIT", "units": str(int(whole + places))}


def whole(text: str, field: str, least: int, most: int) -> int:
    """A whole number between two. Raises Refused."""
    found = text.strip()
    if _WHOLE.fullmatch(found) is None or not least <= int(found) <= most:
        raise refused("invalid", f"{field} is a whole number from {least} to {most}")
    return int(found)


def sure(ticked: str, said: str) -> None:
    """What ends a lease or spends money was asked before. Raises Refused: it was not ticked."""
    if ticked != "yes":
        raise refused("invalid", f"tick “{said}” first; nothing was changed")


def ppm_of(text: str, field: str) -> int:
    """`12.5` per cent as parts per million, exactly. Raises Refused."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None or (ppm := int(found[1] + (found[2] or "").ljust(4, "0"))) > 1_000_000:
        raise refused(
            "invalid", f"{field} is a percentage from 0 to 100 such as 12.5, with at most 4 places"
        )
    return ppm


def moment_in(text: str, field: str, at: tzinfo) -> str:
    """`2026-12-01T02:00` on the reader's clock, as the API writes a moment. Raises Refused."""
    try:
        if _MINUTE.fullmatch(text) is None:
            raise ValueError(text)
        found = datetime.fromisoformat(text).replace(tzinfo=at).astimezone(UTC)
    except (ValueError, OverflowError):
        raise refused("invalid", f"{field} is written like 2026-12-01T02:00") from None
    return found.isoformat().replace("+00:00", "Z")
