"""Epochs, rewards and payout files as everybody reads them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from api.epochs.payout_files import payout_path
from contracts.manifest import decode, encode
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from tests.contracts.stage import account
from tests.contracts.test_manifest import payout
from tests.domain.scenes.epochs import POLICY, START_US, WEEK_US
from tests.scenes.server import Scene


@pytest.fixture(scope="module")
def epochs(shared: Scene) -> Scene:
    """The market with a policy, its first epoch, and a payout file put where the jobs put it."""
    policy = {each.name: getattr(POLICY, each.name) for each in fields(POLICY)}
    commands = [PublishPolicy(**policy), OpenEpoch(epoch=1, start_us=START_US, at_us=START_US)]
    shared.service.ledger.handle(commands, key=None, now_us=START_US)
    path = payout_path(shared.service.settings.data_dir, 1)
    path.parent.mkdir()
    path.write_bytes(encode(payout()))
    return shared


def test_an_epoch_is_read_and_listed(epochs: Scene) -> None:
    told = epochs.anybody.read("/v1/epochs/1")
    assert (told["epoch"], told["state"], told["policy_version"]) == (1, "open", 1)
    assert "emission" not in told
    assert [one["epoch"] for one in epochs.anybody.read("/v1/epochs")["data"]] == [1]
    assert epochs.anybody.read("/v1/epochs/1/rewards")["data"] == []
    missing = epochs.anybody.get("/v1/epochs/2")
    assert (missing.status_code, missing.json()["code"]) == (404, "epoch_unknown")
    assert WEEK_US > 0


def test_the_open_epoch_is_previewed(epochs: Scene) -> None:
    told = epochs.anybody.read("/v1/epochs/preview")
    assert (told["epoch"], told["is_final"], told["weights"]) == (1, False, [])


def test_the_payout_file_is_served_byte_for_byte_and_kept_by_nobody_before_it_is_accepted(
    epochs: Scene,
) -> None:
    response = epochs.anybody.get("/v1/epochs/1/payout.json")
    assert response.content == encode(payout())
    assert response.headers["Cache-Control"] == "private, no-store"
    assert decode(response.content).root == payout().root


def test_a_wallet_gets_the_proof_of_its_total(epochs: Scene) -> None:
    address = account(2)
    told: dict[str, Any] = epochs.anybody.read("/v1/payouts/1/proof", address=address)
    leaf = payout().leaf(address)
    assert leaf is not None
    assert told["total"]["units"] == str(leaf.total)
    assert told["proof"] == ["0x" + part.hex() for part in leaf.proof]
    nobody = epochs.anybody.get("/v1/payouts/1/proof", address=account(99))
    assert (nobody.status_code, nobody.json()["code"]) == (404, "wallet_unknown")
    none = epochs.anybody.get("/v1/payouts/7/proof", address=address)
    assert (none.status_code, none.json()["code"]) == (404, "not_found")


def test_an_account_without_rewards_has_none(epochs: Scene) -> None:
    told = epochs.renter.read(f"/v1/accounts/{epochs.renter.account_id}/rewards")
    assert [told[part]["units"] for part in ("credited", "matured", "claimed")] == ["0", "0", "0"]
    assert epochs.renter.read("/v1/payouts/claims")["data"] == []
    assert epochs.anybody.read("/v1/payouts")["data"] == []
