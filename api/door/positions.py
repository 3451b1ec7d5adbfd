"""Which moment of the log an answer reflects: read your writes, and reading the past.

    Tallystick-Min-Position: N     the answer reflects at least N, or it is 503 projection_behind
    as_of_position=N, as_of=<time> the answer reflects exactly N, or the last position by then

Recorded time chooses the facts; when they took effect is in them.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field
from starlette.datastructures import Headers

from api.door.amounts import INTEGER_MAX
from api.door.errors import Problem
from api.door.models import Digits, MomentQuery
from domain.record import dataclass

POSITION = "Tallystick-Position"
MIN_POSITION = "tallystick-min-position"
MIN_USAGE = "tallystick-min-usage"
LANES = 64

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True)
class AsOf:
    """The moment asked for; both None: now."""

    position: int | None = None
    at_us: int | None = None

    @property
    def is_now(self) -> bool:
        return self.position is None and self.at_us is None


async def _as_of(
    as_of_position: Annotated[
        Annotated[int, Field(ge=0, le=INTEGER_MAX), Digits] | None,
        Query(description="Answer as of this position of the market log"),
    ] = None,
    as_of: MomentQuery = None,
) -> AsOf:
    if as_of_position is not None and as_of is not None:
        raise Problem(400, "as_of_unsupported", "as_of_position or as_of, not both")
    return AsOf(as_of_position, as_of)


ReadAsOf = Annotated[AsOf, Depends(_as_of)]


def min_position(headers: Headers) -> int | None:
    """Raises Problem: 400 malformed_header."""
    text = headers.get(MIN_POSITION)
    return None if text is None else _number(text, "Tallystick-Min-Position")


def min_usage(headers: Headers) -> tuple[int, int] | None:
    """Lane and position. Raises Problem: 400 malformed_header."""
    text = headers.get(MIN_USAGE)
    if text is None:
        return None
    lane, colon, position = text.partition(":")
    name = "Tallystick-Min-Usage"
    found = _number(lane, name), _number(position, name)
    if not colon or found[0] >= LANES:
        raise _malformed(name)
    return found


def _number(text: str, name: str) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > INTEGER_MAX:
        raise _malformed(name)
    return int(text)


def _malformed(name: str) -> Problem:
    return Problem(400, "malformed_header", f"{name} is not what it should be")
