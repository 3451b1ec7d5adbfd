"""Server-sent events (WHATWG HTML, section 9.2): what has changed of what an open page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def event_of(before: Mapping[str, str], values: Mapping[str, str], say: str, of: str) -> bytes:
    """What has changed, as one event; empty: nothing has. `say` is read aloud where the value named
    `of` is another than before.
    """
    changed = {name: value for name, value in values.items() if before.get(name) != value}
    if not changed:
        return b""
    told: dict[str, Any] = {"values": changed}
    if before and of in changed:
        told["say"] = say
    return f"data: {json.dumps(told)}\n\n".encode()
