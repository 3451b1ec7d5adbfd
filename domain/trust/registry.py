"""What the room `trust` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.trust import attribute, challenge, record

FILES = (attribute, challenge, record)
FACTS: dict[str, type[Any]] = {
    "attribute.stated.v1": attribute.AttributeStated,
    "attribute.revoked.v1": attribute.AttributeRevoked,
    "challenge.issued.v1": challenge.ChallengeIssued,
    "challenge.judged.v1": challenge.ChallengeJudged,
    "trust.library_known.v1": record.DriverLibraryKnown,
    "trust.library_forgotten.v1": record.DriverLibraryForgotten,
    "trust.device_twice.v1": record.DeviceTwice,
    "trust.nonce_issued.v1": record.NonceIssued,
    "trust.device_attested.v1": record.DeviceAttested,
}
