"""What one append to the market log is made of, and how it ended. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from ledger.books.entry import Entry

REFUSAL = 0
"""The status of a stored answer that is a refusal."""


@dataclass(frozen=True, slots=True)
class CommandRow:
    """What was asked under which key, and the answer to keep with it."""

    account: str
    key: str
    fingerprint: bytes
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Appended:
    """How an append ended. `recorded` is false when a stored answer won; then it is given here."""

    recorded: bool
    position: int
    fingerprint: bytes = b""
    status: int = REFUSAL
    body: bytes = b""


@dataclass(slots=True)
class Append:
    """What goes with the facts of one append.

    `entries` name their fact by its offset from 1. `seen` are streams the decision read and does
    not write, with their versions: had one moved, the decision would be out of date. With
    `limit_is_final` a violated limit or guard becomes the command's stored answer. `answered` are
    several commands, each with the number of facts up to its last one: then there is no `command`
    and no `tracking`, and nothing is final. `appended` is filled in by the recorder.
    """

    now_us: int = 0
    entries: Sequence[tuple[int, Entry]] = ()
    seen: Sequence[tuple[UUID, int]] = ()
    guards: Sequence[str] = ()
    command: CommandRow | None = None
    limit_is_final: bool = False
    limit_body: bytes = b""
    guard_body: bytes = b""
    tracking: tuple[str, int] | None = None
    answered: Sequence[tuple[CommandRow, int]] = ()
    appended: Appended | None = None
