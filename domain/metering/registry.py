"""What the room `metering` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.metering import pin

FILES = (pin,)
FACTS: dict[str, type[Any]] = {"usage.pinned.v1": pin.UsagePinned}
