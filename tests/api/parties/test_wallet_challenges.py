"""Wallets: linked by a signature over the server's own text, once, and paid after a delay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contracts.wallet_challenge import SignatureInvalid, signer_of
from tests.scenes.server import Scene
from tests.scenes.wallets import ADDRESSES, KEYS, challenge, link, signed, wallets_of

DAY_US = 24 * 3_600_000_000


def test_the_text_is_an_eip_4361_message(shared: Scene) -> None:
    told = challenge(shared.renter, ADDRESSES[0].lower())
    account = shared.renter.account_id
    assert told["message"].split("\n") == [
        "localhost wants you to sign in with your Ethereum account:",
        ADDRESSES[0],
        "",
        "Link this wallet to receive the rewards of your tallystick account.",
        "",
        f"URI: https://localhost/v1/accounts/{account}/wallets",
        "Version: 1",
        "Chain ID: 131277322940537",
        f"Nonce: {told['nonce']}",
        "Issued At: 2026-11-20T08:02:00.000000Z",
        "Expiration Time: 2026-11-20T08:12:00.000000Z",
        f"Request ID: {told['nonce']}",
        "Resources:",
        f"- https://localhost/v1/accounts/{account}",
    ]


def test_the_first_wallet_and_a_changed_one_are_paid_after_three_days(scene: Scene) -> None:
    """The attack: a stolen key links a wallet where there is none, and is paid at once."""
    clock: Any = scene.clock
    first = link(scene.renter, 0)
    assert first["address"] == ADDRESSES[0].lower()
    assert first["effective_at"] == "2026-11-23T08:02:00.000000Z"
    path = wallets_of(scene.renter)
    assert "paid" not in scene.renter.read(path)
    clock.advance(3 * DAY_US)
    second = link(scene.renter, 1)
    assert second["effective_at"] == "2026-11-26T08:02:00.000000Z"
    assert scene.renter.read(path)["paid"] == ADDRESSES[0].lower()
    clock.advance(3 * DAY_US)
    told = scene.renter.read(path)
    assert told["paid"] == ADDRESSES[1].lower()
    assert [one["address"] for one in told["data"]] == [a.lower() for a in ADDRESSES]
    taken = challenge(scene.stranger, ADDRESSES[0])
    proof = {"nonce": taken["nonce"], "signature": signed(taken["message"], KEYS[0])}
    response = scene.stranger.post(wallets_of(scene.stranger), proof)
    assert (response.status_code, response.json()["code"]) == (409, "wallet_taken")


def test_a_challenge_works_once_for_one_account_and_for_ten_minutes(scene: Scene) -> None:
    clock: Any = scene.clock
    told = challenge(scene.renter, ADDRESSES[0])
    proof = {"nonce": told["nonce"], "signature": signed(told["message"], KEYS[0])}
    foreign = scene.stranger.post(wallets_of(scene.stranger), proof)
    assert (foreign.status_code, foreign.json()["code"]) == (422, "challenge_unknown")
    first = scene.renter.post(wallets_of(scene.renter), proof, key="link")
    assert first.status_code == 201
    again = scene.renter.post(wallets_of(scene.renter), proof)
    assert (again.status_code, again.json()["code"]) == (422, "challenge_unknown")
    replayed = scene.renter.post(wallets_of(scene.renter), proof, key="link")
    assert replayed.json() == first.json()
    late = challenge(scene.renter, ADDRESSES[1])
    clock.advance(600_000_000)
    proof = {"nonce": late["nonce"], "signature": signed(late["message"], KEYS[1])}
    response = scene.renter.post(wallets_of(scene.renter), proof)
    assert (response.status_code, response.json()["code"]) == (422, "challenge_unknown")


def test_the_signature_of_another_wallet_links_nothing_and_spends_nothing(shared: Scene) -> None:
    told = challenge(shared.owner, ADDRESSES[0])
    before = shared.head()
    for signature in (
        signed(told["message"], KEYS[1]),
        signed("another text", KEYS[0]),
        "0x" + "00" * 65,
        "0x" + "ff" * 65,
    ):
        response = shared.owner.post(
            wallets_of(shared.owner), {"nonce": told["nonce"], "signature": signature}
        )
        assert (response.status_code, response.json()["code"]) == (422, "signature_invalid")
    assert shared.head() == before
    proof = {"nonce": told["nonce"], "signature": signed(told["message"], KEYS[0])}
    assert shared.owner.post(wallets_of(shared.owner), proof).status_code == 201


def test_nobody_links_the_treasury_s_own_address(scene: Scene) -> None:
    service = scene.service
    service.settings = replace(service.settings, treasury_address=ADDRESSES[0])
    told = challenge(scene.renter, ADDRESSES[0])
    proof = {"nonce": told["nonce"], "signature": signed(told["message"], KEYS[0])}
    response = scene.renter.post(wallets_of(scene.renter), proof)
    assert (response.status_code, response.json()["code"]) == (409, "wallet_taken")


def test_what_was_signed_is_in_the_log(scene: Scene) -> None:
    link(scene.renter, 0)
    event = scene.renter.read("/v1/audit/events", type="account.wallet_linked.v1")["data"][0]
    body = event["body"]
    assert signer_of(body["message"], body["signature"]) == body["address"]


@pytest.mark.parametrize("signature", ["", "0x", "0x12", "12" * 65, "0x" + "g" * 130])
def test_what_is_no_signature_is_refused(signature: str) -> None:
    with pytest.raises(SignatureInvalid):
        signer_of("text", signature)
