"""The server's own secrets: files in the data folder that only its owner can read (0600).

    blinding.key   blinds the leaves of the market log; fixed for a log
    signer.key     signs the log's heads
    sealing.key    seals what the server must keep: secrets of webhooks, logins of datastores
    server.key     one half of what is shown once, the other is a salt that is erased; cursors, the
                   moments and the primes of challenges
    auditor.key    opens a copy of a log for the auditor who loaded it; made by the load alone. No
                   fact issues it, so only a server on such a copy takes it

Each is made when a server opens its log and nothing in the log depends on it yet
(`key_files.make_new`), whole or not at all, so that two processes starting together agree; never
later, when a folder that is not there any more would get other keys. Losing `server.key` loses no
right: what was issued stays known by its hash, and nothing that anybody holds follows from it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from contracts.durable_file import entry_to_disk

SECRET_BYTES = 32
AUDITOR = "auditor.key"


class SecretUnreadable(Exception):
    """A key file is not there, can be read by others or does not hold a key."""


class KeyNotHere(Exception):
    """This server records nothing: it signs no heads, and may have no copy of the log's key."""


def folder_of(data_dir: Path) -> Path:
    """Where the key files live."""
    return data_dir / "keys"


def made_folder(data_dir: Path) -> Path:
    """Where the key files live; made if it is not there."""
    folder = folder_of(data_dir)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def read_or_make(path: Path) -> bytes:
    """The 32 bytes of a key file, made when it is not there. Raises SecretUnreadable."""
    if not path.exists():
        make(path, secrets.token_hex(SECRET_BYTES) + "\n")
    return read(path)


def read(path: Path) -> bytes:
    """The 32 bytes of a key file that is there. Raises SecretUnreadable."""
    if not path.exists():
        raise SecretUnreadable(f"{path} is not there: was its folder lost, or is it not mounted?")
    _require_own(path)
    try:
        found = bytes.fromhex(path.read_text(encoding="ascii"))
    except ValueError:
        found = b""
    if len(found) != SECRET_BYTES:
        raise SecretUnreadable(f"{path} does not hold {SECRET_BYTES} bytes in hex")
    return found


def _require_own(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        raise SecretUnreadable(f"{path} can be read by others: chmod 600 {path}")


def auditor_sha256(data_dir: Path) -> str | None:
    """By what the key of a copy is known, in hex; None where there is no such file.
    Raises SecretUnreadable.
    """
    path = folder_of(data_dir) / AUDITOR
    if not path.exists():
        return None
    _require_own(path)
    return hashlib.sha256(path.read_bytes().strip()).hexdigest()


def keep_auditor_key(data_dir: Path, key: str) -> Path:
    """The file with this key of a copy, or with the one that is there already."""
    path = made_folder(data_dir) / AUDITOR
    if not path.exists():
        make(path, key + "\n")
    return path


def make(path: Path, content: str) -> bool:
    """A new file appears with its whole content, or the one another process made stays: False. Its
    name is on disk too, before anything in the log can depend on it.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    is_new = False
    with suppress(FileExistsError):
        os.link(draft, path)
        is_new = True
    draft.unlink()
    entry_to_disk(path.parent)
    entry_to_disk(path.parent.parent)
    return is_new


def derive(server_key: bytes, purpose: str, *parts: str) -> bytes:
    """64 bytes that only this server can name, the same for the same parts. Whoever has an old copy
    of the key makes them too: what anybody keeps as a secret has a salt among its parts
    (`Call.secret`), which is erased.
    """
    told = "\0".join((purpose, *parts)).encode()
    return hmac.new(server_key, told, hashlib.sha512).digest()
