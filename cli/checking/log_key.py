"""The log's verifier key in each form in which people have it.

name+hex+base64      the note itself
FILE                 the note, or the JSON that /v1/audit/log/key answers
https://...          a server, or that very route of it
"""

from __future__ import annotations

import json
from pathlib import Path

from cli.remote import Remote
from cli.terminal import InputUnusable

ROUTE = "/v1/audit/log/key"
FILE_BYTES_MAX = 100_000


def verifier_key_of(given: str) -> str:
    """The note of the key. Raises InputUnusable, AnswerIsNo: the server does not answer."""
    if given.startswith(("http://", "https://")):
        url = given.rstrip("/").removesuffix(ROUTE)
        return str(Remote(url, None).ask(lambda c: c.read_log_key())["verifier_key"])
    text = given if given.lstrip().startswith("{") else _of_file(given)
    if not text.startswith("{"):
        return text
    try:
        return str(json.loads(text)["verifier_key"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputUnusable(f"no verifier_key in it: give what {ROUTE} answers") from None


def _of_file(given: str) -> str:
    """What the file of this name says; where there is none, the text is the key."""
    file = Path(given)
    try:
        if not file.is_file():
            return given.strip()
        with file.open(encoding="utf-8") as opened:
            return opened.read(FILE_BYTES_MAX).strip()
    except (OSError, ValueError) as error:
        raise InputUnusable(f"the key cannot be read: {error}") from None
