"""If-Match: who changes something says what they have read of it.

    ETag: "v<facts of its stream>"      missing: 428      another one by now: 412 with the ETag

Without it two persons could vote on what a third has just rewritten (design api 8).
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from api.door.errors import Problem, problem

IF_MATCH = "if-match"
_FORM = re.compile(r'"v(0|[1-9][0-9]{0,14})"')


def read_if_match(headers: Headers) -> int:
    """The version that the caller has read. Raises Problem: 428, 400 malformed_header."""
    text = headers.get(IF_MATCH)
    if text is None:
        raise problem("if_match_missing")
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise Problem(400, "malformed_header", "If-Match is an ETag of this object")
    return int(form[1])
