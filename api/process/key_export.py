"""The key files in one encrypted file, to be kept apart from the backups of the database.

    open(seal(files, passphrase), passphrase) == files      any changed byte is refused

The file is JSON. The passphrase becomes a key by scrypt (RFC 7914), and the files are sealed with
ChaCha20-Poly1305 (RFC 8439); everything else in the file is authenticated with them.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from domain.nesting import is_too_deep

FORMAT = "tallystick-keys-v1"
PASSPHRASE_CHARACTERS_MIN = 12
COST = 1 << 17
"""Of scrypt: 128 MiB of memory and about half a second, by the minimum of OWASP."""
COST_MAX = 1 << 20
BLOCK, LANES = 8, 1
BYTES_MAX = 1 << 20


class KeyExportInvalid(Exception):
    """The file is not of this format, was changed, or the passphrase is another one."""


def seal(origin: str, files: Mapping[str, str], passphrase: str, made_at: str) -> bytes:
    """The content of the export: `files` by name. Raises KeyExportInvalid: passphrase too short."""
    if len(passphrase) < PASSPHRASE_CHARACTERS_MIN:
        raise KeyExportInvalid(f"the passphrase needs {PASSPHRASE_CHARACTERS_MIN} characters")
    header = {
        "format": FORMAT,
        "origin": origin,
        "made_at": made_at,
        "files": sorted(files),
        "kdf": {"name": "scrypt", "n": COST, "salt": _text(secrets.token_bytes(16))},
        "cipher": {"name": "chacha20-poly1305", "nonce": _text(secrets.token_bytes(12))},
    }
    cipher, nonce = _cipher(header, passphrase)
    box = cipher.encrypt(nonce, json.dumps(dict(files), sort_keys=True).encode(), _bound(header))
    return json.dumps({**header, "box": _text(box)}, indent=1, sort_keys=True).encode() + b"\n"


def open_export(content: bytes, passphrase: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the file says of itself, and the key files by name. Raises KeyExportInvalid."""
    header, box = _read(content)
    try:
        cipher, nonce = _cipher(header, passphrase)
        files = json.loads(cipher.decrypt(nonce, box, _bound(header)))
    except InvalidTag:
        raise KeyExportInvalid("another passphrase made this file, or it was changed") from None
    except (KeyError, TypeError, ValueError) as error:
        raise KeyExportInvalid(f"no export of keys: {error}") from None
    return header, files


def _read(content: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        text = content[: BYTES_MAX + 1].decode()
        if len(content) > BYTES_MAX or is_too_deep(text):
            raise KeyExportInvalid("no export of keys: too large")
        header = json.loads(text)
        named = header["format"]
        if named != FORMAT:
            is_ours = str(named).startswith("tallystick-keys-")
            what = "made by another version" if is_ours else "another kind of file"
            raise KeyExportInvalid(f"{named!r} is {what}: this reads {FORMAT}")
        box = base64.b64decode(header.pop("box"), validate=True)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise KeyExportInvalid(
            "no export of keys: make one with `tallystick keys export`"
        ) from None
    return header, box


def _cipher(header: Mapping[str, Any], passphrase: str) -> tuple[ChaCha20Poly1305, bytes]:
    kdf, cipher = header["kdf"], header["cipher"]
    cost = kdf["n"]
    if type(cost) is not int or not 2 <= cost <= COST_MAX:
        raise ValueError("the cost of the passphrase is out of bounds")
    salt = base64.b64decode(kdf["salt"], validate=True)
    scrypt = Scrypt(salt=salt, length=32, n=cost, r=BLOCK, p=LANES)
    key = scrypt.derive(passphrase.encode())
    return ChaCha20Poly1305(key), base64.b64decode(cipher["nonce"], validate=True)


def _bound(header: Mapping[str, Any]) -> bytes:
    """What is authenticated beside the files: all that the export says of itself."""
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
