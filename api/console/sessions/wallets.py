"""A text for a wallet to sign in with (EIP-4361), and who has signed it. Each text is tried once.

    a session begins with a wallet  =>  its key signed a text made here, ten minutes old at most

Texts are made for wallets to which an account is paid, and for no others.
"""

from __future__ import annotations

from api.console.sessions import sessions
from api.door import errors
from api.door.auth import Principal
from api.parties import wallet_challenges as challenges
from api.parties.wallet_challenges import Made, Purpose
from api.process.service import Service
from ledger.beside import wallet_challenges
from projections.parties.access import ACCESS

STATEMENT = "Sign in to the console of tallystick. It can look at your account and change nothing."
SIGNING_IN = Purpose("console", STATEMENT, "/sign-in", "/")
"""No account is called so: a text that links a wallet is not good for this, nor the other way."""


def make(service: Service, address: str) -> Made:
    """The text that this wallet is to sign. Raises Problem: 401."""
    now_us = service.clock.now_us()
    with service.connection() as connection:
        service.follow(connection, [ACCESS])
        sessions.of_wallet(connection, address.lower(), now_us)
        return challenges.make(service, connection, SIGNING_IN, address, now_us)


def prove(service: Service, nonce: str, signature: str) -> tuple[Principal, str]:
    """What the wallet that signed opens, and its address; the text is used up. Raises Problem."""
    now_us = service.clock.now_us()
    with service.connection() as connection:
        found = wallet_challenges.find(connection, nonce, SIGNING_IN.owner, now_us)
        if found is None or not wallet_challenges.take(connection, nonce):
            raise errors.problem("challenge_unknown")
        address, message = found
        challenges.require_signed(address, message, signature)
        service.follow(connection, [ACCESS])
        return sessions.of_wallet(connection, address, now_us), address
