"""First contact: a single-use code, the node's public key, what hardware it has; signed by the key.

Not the admission: the owner compares the fingerprint printed here and confirms, an operator admits.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from nacl.signing import SigningKey

from domain.fleet import keys as node_key
from domain.metering import report
from node_reporter.identity import key_id, public_key
from node_reporter.reports.client import NODE_KEY, Transport, idempotency, parsed
from node_reporter.terminal import printable

_NODE_ID = re.compile(report.NODE_PATTERN)


class JoinRefused(Exception):
    """The server or this machine said no; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What the server gave: the node's id, and a bearer token for its calls other than usage."""

    node_id: str
    node_key: str


def join(
    transport: Transport,
    code: str,
    key: SigningKey,
    specs: dict[str, Any],
    agent: str,
    client_id: str | None = None,
) -> Joined:
    """Ask to become a node, through a compute client where one brought it (R-18).

    Raises JoinRefused, Unreachable.
    """
    public = public_key(key)
    body = {
        "code": code,
        "public_key": public.hex(),
        "key_id": key_id(public),
        "agent": agent,
        **({} if client_id is None else {"client_id": client_id}),
        **specs,
    }
    raw = json.dumps(body, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers["Node-Signature"] = _signed(key, raw)
    response = transport.request("POST", "/v1/nodes/join", headers | idempotency(raw), raw)
    try:
        document = parsed(response.body)
    except ValueError:
        document = {}
    if response.status not in (200, 201):
        raise JoinRefused(_why(response.status, document))
    told = document if isinstance(document, dict) else {}
    # Both are kept in files and sent in headers from now on: a bad one could not be taken back.
    return Joined(
        node_id=_told(told.get("node_id"), _NODE_ID), node_key=_told(told.get("node_key"), NODE_KEY)
    )


def _signed(key: SigningKey, raw: bytes) -> str:
    """Shows that whoever asks holds the key, and that nobody changed the inventory on its way."""
    signature = key.sign(node_key.envelope(node_key.JOIN_TYPE, raw)).signature
    return base64.b64encode(signature).decode()


def _told(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise JoinRefused("the answer names no node")
    return value


def _why(status: int, document: Any) -> str:
    """The problem document in one line; it names field and rule."""
    if not isinstance(document, dict):
        return f"status {status}"
    detail = str(document.get("detail", ""))
    errors = document.get("errors")
    rules = [
        f"{error.get('pointer', '')}: {error.get('detail', '')}"
        for error in (errors if isinstance(errors, list) else [])
        if isinstance(error, dict)
    ]
    parts = [str(document.get("code", status)), detail, *(one for one in rules if one != detail)]
    return printable(": ".join(part for part in parts if part.strip())[:1_000])
