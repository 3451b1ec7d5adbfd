"""Signed heads of the audit log: C2SP signed notes and checkpoints, and the one who signs them.

Formats only, and one file; no database, no network. Whether a head is right is for
`ledger/bundle/verify.py`.

    note    = text || "\\n" || one line "— name base64(key id || signature)\\n" per signature
    key id  = SHA-256(name || 0x0A || type || public key)[:4]
    every signed (size, root) is consistent with every one signed before it

The signer remembers what it signed in a file of its own, outside the database: a database restored
to an older point, or rewritten, is met with `SigningRefused` instead of a second history.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from ledger.tree.merkle import EMPTY_ROOT, HASH, verify_consistency

ED25519 = 0x01
SIGNATURES_MAX = 100
NOTE_BYTES_MAX = 1 << 20
SIZE_MAX = 2**63 - 1
_DASH = "\N{EM DASH} "


class NoteInvalid(ValueError):
    """Not a note, key or checkpoint of the form C2SP gives it, or not signed as it says."""


class SigningRefused(Exception):
    """The log has fewer facts than were signed before, or another history: nothing was signed."""


# --- keys ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A name and an Ed25519 public key; as text `name+hex(key id)+base64(type || key)`."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """Four bytes that tell a verifier which key to try."""
        return sha256(self.name.encode() + b"\n" + bytes([ED25519]) + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{_base64(bytes([ED25519]) + self.public)}"

    def accepts(self, message: bytes, signature: bytes) -> bool:
        """Whether this key signed exactly these bytes."""
        return signed_by(self.public, message, signature)


def verifier_of(seed: bytes, name: str) -> VerifierKey:
    """The public half of the 32 bytes that sign for the log of this name."""
    return VerifierKey(name, bytes(SigningKey(seed).verify_key))


def signed_by(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether an Ed25519 key signed exactly these bytes."""
    try:
        return is_signed(VerifyKey(public_key), message, signature)
    except (ValueError, TypeError):
        return False


