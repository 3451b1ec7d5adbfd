"""The key that signs the heads of the log is replaced, and the log itself says so.

    rotation n:  the key of rotation n - 1 signs the text of rotation n, and so does the new key
    heads        are signed by the new key from then on, and by the old one too until `until_us`

An auditor who kept an old key follows the signatures from key to key, and needs no server for that.
Where the old key was lost it signs nothing: the auditor must get the new key from elsewhere, and
`old_signature` says so by being absent. Signatures are checked by the command that rotates and by
the offline verifier, which know Ed25519; here only what they are about is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.authority.reasons import AuthorityReason
from domain.duration import DAY_US
from domain.refusal import Refused
from domain.stream import Change, Stream, World

KIND = "log_key"
FACT = "log_key.rotated.v1"
OVERLAP_MAX_US = 90 * DAY_US
"""So long two keys may sign: a key that was replaced is not guarded for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKeyRotated:
    """Stream `log_key:log`. Keys are Ed25519 in hex, signatures are over `rotation_text`."""

    number: int
    origin: str
    old_key: str
    new_key: str
    until_us: int  # so long the old key signs heads beside the new one
    old_signature: str | None  # None: the old key was lost
    new_signature: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateLogKey:
    """Both signatures were checked over `rotation_text`."""

    number: int
    origin: str
    old_key: str
    new_key: str
    until_us: int
    old_signature: str | None
    new_signature: str
    at_us: int


@dataclass(frozen=True, slots=True)
class LogKeys:
    """Every rotation there was: number n is `rotations[n - 1]`."""

    rotations: tuple[LogKeyRotated, ...] = ()

    @property
    def last(self) -> LogKeyRotated | None:
        """None: the log has its first key."""
        return self.rotations[-1] if self.rotations else None


LOG_KEYS: Stream[LogKeys] = Stream(KIND, "log")


def rotation_text(origin: str, number: int, old_key: str, new_key: str, until_us: int) -> str:
    """What the old key and the new key sign."""
    return f"tallystick/log-key/v1\n{origin}\n{number}\n{old_key}\n{new_key}\n{until_us}\n"


def in_turn(number: int, old_key: str, announced: Sequence[str]) -> bool:
    """Whether a rotation follows those that announced these keys. Which key a log has first is not
    announced.
    """
    return number == len(announced) + 1 and (not announced or old_key == announced[-1])


def evolve(state: LogKeys, fact: LogKeyRotated) -> LogKeys:
    assert fact.number == len(state.rotations) + 1, fact
    return LogKeys((*state.rotations, fact))


def decide_rotate(command: RotateLogKey, world: World) -> list[Change]:
    """Raises Refused: LOG_KEY_STATE, LOG_KEY_OVERLAP."""
    state = world.state(LOG_KEYS)
    last, used = state.last, {one.old_key for one in state.rotations}
    current = command.old_key if last is None else last.new_key
    if (
        not in_turn(command.number, command.old_key, [one.new_key for one in state.rotations])
        or command.new_key in used | {current}
        or command.until_us < command.at_us
        or (command.old_signature is None and command.until_us != command.at_us)
    ):
        raise Refused(
            AuthorityReason.LOG_KEY_STATE, number=len(state.rotations), current_key=current
        )
    if command.until_us - command.at_us > OVERLAP_MAX_US:
        raise Refused(AuthorityReason.LOG_KEY_OVERLAP, latest_us=command.at_us + OVERLAP_MAX_US)
    fact = LogKeyRotated(
        number=command.number,
        origin=command.origin,
        old_key=command.old_key,
        new_key=command.new_key,
        until_us=command.until_us,
        old_signature=command.old_signature,
        new_signature=command.new_signature,
        at_us=command.at_us,
    )
    return [Change(LOG_KEYS, fact)]


STREAMS: dict[str, tuple[Any, Any]] = {KIND: (LogKeys(), evolve)}
DECIDERS: dict[type[Any], Any] = {RotateLogKey: decide_rotate}
