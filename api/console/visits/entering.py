"""What a person writes into a field, as the API asks for it: amounts and whole numbers."""

from __future__ import annotations

import re

from api.console.drawing import words
from api.console.visits.reading import Told, refused

PLACES = words.PLACES["CREDIT"]
_AMOUNT = re.compile(r"([0-9]{1,12})(?:[.]([0-9]{1,6}))?")
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
