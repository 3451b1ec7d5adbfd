"""API keys: `ts_live_<8 id>_<43 base62>_<6 base62 CRC-32>`.

43 base62 characters are 256 random bits, so the server keeps SHA-256 of the whole key and compares
in constant time; a slow hash would only be a lever for denial of service. The checksum lets a
mistyped key be refused before any database is asked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"ts_(?:live|test)_([0-9A-Za-z]{8})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})")


def base62(number: int, width: int) -> str:
    """`number` in base 62, left-padded with zeros to `width` characters."""
    digits = []
    while number:
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    text = "".join(reversed(digits)).rjust(width, "0")
    assert len(text) == width, width
    return text


def make(random: bytes, *, live: bool = True) -> str:
    """A key from 38 random bytes: 6 for the public id, 32 for the secret."""
    assert len(random) == 38
    key_id = base62(int.from_bytes(random[:5], "big"), 8)
    secret = base62(int.from_bytes(random[6:], "big"), 43)
    body = f"ts_{'live' if live else 'test'}_{key_id}_{secret}"
    return f"{body}_{base62(zlib.crc32(body.encode()), 6)}"


def new(*, live: bool = True) -> str:
    """A fresh key from the operating system's randomness."""
    return make(secrets.token_bytes(38), live=live)


def key_id(key: str) -> str | None:
    """The public id of a well-formed key whose checksum holds; None otherwise."""
    form = _FORM.fullmatch(key)
    if form is None:
        return None
    body, _, checksum = key.rpartition("_")
    return form[1] if base62(zlib.crc32(body.encode()), 6) == checksum else None


def digest(key: str) -> str:
    """What the server keeps of a key: hex SHA-256."""
    return hashlib.sha256(key.encode()).hexdigest()


def matches(key: str, stored_digest: str) -> bool:
    """Constant-time comparison with a stored digest."""
    return hmac.compare_digest(digest(key), stored_digest)
