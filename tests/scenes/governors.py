"""Governors for tests: personal keys, their enrolment, and votes that they sign.

Each key is made of a name, so runs are equal; its secret is here and never on the server.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from eth_account import Account
from eth_account.messages import encode_defunct
from nacl.signing import SigningKey

from domain.authority.acts import content_of, signed_text
from domain.authority.governors import ProposeGovernorChange, VoteOnGovernorChange
from domain.authority.register import GOVERNORS, GovernorEnrolled
from domain.authority.vote import (
    SHARED,
    SINGLE,
    YES,
    SignedVote,
    Subject,
    digest,
    enrolment_text,
    governor_id,
    vote_text,
)
from domain.duration import DAY_US
from domain.stream import Stream
from ledger.log.handle import Ledger

NETWORK = "tallystick.example/log"
_numbers = count(1)


class Governor:
    """One person with an Ed25519 key of their own."""

    def __init__(self, name: str) -> None:
        self._signing = SigningKey(hashlib.sha256(b"governor " + name.encode()).digest())
        self.key = "ed25519:" + bytes(self._signing.verify_key).hex()
        self.governor_id = governor_id(self.key)

    def sign(self, text: str) -> str:
        return self._signing.sign(text.encode()).signature.hex()

    def enrolment(self, network: str, governors: int) -> dict[str, Any]:
        """The body of a proposal to enrol this governor."""
        signature = self.sign(enrolment_text(network, self.key, governors))
        return {"action": "enrol", "governors": governors, "key": self.key, "signature": signature}

    def vote(
        self,
        subject: Subject,
        choice: str = YES,
        *,
        network: str = NETWORK,
        rehearsal_sha256: str | None = None,
    ) -> SignedVote:
        """A vote on what this governor has read."""
        return SignedVote(
            governor_id=self.governor_id,
            revision=subject.revision,
            content_sha256=subject.content_sha256,
            governors=subject.governors,
            rehearsal_sha256=rehearsal_sha256,
            signature=self.sign(vote_text(network, subject, choice, rehearsal_sha256)),
        )

    def voting(self, told: Mapping[str, Any], choice: str = YES, **more: Any) -> dict[str, Any]:
        """The body of a vote on a ballot as the server tells it."""
        subject = subject_of(told)
        vote = self.vote(subject, choice, network=told["network"], **more)
        names = ("governor_id", "revision", "content_sha256", "governors", "signature")
        body = {name: getattr(vote, name) for name in names}
        return body | {k: v for k, v in more.items() if v is not None}


def signatures(
    governors: Sequence[Governor],
    told: Mapping[str, Any],
    path: str,
    body: Any,
    *,
    key: str,
    not_after_us: int,
    method: str = "POST",
) -> dict[str, str]:
    """The header of a request that these signed; `told`: the governors as the server tells them."""
    content = digest(content_of(method, path, body, not_after_us))
    text = signed_text(told["network"], key, content, told["version"])
    signed = [{"governor_id": one.governor_id, "signature": one.sign(text)} for one in governors]
    header = {"governors": told["version"], "not_after_us": not_after_us, "signatures": signed}
    return {"Governor-Signatures": json.dumps(header)}


def signed_by_two(carrier: Any, path: str, body: Any, now_us: int) -> dict[str, str]:
    """What a request carries that the first two sign: key and header; nothing before three are
    enrolled. `carrier`: anybody who reads.
    """
    told = carrier.read("/v1/governors")
    if told["mode"] != SHARED:
        return {}
    key, until_us = f"signed-{next(_numbers)}", now_us + DAY_US
    named = signatures((ANNA, BORIS), told, path, body, key=key, not_after_us=until_us)
    return {"key": key, **named}


class WalletGovernor(Governor):
    """One person with a wallet."""

    def __init__(self, name: str) -> None:
        self._account = Account.from_key(hashlib.sha256(b"wallet " + name.encode()).digest())
        self.key = "wallet:" + self._account.address.lower()
        self.governor_id = governor_id(self.key)

    def sign(self, text: str) -> str:
        return "0x" + bytes(self._account.sign_message(encode_defunct(text=text)).signature).hex()


PRESENT, VERIFIED = 0x01, 0x04
"""Flags of authenticator data."""


class PasskeyGovernor(Governor):
    """One person with an authenticator, in software: it asserts what a browser asks it to.

    `origin`, `flags`, `kind`: what a page elsewhere, or an authenticator without its person, says.
    """

    def __init__(self, name: str, *, is_eddsa: bool, origin: str = "https://pool.example") -> None:
        seed = hashlib.sha256(b"passkey " + name.encode()).digest()
        self.origin, self.flags, self.kind = origin, PRESENT | VERIFIED, "webauthn.get"
        self._held: Ed25519PrivateKey | EllipticCurvePrivateKey
        if is_eddsa:
            self._held = Ed25519PrivateKey.from_private_bytes(seed)
            public = "a4010103272006215820" + self._held.public_key().public_bytes_raw().hex()
        else:
            self._held = derive_private_key(int.from_bytes(seed, "big"), SECP256R1())
            point = self._held.public_key().public_numbers()
            public = f"a5010203262001215820{point.x:064x}225820{point.y:064x}"
        self.key = f"passkey:{public}@{origin}"
        self.governor_id = governor_id(self.key)

    def sign(self, text: str) -> str:
        challenge = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        told = {"type": self.kind, "challenge": challenge, "origin": self.origin}
        client_data = json.dumps({**told, "crossOrigin": False}).encode()
        party = hashlib.sha256((urlsplit(self.origin).hostname or "").encode()).digest()
        data = party + bytes([self.flags]) + (7).to_bytes(4, "big")
        signed = data + hashlib.sha256(client_data).digest()
        if isinstance(self._held, Ed25519PrivateKey):
            signature = self._held.sign(signed)
        else:
            signature = self._held.sign(signed, ECDSA(SHA256(), deterministic_signing=True))
        return f"passkey:{data.hex()}.{client_data.hex()}.{signature.hex()}"


def subject_of(told: Mapping[str, Any]) -> Subject:
    """What a ballot that was told is about."""
    return Subject(
        told["kind"], told["subject"], told["revision"], told["content_sha256"], told["governors"]
    )


ANNA, BORIS, CLEO, DIDO = (Governor(name) for name in ("anna", "boris", "cleo", "dido"))
THREE = (ANNA, BORIS, CLEO)


def enrolling(who: Governor, at_us: int) -> ProposeGovernorChange:
    """The command that enrols a first governor."""
    body = who.enrolment(NETWORK, 0)
    return ProposeGovernorChange(network=NETWORK, **body, by="mem_op", at_us=at_us)


def enrol_in(ledger: Ledger, now_us: int, governors: Sequence[Governor] = THREE) -> dict[str, Any]:
    """Enrol these without a server, each by the vote of the first; the governors as told."""
    for number, one in enumerate(governors):
        body = one.enrolment(NETWORK, number)
        asked = ProposeGovernorChange(network=NETWORK, **body, by="mem_op", at_us=now_us)
        ledger.handle(asked, key=None, now_us=now_us)
        if number:
            change = ledger.market.state_of(GOVERNORS).changes[-1]
            vote = VoteOnGovernorChange(
                number=number,
                choice=YES,
                vote=governors[0].vote(change.subject),
                open_epoch=0,
                key_id="key_op",
                by="mem_op",
                at_us=now_us,
            )
            ledger.handle(vote, key=None, now_us=now_us)
    return {"network": NETWORK, "version": ledger.market.state_of(GOVERNORS).now.version}


def enrolled(*governors: Governor, at_us: int = 1) -> tuple[tuple[Stream[Any], Any], ...]:
    """Facts that enrol these, one after another."""
    facts = []
    for version, one in enumerate(governors, 1):
        mode = SHARED if version >= 3 else SINGLE
        fact = GovernorEnrolled(
            network=NETWORK,
            governor_id=one.governor_id,
            key=one.key,
            signature=one.sign(enrolment_text(NETWORK, one.key, version - 1)),
            signed_version=version - 1,
            change=0,
            version=version,
            threshold=2 if mode == SHARED else 1,
            mode=mode,
            by="mem_op",
            at_us=at_us,
        )
        facts.append((GOVERNORS, fact))
    return tuple(facts)


def enrol_all(carrier: Any, governors: Sequence[Governor] = THREE) -> dict[str, Any]:
    """Enrol these over HTTP: the first by the operator's word, each next by the vote of the first.

    `carrier` holds an operator's key. The governors as they are told then.
    """
    told: dict[str, Any] = carrier.read("/v1/governors")
    for one in governors:
        body = one.enrolment(told["network"], told["version"])
        told = carrier.made("/v1/governors/changes", body)
        if told["version"] and one.governor_id not in _ids(told):
            change = told["changes"][-1]
            yes = {"choice": "yes", "vote": governors[0].voting(change["ballot"])}
            told = carrier.made(f"/v1/governors/changes/{change['number']}/votes", yes)
        assert one.governor_id in _ids(told), told
    return told


def enrol_once(carrier: Any) -> None:
    """Three governors in a scene that tests share: whoever comes first enrols them."""
    if not carrier.read("/v1/governors")["version"]:
        enrol_all(carrier)


def _ids(told: Mapping[str, Any]) -> set[str]:
    return {one["governor_id"] for one in told["governors"]}


__all__ = [
    "ANNA",
    "BORIS",
    "CLEO",
    "DIDO",
    "NETWORK",
    "THREE",
    "Governor",
    "PasskeyGovernor",
    "WalletGovernor",
    "enrol_all",
    "enrol_in",
    "enrol_once",
    "enrolled",
    "enrolling",
    "signatures",
    "subject_of",
]
