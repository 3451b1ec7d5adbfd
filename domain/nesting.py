"""How deep JSON nests, told before anybody parses it.

A recursive parser overflows the C stack on a body of nothing but brackets once some library has
lifted the interpreter's recursion limit, and an overflow ends the process. So depth is bounded
first, by a scan that does not recurse. It says nothing about whether the text is JSON.

Its own time is linear whatever the text is: strings are cut out by splitting at their quotes, never
by a pattern that would look for a quote that is not there from every place a string might begin.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

NESTING_MAX = 200
"""Levels any parser of ours may be asked to follow; forms set their own, lower bounds."""

_BRACKET = re.compile(r"[\[\]{}]")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}


def is_too_deep(text: str, most: int = NESTING_MAX) -> bool:
    """Whether brackets outside strings are ever more than `most` levels deep."""
    if text.count("[") + text.count("{") <= most:
        return False
    # Without escapes every quote begins or ends a string. A backslash outside a string may mislead
    # what follows it, but there any parser has stopped.
    plain = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(plain.split('"')[::2])
    steps = map(_STEP.__getitem__, _BRACKET.findall(outside))
    return max(accumulate(steps), default=0) > most


def read_json(content: str | bytes) -> Any:
    """The value of a JSON text that somebody else wrote. Raises ValueError: no JSON, not UTF-8, or
    nested more than `NESTING_MAX` levels deep.
    """
    text = content if isinstance(content, str) else content.decode("utf-8")
    if is_too_deep(text):
        raise ValueError(f"nested more than {NESTING_MAX} levels deep")
    return json.loads(text)
