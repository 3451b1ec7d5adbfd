"""A governor's personal key on this machine, and votes that it signs.

    what is signed is shown first, and its hash is computed here from what is shown

The secret lies in a file that only its owner reads; it is never sent.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from cli.terminal import InputUnusable, note

if TYPE_CHECKING:
    from nacl.signing import SigningKey

    from contracts.signers import KeystoreSigner, LocalKeySigner
    from tallystick_client.forms import VoteRequest

KeyFile = Annotated[
    Path,
    typer.Option(
        "--key",
        metavar="FILE",
        envvar="TALLYSTICK_GOVERNOR_KEY",
        help="Your personal key, made by `governor make-key`, or a wallet's keystore. It stays on"
        " this machine.",
    ),
]
PASSWORD = "TALLYSTICK_KEYSTORE_PASSWORD"  # noqa: S105 - a name, not a password
NO_CHAIN = 0
"""Of a wallet that signs texts alone."""
_FORM = "tallystick-governor-key-v1"
_PASSKEY_FORM = "tallystick-passkey-v1"
_SHOWN_MAX = 200


def make_key(file: Path) -> str:
    """Write a new personal key, readable by its owner alone; the public key. Raises
    InputUnusable: a file that is there is never overwritten.
    """
    from nacl.signing import SigningKey

    secret = SigningKey.generate()
    _write(file, {"format": _FORM, "secret": bytes(secret).hex()})
    return Ed25519Key(secret).public


def keep_passkey(file: Path, key: str) -> str:
    """Write the public key of a passkey, whose secret its authenticator keeps; the public key.
    Raises InputUnusable.
    """
    from domain.authority.vote import PASSKEY_PATTERN

    if re.fullmatch(PASSKEY_PATTERN, key) is None:
        raise InputUnusable("a passkey is passkey:<COSE key in hex>@<origin>")
    _write(file, {"format": _PASSKEY_FORM, "key": key})
    return key


def _write(file: Path, told: dict[str, str]) -> None:
    content = json.dumps(told) + "\n"
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(content)
    except OSError as error:
        raise InputUnusable(f"{file}: {error.strerror}") from None


class PersonalKey(Protocol):
    """What a governor signs with: an Ed25519 key of ours, a wallet, or a passkey."""

    @property
    def public(self) -> str:
        """`ed25519:`, `wallet:` or `passkey:`, as it is enrolled."""
        ...

    def sign(self, text: str) -> str:
        """Hex; of a wallet behind 0x (EIP-191), of a passkey an assertion. Raises InputUnusable."""
        ...


@dataclass(frozen=True, slots=True)
class Ed25519Key:
    secret: SigningKey

    @property
    def public(self) -> str:
        return "ed25519:" + bytes(self.secret.verify_key).hex()

    def sign(self, text: str) -> str:
        return self.secret.sign(text.encode()).signature.hex()


@dataclass(frozen=True, slots=True)
class WalletKey:
    signer: LocalKeySigner

    @property
    def public(self) -> str:
        return "wallet:" + self.signer.address.lower()

    def sign(self, text: str) -> str:
        return "0x" + self.signer.sign_text(text).hex()


@dataclass(frozen=True, slots=True)
class Passkey:
    """The secret is in an authenticator: a browser asks it, and its answer is pasted here."""

    public: str

    def sign(self, text: str) -> str:
        """Of one line of stdin, the assertion as JSON (`PublicKeyCredential.toJSON`)."""
        challenge = sha256(text.encode()).hexdigest()
        origin = self.public.partition("@")[2]
        note(f"at {origin}, assert the challenge {challenge}; paste the assertion's JSON, one line")
        try:
            told = json.loads(sys.stdin.readline())["response"]
            parts = [
                urlsafe_b64decode(told[name] + "==").hex()
                for name in ("authenticatorData", "clientDataJSON", "signature")
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise InputUnusable(f"this is no assertion: {error!r}") from None
        return "passkey:" + ".".join(parts)


def read_key(file: Path) -> PersonalKey:
    """A key of `governor make-key`, or a wallet's keystore (JSON), whose password is asked for.

    Raises InputUnusable, also where others can read the file.
    """
    from nacl.signing import SigningKey

    try:
        if file.stat().st_mode & 0o077:
            raise InputUnusable(f"{file}: others can read it; run `chmod 600 {file}`")
        told = json.loads(file.read_text(encoding="utf-8"))
        if {"crypto", "Crypto"} & told.keys():
            return WalletKey(unlocked(file, NO_CHAIN))
        if told["format"] == _PASSKEY_FORM:
            return Passkey(told["key"])
        if told["format"] != _FORM:
            raise ValueError("another format")
        return Ed25519Key(SigningKey(bytes.fromhex(told["secret"])))
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else f"no governor's key: {error}"
        raise InputUnusable(f"{file}: {said}") from None


def unlocked(keystore: Path, chain_id: int) -> KeystoreSigner:
    """The wallet in an encrypted file. Raises InputUnusable, also for a key that all know."""
    from contracts.signers import KeystoreSigner, PublicKeyRefused

    try:
        return KeystoreSigner(keystore, _password(keystore), chain_id)
    except PublicKeyRefused as refused:
        raise InputUnusable(f"{keystore} holds a key that all know: {refused}") from None
    except ValueError as error:
        raise InputUnusable(f"{keystore} cannot be unlocked: {error}") from error


def _password(keystore: Path) -> str:
    given = os.environ.get(PASSWORD)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise InputUnusable(f"set {PASSWORD} to the password of {keystore}")
    from getpass import getpass

    return getpass(f"password of {keystore}: ", stream=sys.stderr)


def vote_on(
    ballot: Mapping[str, Any],
    key: Path,
    choice: str,
    *,
    content: Any = None,
    before: Any = None,
    governors: int | None = None,
    rehearsal: Path | None = None,
) -> VoteRequest:
    """Show what is voted on and sign it. `content`: what is proposed where the ballot does not hold
    it; `before`: what is in force; `rehearsal`: the result the voter has seen, whose hash is signed
    too. Raises InputUnusable where the hash is not that of the content.
    """
    from domain.authority.vote import Subject, content_text, digest, governor_id, vote_text

    personal = read_key(key)
    shown = ballot.get("content") if content is None else content
    if digest(content_text(shown)) != ballot["content_sha256"]:
        raise InputUnusable("the server names another hash than that of the content it shows")
    version = int(ballot["governors"]) if governors is None else governors
    subject = Subject(
        ballot["kind"], ballot["subject"], ballot["revision"], ballot["content_sha256"], version
    )
    seen = None if rehearsal is None else digest(content_text(_result(rehearsal)))
    text = vote_text(ballot["network"], subject, choice, seen)
    for line in (*differences(before, shown), *text.split("\n")):
        note(line)
    vote: VoteRequest = {
        "governor_id": governor_id(personal.public),
        "revision": subject.revision,
        "content_sha256": subject.content_sha256,
        "governors": subject.governors,
        "signature": personal.sign(text),
    }
    if seen is not None:
        vote["rehearsal_sha256"] = seen
    return vote


def _result(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        told = "write it with `tallystick policy dry-run --json`"
        raise InputUnusable(f"{file} is no rehearsal's result: {error}; {told}") from None


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Each field that is new or changed, one line each."""
    if isinstance(after, dict):
        known = before if isinstance(before, dict) else {}
        found = [differences(known.get(name), after[name], f"{place}.{name}") for name in after]
        return [line for lines in found for line in lines]
    if before == after or (type(after) in (int, str) and str(before) == str(after)):
        return []  # a document may write a number in quotes
    was = "" if before is None else f" (in force: {_short(before)})"
    return [f"{place.lstrip('.')}: {_short(after)}{was}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."
