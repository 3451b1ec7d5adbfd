"""How deep JSON nests, told before anybody parses it.

A recursive parser overflows the C stack on a body of nothing but brackets once some library has
lifted the interpreter's recursion limit, and an overflow ends the process. So depth is bounded
first, by a scan that does not recurse. It says nothing about whether the text is JSON.
"""

from __future__ import annotations

import re

NESTING_MAX = 200
"""Levels any parser of ours may be asked to follow; forms set their own, lower bounds."""

_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(text: str, most: int = NESTING_MAX) -> bool:
    """Whether brackets outside strings are ever more than `most` levels deep."""
    if text.count("[") + text.count("{") <= most:
        return False
    depth = 0
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "[" | "{":
                depth += 1
                if depth > most:
                    return True
            case "]" | "}":
                depth -= 1
            case _:
                pass
    return False
