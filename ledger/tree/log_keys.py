"""From one key of the log to the next: who may have signed a head, by the rotations in the log.

    trusted(key) = key, and every key that a trusted one announced by its signature, forward;
                   and every key before it, which the new key announced it replaces

Facts say which rotations there were (`domain/authority/log_key.py`); the signatures in them are
checked here, so that a verifier needs nothing but the facts and one key that it trusts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.authority.log_key import rotation_text
from domain.record import dataclass
from ledger.tree.checkpoint import Checkpoint, NoteInvalid, VerifierKey, open_checkpoint, signed_by


@dataclass(frozen=True, slots=True)
class Rotation:
    """One rotation as the log has it, at this position."""

    position: int
    number: int
    origin: str
    old_key: bytes
    new_key: bytes
    until_us: int
    old_signature: bytes | None
    new_signature: bytes
    at_us: int

    @classmethod
    def of(cls, position: int, body: Mapping[str, Any]) -> Rotation:
        """From the body of the fact. Raises KeyError, TypeError, ValueError."""
        signed = body.get("old_signature")
        return cls(
            position,
            int(body["number"]),
            str(body["origin"]),
            bytes.fromhex(body["old_key"]),
            bytes.fromhex(body["new_key"]),
            int(body["until_us"]),
            None if signed is None else bytes.fromhex(signed),
            bytes.fromhex(body["new_signature"]),
            int(body["at_us"]),
        )

    @property
    def body(self) -> dict[str, Any]:
        """What `of` reads, for a reader elsewhere."""
        return {
            "number": self.number,
            "origin": self.origin,
            "old_key": self.old_key.hex(),
            "new_key": self.new_key.hex(),
            "until_us": self.until_us,
            "old_signature": None if self.old_signature is None else self.old_signature.hex(),
            "new_signature": self.new_signature.hex(),
            "at_us": self.at_us,
        }

    @property
    def fault(self) -> str | None:
        """What is wrong with its signatures; None: they are right."""
        text = rotation_text(
            self.origin, self.number, self.old_key.hex(), self.new_key.hex(), self.until_us
        ).encode()
        if not signed_by(self.new_key, text, self.new_signature):
            return f"rotation {self.number} of the log's key is not signed by the new key"
        if self.old_signature is not None and not signed_by(self.old_key, text, self.old_signature):
            return f"rotation {self.number} of the log's key is not signed by the old key"
        return None

    @property
    def old(self) -> VerifierKey:
        return VerifierKey(self.origin, self.old_key)

    @property
    def new(self) -> VerifierKey:
        return VerifierKey(self.origin, self.new_key)


def later(key: VerifierKey, rotations: Sequence[Rotation]) -> list[VerifierKey]:
    """The keys that follow this one by signatures, in order; it ends where a key was lost."""
    found, current = [], key
    for one in rotations:
        if one.old == current:
            if one.fault is not None or one.old_signature is None:
                break
            current = one.new
            found.append(current)
    return found


def open_by_any(
    note: str, key: VerifierKey, rotations: Sequence[Rotation]
) -> tuple[Checkpoint, VerifierKey]:
    """A head that this key signed, or one that a rotation joins to it. Raises NoteInvalid.

    A key that was replaced at once, because it was lost or stolen, signs no head that is as long as
    its rotation.
    """
    refused: NoteInvalid | None = None
    for each in (key, *later(key, rotations), *_before(key, rotations)):
        try:
            found = open_checkpoint(note, each)
        except NoteInvalid as error:
            refused = refused or error
            continue
        ended = _ended(each, rotations)
        if ended is None or found.size < ended.position:
            return found, each
        refused = NoteInvalid(
            f"signed by a key that rotation {ended.number} of the log's key replaced at once"
        )
    assert refused is not None
    raise refused


def _ended(key: VerifierKey, rotations: Sequence[Rotation]) -> Rotation | None:
    """The rotation that replaced this key at once, without a time in which both sign."""
    for one in rotations:
        if one.old == key and one.until_us == one.at_us and one.fault is None:
            return one
    return None


def _before(key: VerifierKey, rotations: Sequence[Rotation]) -> list[VerifierKey]:
    """The keys that were replaced by this one, or by one that follows it; the newest first."""
    trusted = {key, *later(key, rotations)}
    found = []
    for one in reversed(rotations):
        if one.new in trusted and one.fault is None and one.old not in trusted:
            trusted.add(one.old)
            found.append(one.old)
    return found
