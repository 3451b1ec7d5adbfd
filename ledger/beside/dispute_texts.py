"""The words of a dispute, kept beside the log so that they can be erased.

    sha256(text) == the hash in the fact        for every text that is still there

A text without a fact (the call failed after it was kept) is in no answer and harms nobody.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

TEXT_MAX = 4_000

_KEEP = "INSERT INTO dispute_text VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_READ = "SELECT sha256, body FROM dispute_text WHERE dispute_id = %s"


def digest(text: str | None) -> str | None:
    """The hash a fact carries; None for no text."""
    return None if text is None else sha256(text.encode()).hexdigest()


def keep(connection: Connection, dispute_id: str, text: str | None) -> None:
    """Keep a text; the same one twice is once."""
    if text is not None:
        connection.execute(_KEEP, (dispute_id, digest(text), text))


def read(connection: Connection, dispute_id: str) -> dict[str, str]:
    """The texts of a dispute that have not been erased, by hash."""
    return {str(row[0]): str(row[1]) for row in connection.execute(_READ, (dispute_id,))}
