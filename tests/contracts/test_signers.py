"""Keys: published ones stay on devnets, and a signature is believed only after a look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from contracts.chain_ids import DEVNET_CHAIN_IDS, EMBEDDED_CHAIN_ID
from contracts.signers import (
    KeystoreSigner,
    LocalKeySigner,
    PublicKeyRefused,
    SignatureMismatch,
    check_signed,
    embedded_keys,
    refuse_public_key,
)

KEY = b"\x5a" * 32
ANVIL_PHRASE = "test test test test test test test test test test test junk"


def transaction(**other: Any) -> dict[str, Any]:
    plain = {
        "type": 2,
        "chainId": 1,
        "nonce": 3,
        "to": "0x000000000000000000000000000000000000dEaD",
        "value": 0,
        "data": b"\x01\x02",
        "gas": 60_000,
        "maxFeePerGas": 30,
        "maxPriorityFeePerGas": 2,
    }
    return plain | other


def test_published_keys_sign_on_devnets_only() -> None:
    Account.enable_unaudited_hdwallet_features()
    paths = [f"m/44'/60'/0'/0/{number}" for number in range(10)]
    phrase_keys = [
        bytes(Account.from_mnemonic(ANVIL_PHRASE, account_path=path).key) for path in paths
    ]
    for key in [*embedded_keys(), *phrase_keys]:
        for chain_id in DEVNET_CHAIN_IDS:
            LocalKeySigner(key, chain_id)
        with pytest.raises(PublicKeyRefused):
            LocalKeySigner(key, 1)


def test_a_private_key_may_sign_anywhere() -> None:
    refuse_public_key(LocalKeySigner(KEY, 1).address, 1)


def test_the_same_transaction_is_signed_to_the_same_bytes() -> None:
    signer = LocalKeySigner(KEY, 1)
    raw = signer.sign_transaction(transaction())
    assert raw == LocalKeySigner(KEY, 1).sign_transaction(transaction())
    signed = check_signed(raw, transaction(), signer.address)
    assert (
        signed.hash
        == "0x" + bytes(Account.from_key(KEY).sign_transaction(transaction()).hash).hex()
    )


def test_a_keystore_unlocks_with_its_password(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(json.dumps(Account.encrypt(KEY, "right", iterations=2)))
    assert KeystoreSigner(path, "right", 1).address == LocalKeySigner(KEY, 1).address
    with pytest.raises(ValueError, match="MAC"):
        KeystoreSigner(path, "wrong", 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nonce", 4),
        ("gas", 60_001),
        ("value", 1),
        ("data", b"\x01"),
        ("maxFeePerGas", 31),
        ("maxPriorityFeePerGas", 3),
        ("to", "0x000000000000000000000000000000000000bEEF"),
    ],
)
def test_a_signature_over_anything_else_is_not_believed(field: str, value: Any) -> None:
    signer = LocalKeySigner(KEY, 1)
    raw = signer.sign_transaction(transaction(**{field: value}))
    with pytest.raises(SignatureMismatch, match=field):
        check_signed(raw, transaction(), signer.address)


def test_a_signature_of_another_key_is_not_believed() -> None:
    raw = LocalKeySigner(b"\x5b" * 32, 1).sign_transaction(transaction())
    with pytest.raises(SignatureMismatch, match="signed by"):
        check_signed(raw, transaction(), LocalKeySigner(KEY, 1).address)


def test_a_signer_stays_on_its_chain() -> None:
    with pytest.raises(AssertionError):
        LocalKeySigner(KEY, EMBEDDED_CHAIN_ID).sign_transaction(transaction())
