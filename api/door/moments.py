"""Times as the API writes and reads them: RFC 3339 outside, microseconds since 1970 inside.

    parse_moment(moment(at_us)) == at_us        up to the last moment of year 9999

Standard library only, so that commands without a server read times by the same rule.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_UTC = datetime(1970, 1, 1)  # noqa: DTZ001 - told as UTC; what has a zone is told slower
_LAST_US = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def moment(at_us: int) -> str:
    """RFC 3339 in UTC with microseconds. What lies beyond year 9999 is told as its last moment."""
    at = _EPOCH_UTC + timedelta(0, 0, min(at_us, _LAST_US))
    return f"{at.isoformat('T', 'microseconds')}Z"


def moment_or_none(at_us: int | None) -> str | None:
    return None if at_us is None else moment(at_us)


def parse_moment(text: Any) -> int:
    """Microseconds since 1970. Raises ValueError with the rule."""
    if not isinstance(text, str) or _MOMENT.fullmatch(text) is None:
        raise ValueError("a time is RFC 3339 with an offset, up to microseconds")
    try:
        at = datetime.fromisoformat(text.upper())
        at_us = (at - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("there is no such time") from None
    if at_us < 0:
        raise ValueError("times begin in 1970")
    return at_us
