"""E-mail addresses of the service accounts of cloud providers: in no log, so that they can be
erased. A key of such an account is kept nowhere.
"""

from __future__ import annotations

from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

EMAIL_MAX = 200

_KEEP = """
    INSERT INTO service_account VALUES (%s, %s, %s) ON CONFLICT (provider_id)
    DO UPDATE SET email = excluded.email, updated_us = excluded.updated_us
"""
_READ = "SELECT email FROM service_account WHERE provider_id = %s"


def keep(connection: Connection, provider_id: str, email: str, now_us: int) -> None:
    """Say which service account a provider works with; replaces what was said before."""
    connection.execute(_KEEP, (provider_id, email, now_us))


def read(connection: Connection, provider_id: str) -> str | None:
    """The address; None: never told, or erased."""
    row = connection.execute(_READ, (provider_id,)).fetchone()
    return None if row is None else str(row[0])
