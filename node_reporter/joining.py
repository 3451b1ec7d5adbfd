"""First contact: a single-use code, the node's public key, what hardware it has.

Not the admission: the owner compares the fingerprint printed here and confirms, an operator admits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from node_reporter.client import Transport, idempotency
from node_reporter.identity import key_id


class JoinRefused(Exception):
    """The server said no; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What the server gave: the node's id, and a bearer token for its calls other than usage."""

    node_id: str
    node_key: str


def join(
    transport: Transport, code: str, public: bytes, specs: dict[str, Any], agent: str
) -> Joined:
    """Ask to become a node. Raises JoinRefused, Unreachable."""
    body = {
        "code": code,
        "public_key": public.hex(),
        "key_id": key_id(public),
        "agent": agent,
        **specs,
    }
    raw = json.dumps(body, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    response = transport.request("POST", "/v1/nodes/join", headers | idempotency(raw), raw)
    try:
        document = json.loads(response.body)
    except ValueError:
        document = {}
    if response.status not in (200, 201):
        raise JoinRefused(_why(response.status, document))
    try:
        return Joined(node_id=str(document["node_id"]), node_key=str(document["node_key"]))
    except (KeyError, TypeError) as error:
        raise JoinRefused(f"the answer names no node: {error}") from error


def _why(status: int, document: Any) -> str:
    """The problem document in one line; it names field and rule."""
    if not isinstance(document, dict):
        return f"status {status}"
    parts = [str(document.get("code", status)), str(document.get("detail", ""))]
    parts += [
        f"{error.get('pointer', '')} {error.get('detail', '')}"
        for error in document.get("errors") or []
    ]
    return ": ".join(part for part in parts if part.strip())
