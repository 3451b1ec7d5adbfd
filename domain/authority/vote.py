"""A vote: what a governor signs, and the fact that keeps the signature.

    vote_text(network, vote) == the bytes that the governor's personal key signed

The text names the network, the kind of thing, its id, its revision, the SHA-256 of its content, the
version of the governor set and the choice. Whoever has the log checks every vote offline: the fact
holds each line of the text but the network, which the register holds. Here is no signature checked:
the shell does that before a command, and `ledger/bundle/verify.py` does it again on an export.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

from domain.record import dataclass

YES, NO, CANCEL = "yes", "no", "cancel"
SINGLE, SHARED = "single", "shared"
"""`single`: one signature carries a vote, for there were never three governors at once."""
ES256_PATTERN = r"a5010203262001215820[0-9a-f]{64}225820[0-9a-f]{64}"
EDDSA_PATTERN = r"a4010103272006215820[0-9a-f]{64}"
"""Public keys of passkeys as COSE writes them (RFC 9053), whole: one key has one text."""
ORIGIN_PATTERN = r"(?:https://[a-z0-9.-]{1,253}|http://localhost)(?::[0-9]{1,5})?"
PASSKEY_PATTERN = f"passkey:(?:{ES256_PATTERN}|{EDDSA_PATTERN})@{ORIGIN_PATTERN}"
KEY_PATTERN = f"(?:ed25519:[0-9a-f]{{64}}|wallet:0x[0-9a-f]{{40}}|{PASSKEY_PATTERN})"
GOVERNOR_PATTERN = r"gov_[0-9a-f]{32}"
ASSERTION_PATTERN = r"passkey:[0-9a-f]{74}\.(?:[0-9a-f]{2}){1,512}\.(?:[0-9a-f]{2}){8,72}"
"""Authenticator data without extensions, client data and signature, each in hex."""
SIGNATURE_PATTERN = f"(?:(?:0x)?[0-9a-f]{{128,130}}|{ASSERTION_PATTERN})"
_KEY = re.compile(KEY_PATTERN)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is voted on: one revision of one thing, under the governor set of its proposal."""

    kind: str
    subject: str
    revision: int
    content_sha256: str
    governors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedVote:
    """What a governor sends: which content, under which set, signed by the personal key.

    `rehearsal_sha256`: the result of a rehearsal that the governor has seen, where there was one.
    """

    governor_id: str
    revision: int
    content_sha256: str
    governors: int
    signature: str
    rehearsal_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCast:
    """One governor's word, in the stream of what it is about. `count` of `needed` with it.

    `by` and `key_id` carried the vote to the server; they have no part in it.
    """

    kind: str
    subject: str
    revision: int
    content_sha256: str
    governors: int
    choice: str  # YES, NO or CANCEL
    rehearsal_sha256: str | None
    governor_id: str
    signature: str
    mode: str  # SINGLE, SHARED
    count: int
    needed: int
    reason: str | None
    key_id: str
    by: str
    at_us: int

    @property
    def carries(self) -> bool:
        """Whether this vote was the last one needed."""
        return self.count >= self.needed


def vote_text(network: str, subject: Subject, choice: str, rehearsal_sha256: str | None) -> str:
    """What is signed: one line for each thing the vote names, in one order."""
    lines = (
        "tallystick vote v1",
        f"network: {network}",
        f"kind: {subject.kind}",
        f"subject: {subject.subject}",
        f"revision: {subject.revision}",
        f"content: {subject.content_sha256}",
        f"governors: {subject.governors}",
        f"choice: {choice}",
        f"rehearsal: {rehearsal_sha256 or 'none'}",
    )
    assert all("\n" not in line for line in lines), lines
    return "\n".join(lines)


def enrolment_text(network: str, key: str, governors: int) -> str:
    """What a personal key signs to enrol. The version of the set makes it good for one proposal."""
    lines = (
        "tallystick governor v1",
        f"network: {network}",
        f"key: {key}",
        f"governors: {governors}",
    )
    assert all("\n" not in line for line in lines), lines
    return "\n".join(lines)


def governor_id(key: str) -> str:
    """The id of a personal key: nobody can enrol another key under it."""
    return "gov_" + sha256(key.encode()).hexdigest()[:32]


def is_key(text: str) -> bool:
    """Whether this is a public key of a form that can be enrolled."""
    return _KEY.fullmatch(text) is not None


def content_text(content: Any) -> str:
    """The text of what is voted on: JSON, keys sorted, no spaces."""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """SHA-256 of a text, hex."""
    return sha256(text.encode()).hexdigest()
