"""Do the key files of this data folder belong to this log?

    blinding.key    blinds the first fact as the log has it
    signer.key      is the key that the last rotation announced, or else signed the newest head
    signed-heads    is there once a head was signed, and does not contradict the newest one
    sealing.key     opens the newest sealed secret, once there is one
    server.key      is there once the log has facts; nothing in the log depends on which one it is

A data folder that was not mounted, or was lost, would otherwise be filled with new keys in silence,
and the log would go on with two signatures. So a server asks before it makes a key. Of machines
that open an empty log at once one makes keys; the database says which (`ledger/beside/key_set.py`),
and the others refuse.
"""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from nacl.signing import SigningKey

from api.process import secret_files
from api.process.leading import keeping_out
from domain.nesting import read_json
from ledger.beside import key_set, loaded_log, sealed_secrets
from ledger.beside.key_set import KeySet
from ledger.log import codec, market
from ledger.tree import trees
from ledger.tree.checkpoint import (
    Checkpoint,
    NoteInvalid,
    VerifierKey,
    open_checkpoint,
    parse_checkpoint,
    remembered,
    split_note,
    verifier_of,
)

logger = logging.getLogger(__name__)

Connection = psycopg.Connection[Any]

MATCHES, NEW, MISSING, DIFFERS = "matches", "new", "missing", "differs"
BLINDING, SIGNER, HEADS = "blinding.key", "signer.key", "signed-heads"
SEALING, SERVER = "sealing.key", "server.key"
FILES = (BLINDING, SIGNER, HEADS, SEALING, SERVER)
OLD_SIGNER, NEXT_SIGNER = "signer-old.key", "signer-next.key"
"""The key before, which signs beside the new one for a time; and the one a rotation is making."""
MAKING = "key_files"
"""The lock of the process that makes keys, and of a load that makes an empty database a copy."""
CARRIED = (*FILES, OLD_SIGNER, NEXT_SIGNER)
"""What an export holds: in a rotation that was interrupted the next key is already the log's."""


class KeysDiffer(Exception):
    """The key files of this data folder are not those of the log: nothing was started or made."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One file: how it stands to the log, and why. `new`: nothing in the log depends on it yet."""

    file: str
    state: str
    why: str

    @property
    def is_wrong(self) -> bool:
        return self.state in (MISSING, DIFFERS)


def open_log(
    connection: Connection, folder: Path, origin: str, lost: frozenset[str] = frozenset()
) -> None:
    """`require`, and the files that nothing depends on yet are made: by one process at a time, so
    that of two machines with an empty log the second one finds whose keys it needs.
    Raises KeysDiffer, SecretUnreadable.
    """
    with keeping_out(connection, MAKING):
        copy = loaded_log.read(connection)
        if copy is not None:
            raise KeysDiffer(
                f"this database is a copy of the log {copy.origin} now: it has no keys"
            )
        make_new(folder, require(connection, folder, origin, lost))
        held = (folder / BLINDING, folder / SIGNER)
        if key_set.read(connection) is None and all(each.exists() for each in held):
            blinding, signer = map(secret_files.read, held)
            where = socket.gethostname(), str(folder.resolve())
            key_set.keep(connection, KeySet(*where, _blinding_mark(blinding), _public(signer)))


def _blinding_mark(key: bytes) -> bytes:
    """By this it is known again, and by nothing is it found."""
    return hashlib.sha256(b"tallystick/key_set/v1" + key).digest()


def _public(seed: bytes) -> bytes:
    return bytes(SigningKey(seed).verify_key)


def require(
    connection: Connection, folder: Path, origin: str, lost: frozenset[str] = frozenset()
) -> list[str]:
    """That no key of this log is missing or another one; returns the files that may be made anew.
    Another `sealing.key` is a warning: the server works, and what the old one sealed waits for it.
    `lost`: files that are not asked about. Raises KeysDiffer, SecretUnreadable.
    """
    found = examine(connection, folder, origin)
    wrong = [each for each in found if each.is_wrong and each.file not in lost]
    told = "; ".join(f"{each.file} {each.state}: {each.why}" for each in wrong)
    if all(each.file == SEALING and each.state == DIFFERS for each in wrong):
        for each in wrong:
            logger.warning("%s %s: %s", each.file, each.state, each.why)
    else:
        if key_set.read(connection) is not None and market.head(connection) == 0:
            told += ". Copy that folder to here; or, as the log is empty, take an empty database"
        raise KeysDiffer(f"the keys in {folder} are not those of this log: {told}")
    return [each.file for each in found if each.state == NEW and each.file not in lost]


def make_new(folder: Path, files: Iterable[str]) -> None:
    """Make the files that nothing in the log depends on yet, as `require` tells them."""
    for name in files:
        if name == HEADS:
            secret_files.make(folder / name, "")
        else:
            secret_files.read_or_make(folder / name)


def examine(connection: Connection, folder: Path, origin: str) -> list[Finding]:
    """Every key file against the log; nothing is made. Raises SecretUnreadable."""
    made = key_set.read(connection)
    return [
        _blinding(connection, folder, made),
        _signer(connection, folder, origin, made),
        _heads(connection, folder, origin),
        _sealing(connection, folder, made),
        _server(connection, folder, made),
    ]


def _by(made: KeySet | None) -> str | None:
    """Why a log that depends on no key yet needs those of another machine."""
    return None if made is None else f"{made.machine} made the keys of this log in {made.folder}"


