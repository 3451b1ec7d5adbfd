"""Challenges for wallets: made, kept for ten minutes, and used once.

    a wallet is linked  =>  its key signed a text that this server made for this account
    a text is for one purpose, and for no other

The text is compared by nonce only: what a client sends is never parsed. The row is deleted before
the link is recorded, so a signature works once whatever happens in between.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from api.door import errors
from api.door.keys import ALPHABET
from api.door.moments import moment
from api.process.service import Service
from contracts.wallet_challenge import LIFE_US, Challenge, SignatureInvalid, signer_of
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from ledger.beside import wallet_challenges
from projections.runner import Connection

NONCE_LETTERS = 22


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a signature is asked for: `owner` is the account whose text it is, or a name that no
    account has; `statement` is what the wallet shows, the paths say what it is about.
    """

    owner: str
    statement: str
    path: str
    resource: str


def linking(account_id: str) -> Purpose:
    """A wallet is linked to an account."""
    account = f"/v1/accounts/{account_id}"
    statement = "Link this wallet to receive the rewards of your tallystick account."
    return Purpose(account_id, statement, f"{account}/wallets", account)


@dataclass(frozen=True, slots=True)
class Made:
    nonce: str
    message: str
    expires_at_us: int


def make(
    service: Service, connection: Connection, purpose: Purpose, address: str, now_us: int
) -> Made:
    """A new text for this address to sign."""
    nonce = "".join(secrets.choice(ALPHABET) for _ in range(NONCE_LETTERS))
    domain = service.settings.log_origin.partition("/")[0]
    expires_at_us = now_us + LIFE_US
    message = Challenge(
        domain=domain,
        uri=f"https://{domain}{purpose.path}",
        address=address,
        statement=purpose.statement,
        chain_id=service.chain_id,
        nonce=nonce,
        issued_at=moment(now_us),
        expires_at=moment(expires_at_us),
        request_id=nonce,
        resource=f"https://{domain}{purpose.resource}",
    ).text()
    wallet_challenges.keep(
        connection,
        nonce,
        purpose.owner,
        address.lower(),
        message,
        expires_at_us=expires_at_us,
        now_us=now_us,
    )
    return Made(nonce, message, expires_at_us)


def prove(
    service: Service, account_id: str, nonce: str, signature: str, now_us: int
) -> tuple[str, str]:
    """The address that signed, and the text; the challenge is used up.

    Raises Problem: 422 challenge_unknown, signature_invalid; Refused: WALLET_TAKEN.
    """
    with service.connection() as connection:
        found = wallet_challenges.find(connection, nonce, account_id, now_us)
        if found is None:
            raise errors.problem("challenge_unknown")
        address, message = found
        require_signed(address, message, signature)
        treasury = service.settings.treasury_address
        if treasury is not None and address == treasury.lower():
            # The treasury has a leaf of its own: two leaves for one address would stop every root.
            raise Refused(PartiesReason.WALLET_TAKEN, address=address)
        if not wallet_challenges.take(connection, nonce):
            raise errors.problem("challenge_unknown")
    return address, message


def require_signed(address: str, message: str, signature: str) -> None:
    """Raises Problem: 422 signature_invalid, unless the key of this address signed the text."""
    try:
        signer = signer_of(message, signature)
    except SignatureInvalid as invalid:
        raise errors.problem("signature_invalid", str(invalid)) from None
    if signer != address:
        raise errors.problem("signature_invalid", f"signed by {signer}, expected {address}")
