"""A wallet that is linked by the signature of its own key over the server's text."""

from __future__ import annotations

from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct

from tests.scenes.server import Caller

KEYS = [bytes([number]) * 32 for number in (7, 8)]
ADDRESSES = [Account.from_key(key).address for key in KEYS]


def wallets_of(caller: Caller) -> str:
    """The address of the wallets of an account."""
    return f"/v1/accounts/{caller.account_id}/wallets"


def signed(message: str, key: bytes) -> str:
    """The signature of a wallet's key over a text."""
    made = Account.sign_message(encode_defunct(text=message), key)
    return "0x" + bytes(made.signature).hex()


def challenge(caller: Caller, address: str) -> dict[str, Any]:
    """The text that is to be signed with the key of this address."""
    return caller.made(f"{wallets_of(caller)}/challenge", {"address": address})


def link(caller: Caller, index: int) -> dict[str, Any]:
    """Link one of `ADDRESSES` to the caller's account."""
    told = challenge(caller, ADDRESSES[index])
    proof = {"nonce": told["nonce"], "signature": signed(told["message"], KEYS[index])}
    return caller.made(wallets_of(caller), proof)
