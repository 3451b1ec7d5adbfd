"""The node's Ed25519 key: made on the node, kept in a file only its owner can read.

A lost key is a new node; a copied key is a cloned disk and ends in quarantine.

    key id = first 16 hex digits of SHA-256(public key)
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.public import SealedBox
from nacl.signing import SigningKey

from domain.fleet import keys as node_key

SEED_BYTES = 32


class KeyUnreadable(Exception):
    """The key file is missing, has the wrong size, or can be read by others."""


def public_key(key: SigningKey) -> bytes:
    """The 32 bytes the server stores."""
    return bytes(key.verify_key)


def key_id(public: bytes) -> str:
    """Short name of a key in envelopes."""
    return sha256(public).hexdigest()[:16]


def unsealed(key: SigningKey, sealed: str) -> str:
    """The text that was sealed for this key (hex); empty where it was not."""
    try:
        opened = SealedBox(key.to_curve25519_private_key()).decrypt(bytes.fromhex(sealed))
        return opened.decode("ascii")
    except (CryptoError, ValueError):
        return ""


def fingerprint(public: bytes) -> str:
    """What the owner compares by eye: the digest of the public key in groups of four."""
    digest = sha256(public).hexdigest()[:32]
    return " ".join(digest[i : i + 4] for i in range(0, len(digest), 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """From report `from_seq` on the new key signs; both keys signed that it is so."""

    public_key: str
    previous_key_id: str
    from_seq: int
    previous_signature: str
    signature: str
    request_signature: str = ""  # base64; the new key's, over `body`

    @property
    def body(self) -> bytes:
        """What the server is told, byte for byte, at every time of telling."""
        told = {name: value for name, value in asdict(self).items() if name != "request_signature"}
        return json.dumps(told, separators=(",", ":")).encode()

    @classmethod
    def of(cls, node_id: str, from_seq: int, old: SigningKey, new: SigningKey) -> Rotation:
        """Signed by both keys."""
        before, after = public_key(old).hex(), public_key(new).hex()
        message = node_key.rotation(node_id, from_seq, before, after)
        rotation = cls(
            public_key=after,
            previous_key_id=key_id(public_key(old)),
            from_seq=from_seq,
            previous_signature=old.sign(message).signature.hex(),
            signature=new.sign(message).signature.hex(),
        )
        request = node_key.envelope(node_key.ROTATE_REQUEST_TYPE, rotation.body)
        signature = new.sign(request).signature
        return replace(rotation, request_signature=base64.b64encode(signature).decode())


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


def is_unfinished(path: Path) -> bool:
    """Whether a process died while it made this key: nobody has ever had it."""
    return path.exists() and path.stat().st_size < SEED_BYTES


def key_or_new(path: Path) -> SigningKey:
    """The key in this file, made where there is none or an unfinished one. Raises KeyUnreadable."""
    if is_unfinished(path):
        path.unlink()
    try:
        return make_key(path)
    except FileExistsError:
        return load_key(path)


def write_secret(path: Path, secret: bytes) -> None:
    """Write a new file only its owner can read, on disk when this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        give_to_owner_of(path.parent, handle)
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    keep_names(path.parent)


def write_anew(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, over what stood there; on disk when this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        give_to_owner_of(path.parent, file.fileno())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    keep_names(path.parent)


def replace_secret(path: Path, secret: bytes) -> None:
    """Write a secret over the one that stood there, whole or not at all."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    write_secret(beside, secret)
    os.replace(beside, path)
    keep_names(path.parent)


def keep_names(folder: Path) -> None:
    """Have the names in a folder on disk too: a synced file without a name is lost with the power,
    and with a key the node."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def give_to_owner_of(folder: Path, handle: int) -> None:
    """Root writes for the account whose folder it is, or the service could not read its own key."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        found = folder.stat()
        os.fchown(handle, found.st_uid, found.st_gid)