def _key_file(
    folder: Path, name: str, needed: str | None, matches: Callable[[bytes], str | None]
) -> Finding:
    """`needed`: why the log needs this file, None: it does not yet. `matches`: what differs."""
    path = folder / name
    if not path.exists():
        if needed is None:
            return Finding(name, NEW, "it is made at the next start")
        return Finding(name, MISSING, needed)
    differs = matches(secret_files.read(path)) if needed is not None else None
    if differs is not None:
        return Finding(name, DIFFERS, differs)
    return Finding(name, MATCHES, needed or "nothing in the log depends on it yet")


def _blinding(connection: Connection, folder: Path, made: KeySet | None) -> Finding:
    first = market.first(connection)

    def differs(key: bytes) -> str | None:
        if first is None:
            return _by(made) if made and made.blinding_sha256 != _blinding_mark(key) else None
        stream, version, body = first
        told = read_json(body).get("blind")
        if codec.blind(key, stream, version) != told:
            return "the first fact of the log is blinded with another key"
        return None

    needed = _by(made) if first is None else "the facts of the log are blinded with it"
    return _key_file(folder, BLINDING, needed, differs)


def _signer(connection: Connection, folder: Path, origin: str, made: KeySet | None) -> Finding:
    signed, rotations = trees.latest_checkpoint(connection), trees.rotations(connection)

    def differs(seed: bytes) -> str | None:
        if signed is None and not rotations:
            return _by(made) if made and made.signer_public != _public(seed) else None
        why = other_than_named(connection, verifier_of(seed, origin))
        if why is not None and rotations and (folder / NEXT_SIGNER).exists():
            why += "; `tallystick keys rotate` ends what was interrupted"
        return why

    needed = _by(made) if signed is None else f"it signed the head of {signed[0]} facts"
    if rotations:
        needed = f"rotation {rotations[-1].number} announced its key"
    return _key_file(folder, SIGNER, needed, differs)


def other_than_named(connection: Connection, key: VerifierKey) -> str | None:
    """Why this is not the key that signs the log: the last rotation announced another one, or
    another one signed the newest head. None: it is, or the log names none yet.
    """
    signed, rotations = trees.latest_checkpoint(connection), trees.rotations(connection)
    if rotations:
        is_named = rotations[-1].new == key
        return None if is_named else f"rotation {rotations[-1].number} announced another key"
    if signed is None:
        return None
    try:
        open_checkpoint(signed[1], key)
    except NoteInvalid:
        named = split_note(signed[1])[0].split("\n", 1)[0]
        if named != key.name:
            return f"the log signs as {named}, and TALLYSTICK_LOG_ORIGIN is {key.name}"
        return f"the head of {signed[0]} facts is signed with another key"
    return None


def _heads(connection: Connection, folder: Path, origin: str) -> Finding:
    """An older file is well: the signer proves that the log grew from the head it remembers."""
    signed, path = trees.latest_checkpoint(connection), folder / HEADS
    if not path.exists():
        if signed is None:
            return Finding(HEADS, NEW, "no head of the log was signed yet")
        why = f"the signer forgot that it signed a head of {signed[0]} facts"
        return Finding(HEADS, MISSING, why)
    try:
        last = last_head(path, origin)
    except NoteInvalid as damage:
        return Finding(HEADS, DIFFERS, str(damage))
    if last is None:
        return Finding(HEADS, MATCHES, "it remembers no head")
    size = last.size
    if signed is None or size > signed[0]:
        held = trees.head(connection).size if signed is None else signed[0]
        if size > (has := market.head(connection)):
            why = f"the signer signed {size} facts, and this database has {has}"
            return Finding(HEADS, DIFFERS, why)
        return Finding(HEADS, MATCHES, f"it remembers {size} facts, later than {held}")
    note_text = _text_at(connection, size)
    if note_text is not None and parse_checkpoint(note_text).root != last.root:
        return Finding(HEADS, DIFFERS, f"it remembers another history of {size} facts")
    return Finding(HEADS, MATCHES, f"it remembers a head of {size} facts")


def _text_at(connection: Connection, size: int) -> str | None:
    found = trees.latest_checkpoint(connection, size)
    if found is None or found[0] != size:
        return None
    return split_note(found[1])[0]


def last_head(path: Path, origin: str) -> Checkpoint | None:
    """The last head that a signer's file remembers. Raises NoteInvalid: that line is damaged."""
    try:
        return next(remembered(path.read_text(encoding="ascii", errors="replace"), origin), None)
    except NoteInvalid as damage:
        raise NoteInvalid(f"{path} is damaged: {damage}") from damage


def _sealing(connection: Connection, folder: Path, made: KeySet | None) -> Finding:
    name = sealed_secrets.newest(connection)

    def differs(key: bytes) -> str | None:
        if name is not None and sealed_secrets.read(connection, key, name) is None:
            return "the newest sealed secret was sealed with another key"
        return None

    needed = None if name is None else "the secrets that the database keeps are sealed with it"
    if name is None and market.head(connection) == 0:
        needed = _by(made)
    return _key_file(folder, SEALING, needed, differs)


def _server(connection: Connection, folder: Path, made: KeySet | None) -> Finding:
    has_facts = market.head(connection) > 0
    needed = "a server with this log had one" if has_facts else _by(made)
    return _key_file(folder, SERVER, needed, lambda _key: None)
