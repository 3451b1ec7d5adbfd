"""What a node is now, in one word: the same for its owner, a renter and a list of offers."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from domain.fleet.condition import OFFLINE_AFTER_US, state_of

StateInWord = Literal[
    "joining",
    "confirmed",
    "provisioning",
    "maintenance",
    "active",
    "offline",
    "stopped",
    "errored",
    "failed",
    "archived",
]


class Standing(Protocol):
    """What a view tells of a node."""

    @property
    def phase(self) -> str: ...

    @property
    def quarantined(self) -> bool: ...


def node_state_of(row: Standing, heard_us: int, now_us: int) -> Any:
    """A `StateInWord`. `heard_us`: when it last told its inventory or sent a signed report."""
    is_silent = heard_us <= now_us - OFFLINE_AFTER_US
    return state_of(row.phase, is_quarantined=row.quarantined, is_silent=is_silent)
