"""Signatures that a node's key makes outside its usage reports: joining, changing the key; and what
is sealed for that key alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from nacl.exceptions import BadSignatureError
from nacl.public import SealedBox
from nacl.signing import VerifyKey

from api.door import errors

SIGNATURE_BYTES = 64


def from_base64(text: str) -> bytes:
    """The signature in a header. Raises Problem: 401 bad_signature."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _bad() from None


def require(public_key: str, message: bytes, signature: bytes) -> None:
    """Insist that this key (hex) signed the message. Raises Problem: 401 bad_signature."""
    if len(signature) != SIGNATURE_BYTES:
        raise _bad()
    try:
        VerifyKey(bytes.fromhex(public_key)).verify(message, signature)
    except (BadSignatureError, ValueError):
        # ValueError: 32 bytes that are no point of the curve.
        raise _bad() from None


def sealed_for(public_key: str, text: str) -> str:
    """Hex that the holder of this Ed25519 key (hex) opens, and nobody else; other hex each time."""
    box = SealedBox(VerifyKey(bytes.fromhex(public_key)).to_curve25519_public_key())
    return box.encrypt(text.encode()).hex()


def fingerprint(public_key: str) -> str:
    """What the owner compares by eye: the digest of the public key in groups of four."""
    digest = hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:32]
    return " ".join(digest[place : place + 4] for place in range(0, len(digest), 4))


def _bad() -> errors.Problem:
    return errors.problem("bad_signature", "the key named did not sign these bytes")
