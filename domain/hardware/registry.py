"""What the room `hardware` adds: no decision and no fact, only rules that other rooms ask."""

from __future__ import annotations

from typing import Any

FILES: tuple[Any, ...] = ()
FACTS: dict[str, type[Any]] = {}
