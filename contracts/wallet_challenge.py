"""Proof that somebody holds a wallet: an EIP-4361 text, and who signed it.

    recovered(text, signature) == address     and nothing else links a wallet

Only the text's making and the recovery are here. The server keeps its own text and compares by
nonce, so nothing that a client sends is ever parsed. Contract wallets (ERC-1271) are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NONCE_PATTERN = re.compile(r"[0-9A-Za-z]{22}")
LIFE_US = 600_000_000
"""A challenge is good for ten minutes."""
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")


class SignatureInvalid(Exception):
    """The signature is not of the form of one, or no key can have made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What a wallet is asked to sign. Times are RFC 3339 texts, the address in any case."""

    domain: str
    uri: str
    address: str
    statement: str
    chain_id: int
    nonce: str
    issued_at: str
    expires_at: str
    request_id: str
    resource: str

    def text(self) -> str:
        """The EIP-4361 message; the address with its EIP-55 checksum."""
        from eth_utils.address import to_checksum_address  # takes long to import

        assert NONCE_PATTERN.fullmatch(self.nonce), self.nonce
        assert "\n" not in self.statement, self.statement
        return (
            f"{self.domain} wants you to sign in with your Ethereum account:\n"
            f"{to_checksum_address(self.address)}\n\n"
            f"{self.statement}\n\n"
            f"URI: {self.uri}\n"
            "Version: 1\n"
            f"Chain ID: {self.chain_id}\n"
            f"Nonce: {self.nonce}\n"
            f"Issued At: {self.issued_at}\n"
            f"Expiration Time: {self.expires_at}\n"
            f"Request ID: {self.request_id}\n"
            "Resources:\n"
            f"- {self.resource}"
        )


def signer_of(text: str, signature: str) -> str:
    """The lower-case address whose key signed this text (EIP-191). Raises SignatureInvalid."""
    if _SIGNATURE.fullmatch(signature) is None:
        raise SignatureInvalid("65 bytes in hex are needed")
    from eth_account import Account  # takes a second to import
    from eth_account.messages import encode_defunct

    try:
        found = Account.recover_message(encode_defunct(text=text), signature=signature)
    except Exception as error:
        # The library raises half a dozen kinds for bytes that no key can have made.
        raise SignatureInvalid(str(error)[:200]) from error
    return str(found).lower()
