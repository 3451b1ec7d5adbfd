"""Who signs: the port, a key in an encrypted file, and a bare key for devnets.

Everybody knows the keys of the development chains. A signer holding one refuses every other chain
id when it is made, so such a key can never pay on a chain where tokens are worth something.
A signature from anywhere is checked before it is stored: `check_signed` recovers the sender and
compares every field with what was asked for. The outbox decides what to sign; this file does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from contracts.chain_ids import DEVNET_CHAIN_IDS
from contracts.payout_tree import keccak256

_EMBEDDED_ACCOUNTS = 10
_ANVIL_ADDRESSES = frozenset(
    {
        "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
        "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
        "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
        "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65",
        "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
        "0x976ea74026e726554db657fa54763abd0c3a0aa9",
        "0x14dc79964da2c08b23698b3d3cc7ca32193d9955",
        "0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
        "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
    }
)


class PublicKeyRefused(Exception):
    """This key is published with a development chain; it signs for no other chain."""


class SignatureMismatch(Exception):
    """The signed bytes are not what was asked for, or another key signed them."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A transaction ready to send: its bytes and the hash they will have on chain."""

    raw: bytes
    hash: str


class Signer(Protocol):
    """Holds one key for one role. The proposer is never the guardian."""

    @property
    def address(self) -> str:
        """Checksummed address of the key."""
        ...

    def sign_transaction(self, transaction: Mapping[str, Any]) -> bytes:
        """The raw bytes of a type-2 transaction; deterministic (RFC 6979)."""
        ...

    def sign_typed_data(self, full_message: Mapping[str, Any]) -> bytes:
        """65 bytes over an EIP-712 message."""
        ...


class LocalKeySigner:
    """A key in memory: for devnets and tests, and what an unlocked keystore becomes."""

    def __init__(self, key: bytes, chain_id: int) -> None:
        """Raises PublicKeyRefused for a development key on a chain that is no devnet."""
        self._account = Account.from_key(key)
        self._chain_id = chain_id
        refuse_public_key(self._account.address, chain_id)

    @property
    def address(self) -> str:
        return str(self._account.address)

    def sign_transaction(self, transaction: Mapping[str, Any]) -> bytes:
        assert transaction["chainId"] == self._chain_id, "this key signs for another chain"
        return bytes(self._account.sign_transaction(dict(transaction)).raw_transaction)

    def sign_typed_data(self, full_message: Mapping[str, Any]) -> bytes:
        assert int(full_message["domain"]["chainId"]) == self._chain_id
        signable = encode_typed_data(full_message=dict(full_message))
        return bytes(self._account.sign_message(signable).signature)

    def sign_text(self, text: str) -> bytes:
        """The wallet's signature of a text (EIP-191), as for a wallet challenge."""
        return bytes(self._account.sign_message(encode_defunct(text=text)).signature)


class KeystoreSigner(LocalKeySigner):
    """A key in an encrypted JSON file (scrypt); unlocking takes half a second, once."""

    def __init__(self, path: Path, password: str, chain_id: int) -> None:
        """Raises ValueError for a wrong password, OSError when the file cannot be read."""
        super().__init__(bytes(Account.decrypt(path.read_text(), password)), chain_id)


def embedded_keys() -> list[bytes]:
    """The keys of the embedded chain's accounts, which own its coins: 1 to 10, known to all."""
    return [number.to_bytes(32, "big") for number in range(1, _EMBEDDED_ACCOUNTS + 1)]


def refuse_public_key(address: str, chain_id: int) -> None:
    """Raises PublicKeyRefused unless the key is private or the chain is a devnet."""
    if chain_id in DEVNET_CHAIN_IDS:
        return
    published = _ANVIL_ADDRESSES | {_address(key).lower() for key in embedded_keys()}
    if address.lower() in published:
        raise PublicKeyRefused(f"{address} on chain {chain_id}")


def check_signed(raw: bytes, wanted: Mapping[str, Any], sender: str) -> Signed:
    """The hash of signed bytes, once they are known to be the wanted transaction of that sender.

    Raises SignatureMismatch naming the first field that differs.
    """
    found = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    for name, value in wanted.items():
        if _plain(found.get(name)) != _plain(value):
            raise SignatureMismatch(f"{name}: {found.get(name)!r}, expected {value!r}")
    by = Account.recover_transaction(HexBytes(raw))
    if by.lower() != sender.lower():
        raise SignatureMismatch(f"signed by {by}, expected {sender}")
    return Signed(raw, "0x" + keccak256(raw).hex())


def _address(key: bytes) -> str:
    return str(Account.from_key(key).address)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return bytes.fromhex(value.removeprefix("0x"))
    return bytes(value) if isinstance(value, bytes | bytearray) else value