def is_signed(key: VerifyKey, message: bytes, signature: bytes) -> bool:
    """As `signed_by`, of a key that is asked again and again."""
    try:
        key.verify(message, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


def parse_verifier_key(text: str) -> VerifierKey:
    """Read `name+hex(key id)+base64(type || key)`. Raises NoteInvalid."""
    parts = text.strip().split("+", 2)
    if len(parts) != 3:
        raise NoteInvalid("verifier key: needed name+key id+key")
    name, key_id, encoded = parts
    check_name(name)
    raw = _unbase64(encoded)
    if len(raw) != 33 or raw[0] != ED25519:
        raise NoteInvalid("verifier key: only Ed25519 (type 0x01) is known")
    key = VerifierKey(name, raw[1:])
    if key.id.hex() != key_id:
        raise NoteInvalid(f"verifier key: key id {key_id} is not that of this name and key")
    return key


def check_name(name: str) -> None:
    """Raise NoteInvalid unless this can name a log or a signer: no space, no `+`, not empty."""
    if not name or "+" in name or any(c.isspace() or ord(c) < 0x20 for c in name):
        raise NoteInvalid(f"not a key name: {name!r}")


# --- signed notes ----------------------------------------------------------------------------


def sign_note(text: str, name: str, key: SigningKey) -> str:
    """The note with one signature over the text, its final newline included."""
    check_name(name)
    _check_text(text)
    signature = VerifierKey(name, bytes(key.verify_key)).id + key.sign(text.encode()).signature
    return f"{text}\n{_DASH}{name} {_base64(signature)}\n"


def open_note(note: str, keys: Sequence[VerifierKey]) -> tuple[str, tuple[VerifierKey, ...]]:
    """The text of a note and which of these keys signed it, at least one.

    Signatures of unknown keys are ignored; a wrong signature of a known one spoils the note.
    Raises NoteInvalid.
    """
    text, lines = split_note(note)
    known = {(key.name, key.id): key for key in keys}
    found: list[VerifierKey] = []
    for name, raw in lines:
        key = known.pop((name, raw[:4]), None)
        if key is None:
            continue
        if not key.accepts(text.encode(), raw[4:]):
            raise NoteInvalid(f"wrong signature of {name}")
        found.append(key)
    if not found:
        raise NoteInvalid("not signed by a known key")
    return text, tuple(found)


def split_note(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Text and (name, key id || signature) of each line, nothing verified. Raises NoteInvalid."""
    if len(note.encode("utf-8", "replace")) > NOTE_BYTES_MAX:
        raise NoteInvalid("note too large")
    text, blank, tail = note.rpartition("\n\n")
    if not blank or not tail.endswith("\n"):
        raise NoteInvalid("note: needed a text, a blank line and signature lines")
    _check_text(text + "\n")
    lines = tail[:-1].split("\n")
    if len(lines) > SIGNATURES_MAX:
        raise NoteInvalid("note: too many signatures")
    return text + "\n", [_signature_line(line) for line in lines]


def _signature_line(line: str) -> tuple[str, bytes]:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise NoteInvalid(f"not a signature line: {line[:80]!r}")
    check_name(name)
    raw = _unbase64(encoded)
    if len(raw) < 5:
        raise NoteInvalid("signature line: too short")
    return name, raw


def _check_text(text: str) -> None:
    if not text.endswith("\n") or len(text) < 2:
        raise NoteInvalid("the text of a note ends in a newline")
    if any(ord(c) < 0x20 and c != "\n" for c in text):
        raise NoteInvalid("a control character in a note")


# --- checkpoints -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is signed: so many facts of this log have this root."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    @property
    def line(self) -> str:
        """How the file of a signer remembers it: the size, a space and the root."""
        return f"{self.size} {_base64(self.root)}\n"


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a checkpoint note; extension lines are refused. Raises NoteInvalid."""
    lines = text.split("\n")
    if len(lines) != 4 or lines[3]:
        raise NoteInvalid("checkpoint: needed origin, size and root, a line each")
    origin, size, root = lines[0], lines[1], _unbase64(lines[2])
    check_name(origin)
    if not (size.isascii() and size.isdecimal()) or str(int(size)) != size or int(size) > SIZE_MAX:
        raise NoteInvalid(f"checkpoint: not a size: {size[:40]!r}")
    if len(root) != HASH:
        raise NoteInvalid("checkpoint: a root has 32 bytes")
    return Checkpoint(origin, int(size), root)


def open_checkpoint(note: str, key: VerifierKey) -> Checkpoint:
    """The checkpoint of a note that the log's own key signed. Raises NoteInvalid."""
    text, _ = open_note(note, [key])
    checkpoint = parse_checkpoint(text)
    if checkpoint.origin != key.name:
        raise NoteInvalid(f"checkpoint of {checkpoint.origin}, signed by {key.name}")
    return checkpoint


# --- the file of the signer ------------------------------------------------------------------


def remembered(text: str, origin: str) -> Iterator[Checkpoint]:
    """The heads in the file of a signer, the newest first. A line that a crash cut counts as none,
    open or declared void: its signature never left. Raises NoteInvalid at a line that is damaged.
    """
    for line in reversed(text.split("\n")[:-1]):
        if line and not line.endswith(" void"):
            size, _, root = line.partition(" ")
            head = parse_checkpoint(f"{origin}\n{size}\n{root}\n")
            yield Checkpoint(origin, head.size, head.root)  # millions share one name


def append_head(path: Path, head: Checkpoint) -> None:
    """Remember a head that was signed elsewhere, on disk. For a file that no signer holds now."""
    file = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        _content(file)
        _append(file, head.line)
    finally:
        os.close(file)


def _content(file: int) -> str:
    """All of it. The last line that a crash cut is declared void before another one follows it."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        content = reader.read()
    if content and not content.endswith(b"\n"):
        _append(file, " void\n")
    return content.decode("ascii", "replace")


def _append(file: int, line: str) -> None:
    data = line.encode()
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)


class Signer:
    """Signs the heads of one log, and never two histories.

    Its file holds the `line` of each head, on disk before the signature leaves.
    One process holds it at a time. Use as a context manager. Opening raises BlockingIOError when
    another process has the file, FileNotFoundError where there is none (a new one has forgotten
    what was signed, so none is made here), and SigningRefused when it is damaged. `old`: the seed
    of the key before, which signs beside this one until a moment.
    """

    def __init__(
        self, path: Path, origin: str, seed: bytes, *, old: tuple[bytes, int] | None = None
    ) -> None:
        check_name(origin)
        self.origin = origin
        self._old = None if old is None else (SigningKey(old[0]), old[1])
        self._key = SigningKey(seed)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.last = self._remember()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Signer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process sign."""
        os.close(self._file)

    @property
    def verifier_key(self) -> VerifierKey:
        """What others need to check the signatures."""
        return VerifierKey(self.origin, bytes(self._key.verify_key))

    def sign(
        self, size: int, root: bytes, prove: Callable[[int], Sequence[bytes]], now_us: int
    ) -> str:
        """The signed checkpoint note of this head.

        `prove(old size)` is the consistency proof from a smaller size to this one. The same head
        gives the same note again. Before the moment of the old key it signs, too, by `now_us`.
        Raises SigningRefused and signs nothing when this head is not a
        later one of the same history.
        """
        new = Checkpoint(self.origin, size, root)
        if new != self.last:
            self._check(new, prove)
            _append(self._file, new.line)
            self.last = new
        note = sign_note(new.text, self.origin, self._key)
        if self._old is not None and now_us < self._old[1]:
            note += sign_note(new.text, self.origin, self._old[0]).removeprefix(f"{new.text}\n")
        return note

    def _check(self, new: Checkpoint, prove: Callable[[int], Sequence[bytes]]) -> None:
        old = self.last
        if new.size < old.size:
            raise SigningRefused(f"the log has {new.size} facts, {old.size} were signed before")
        proof = prove(old.size) if new.size > old.size else []
        if not verify_consistency(old.size, new.size, old.root, new.root, proof):
            raise SigningRefused(
                f"the first {old.size} facts are not those signed before as {_base64(old.root)}"
            )

    def _remember(self) -> Checkpoint:
        try:
            heads = remembered(_content(self._file), self.origin)
            return next(heads, Checkpoint(self.origin, 0, EMPTY_ROOT))
        except NoteInvalid as damage:
            raise SigningRefused(f"the signer's own file is damaged: {damage}") from damage


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    """Strict: one text for each value, so that no bit of a signed file is free to change."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoteInvalid(f"not base64: {text[:60]!r}") from None
    if _base64(data) != text:
        raise NoteInvalid(f"not the base64 of anything: {text[:60]!r}")
    return data
