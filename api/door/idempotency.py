"""Idempotency-Key: a request sent twice takes effect once, and is answered alike.

    same key, same fingerprint   ->  the stored answer, Idempotent-Replayed: true
    same key, other fingerprint  ->  422 idempotency_key_reused
    fingerprint = SHA-256 over length-prefixed method, path with query, principal, raw body

The stored answer lives in the row `command`, written in the transaction that appends. Here are the
header's rules and the fingerprint; who wins is decided by PostgreSQL.
"""

from __future__ import annotations

import hashlib
import re

from starlette.datastructures import Headers

from api.door.errors import Problem

HEADER = "idempotency-key"
LOOK_ALIKES = (
    "x-idempotency-key",
    "x-idempotency",
    "idempotency",
    "idempotent-key",
    "idempotence-key",
    "idempotencykey",
    "idempotency_key",
)
"""A misnamed key must not be dropped silently: money would move twice."""

_QUOTED = re.compile(r'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_VISIBLE = re.compile(r"[\x21-\x7e]{1,255}")


def key_of(headers: Headers) -> str:
    """The key of a request that must have one. Raises Problem: 400."""
    given = headers.getlist(HEADER)
    if not given:
        told = next((name for name in LOOK_ALIKES if name in headers), None)
        detail = "this call needs Idempotency-Key" + (f", not {told}" if told else "")
        raise Problem(400, "idempotency_key_missing", detail)
    if len(given) > 1:
        raise Problem(400, "idempotency_key_invalid", "one Idempotency-Key, not several")
    return _unquoted(given[0].strip())


def _unquoted(value: str) -> str:
    """An RFC 8941 string, or the same without quotes: 1 to 255 visible ASCII characters."""
    quoted = _QUOTED.fullmatch(value)
    if quoted is not None:
        value = re.sub(r"\\(.)", r"\1", quoted[1])
    elif value.startswith('"'):
        raise Problem(400, "idempotency_key_invalid", "the quoted string does not end")
    if _VISIBLE.fullmatch(value) is None:
        raise Problem(400, "idempotency_key_invalid", "1 to 255 visible ASCII characters")
    return value


def fingerprint(method: str, path_with_query: bytes, principal: str, body: bytes) -> bytes:
    """Which request this is, to the byte."""
    digest = hashlib.sha256()
    for part in (method.encode(), path_with_query, principal.encode(), body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
