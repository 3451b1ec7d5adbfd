"""The node's Ed25519 key: made on the node, kept in a file only its owner can read.

A lost key is a new node; a copied key is a cloned disk and ends in quarantine.

    key id = first 16 hex digits of SHA-256(public key)
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from nacl.signing import SigningKey

SEED_BYTES = 32


class KeyUnreadable(Exception):
    """The key file is missing, has the wrong size, or can be read by others."""


def public_key(key: SigningKey) -> bytes:
    """The 32 bytes the server stores."""
    return bytes(key.verify_key)


def key_id(public: bytes) -> str:
    """Short name of a key in envelopes."""
    return sha256(public).hexdigest()[:16]


def fingerprint(public: bytes) -> str:
    """What the owner compares by eye: the digest of the public key in groups of four."""
    digest = sha256(public).hexdigest()[:32]
    return " ".join(digest[i : i + 4] for i in range(0, len(digest), 4))


def load_key(path: Path) -> SigningKey:
    """Read the key file. Raises KeyUnreadable."""
    try:
        seed = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise KeyUnreadable(f"{path}: {error.strerror}") from error
    if os.name == "posix" and mode & 0o077:
        raise KeyUnreadable(f"{path} can be read by others: chmod 600 {path}")
    if len(seed) != SEED_BYTES:
        raise KeyUnreadable(f"{path}: {len(seed)} bytes, needed {SEED_BYTES}")
    return SigningKey(seed)


def make_key(path: Path) -> SigningKey:
    """Create the key file with mode 0600. Raises FileExistsError: a key is never overwritten."""
    key = SigningKey.generate()
    write_secret(path, bytes(key))
    return key


def write_secret(path: Path, secret: bytes) -> None:
    """Write a new file only its owner can read, on disk when this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
