"""A text for a wallet to sign (EIP-4361), and who has signed it. Each text works once.

    a session begins with a wallet  =>  its key signed a text made here, ten minutes old at most

Texts are made for wallets to which an account is paid, and for no others.
"""

from __future__ import annotations

import secrets

from api.console.sessions import sessions
from api.door import errors
from api.door.auth import Principal
from api.door.keys import ALPHABET
from api.door.moments import moment
from api.process.service import Service
from contracts.wallet_challenge import LIFE_US, Challenge, SignatureInvalid, signer_of
from ledger.beside import wallet_challenges
from projections.parties.access import ACCESS

STATEMENT = "Sign in to the console of tallystick. It can look at your account and change nothing."
NONCE_LETTERS = 22
FOR = "console"
"""Stands where a text that links a wallet has its account: neither is good for the other."""


def make(service: Service, address: str) -> tuple[str, str]:
    """A nonce, and the text that this wallet is to sign. Raises Problem: 401."""
    now_us = service.clock.now_us()
    nonce = "".join(secrets.choice(ALPHABET) for _ in range(NONCE_LETTERS))
    domain = service.settings.log_origin.partition("/")[0]
    with service.connection() as connection:
        service.follow(connection, [ACCESS])
        sessions.of_wallet(connection, address.lower(), now_us)
        message = Challenge(
            domain=domain,
            uri=f"https://{domain}/sign-in",
            address=address,
            statement=STATEMENT,
            chain_id=service.chain_id,
            nonce=nonce,
            issued_at=moment(now_us),
            expires_at=moment(now_us + LIFE_US),
            request_id=nonce,
            resource=f"https://{domain}/",
        ).text()
        wallet_challenges.keep(
            connection,
            nonce,
            FOR,
            address.lower(),
            message,
            expires_at_us=now_us + LIFE_US,
            now_us=now_us,
        )
    return nonce, message


def prove(service: Service, nonce: str, signature: str) -> tuple[Principal, str]:
    """What the wallet that signed opens, and its address; the text is used up. Raises Problem."""
    now_us = service.clock.now_us()
    with service.connection() as connection:
        found = wallet_challenges.find(connection, nonce, FOR, now_us)
        if found is None or not wallet_challenges.take(connection, nonce):
            raise errors.problem("challenge_unknown")
        address, message = found
        try:
            signer = signer_of(message, signature)
        except SignatureInvalid as invalid:
            raise errors.problem("signature_invalid", str(invalid)) from None
        if signer != address:
            raise errors.problem("signature_invalid", f"signed by {signer}, expected {address}")
        service.follow(connection, [ACCESS])
        return sessions.of_wallet(connection, address, now_us), address
