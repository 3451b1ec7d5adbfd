"""Slashes, adjustments and forfeits on a running service: two people, the books, the next seal."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.chain.payout_leaves import leaves_of
from api.epochs import closing as settlement
from api.epochs.reward_corrections import acceptance
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from domain.epochs.epoch import (
    CloseEpoch,
    CreditRewards,
    MatureRewards,
    OpenEpoch,
    SealEpoch,
    chunks_of,
    rewards_of,
)
from domain.epochs.epoch_file import epoch_file, file_sha256
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_changes import RewardSlashed
from domain.epochs.reward_correction import SLASH, ProposeRewardCorrection, correction_stream
from domain.epochs.reward_terms import NO_TERMS, REWARD_TERMS
from domain.epochs.settlement import Settlement
from domain.money import token
from ledger.bundle.epoch_replay import EpochReplay, executed
from tests.api.governance.test_grants import seen
from tests.domain.scenes.epochs import (
    CUT,
    END_US,
    POLICY,
    START_US,
    WEEK_US,
    nodes_of,
    pin,
    settlement_of,
)
from tests.scenes import chain as chain_scene
from tests.scenes.chain import EMISSION, OWNER
from tests.scenes.governors import ANNA, BORIS, CLEO, Governor, enrol_all, enrolling
from tests.scenes.server import Caller, Scene

HOLDBACK = 2
TERMS = replace(REWARD_TERMS, cap_multiple_ppm=None, forfeit_epochs=1, min_wait_us=0)
UNPAID = "acct_" + "9" * 32


def handle(scene: Scene, *commands: Any) -> None:
    scene.service.ledger.handle(list(commands), key=None, now_us=START_US)


def start(scene: Scene) -> None:
    told = {
        name: getattr(POLICY, name)
        for name in (
            "version",
            "epoch_length_us",
            "segments",
            "hard_cap",
            "compute_ppm",
            "availability_ppm",
            "treasury_ppm",
            "compute_base",
            "effective_from_epoch",
            "by",
            "at_us",
        )
    }
    handle(
        scene,
        PublishPolicy(**told, holdback_epochs=HOLDBACK, rewards=TERMS),
        OpenEpoch(epoch=1, start_us=START_US, at_us=START_US),
    )


def seal(scene: Scene, epoch: int, *accounts: str) -> Settlement:
    """Close, seal and credit an epoch in which these accounts' nodes earned alike."""
    at_us = END_US + (epoch - 1) * WEEK_US
    handle(scene, CloseEpoch(epoch=epoch, pin=pin(0, at_us), by="job", at_us=at_us))
    ledger = scene.service.ledger
    nodes = nodes_of((account_id, 1_000) for account_id in accounts)
    settled = settlement_of(ledger.world(), epoch, CUT, nodes)
    handle(scene, SealEpoch(outcome=settled, file_sha256=file_sha256(settled), at_us=at_us))
    for number, chunk in enumerate(chunks_of(rewards_of(settled)), 1):
        handle(scene, CreditRewards(epoch=epoch, chunk=number, rewards=chunk, at_us=at_us))
    return settled


def mature(scene: Scene, settled: Settlement) -> int:
    at_us = END_US + (settled.epoch - 1 + HOLDBACK) * WEEK_US
    for number, chunk in enumerate(chunks_of(rewards_of(settled)), 1):
        handle(scene, MatureRewards(epoch=settled.epoch, chunk=number, rewards=chunk, at_us=at_us))
    return at_us


def balance(scene: Scene, name: str) -> int:
    return scene.service.ledger.books.balance(name)


def accepted(carrier: Caller, asked: Any, who: Governor) -> Any:
    """What comes of a governor's vote on a correction."""
    path = f"/v1/reward-corrections/{asked['correction_id']}/accept"
    return carrier.post(path, {"vote": who.voting(asked["ballot"])})


def test_two_people_slash_and_adjust_and_what_nobody_can_be_paid_goes_back(scene: Scene) -> None:
    start(scene)
    worker = scene.owner.account_id
    first = seal(scene, 1, worker, UNPAID)
    share, treasury = dict(first.rewards)[worker], dict(first.rewards)["treasury"]
    enrol_all(scene.operator)
    anna = scene.operator

    fine = {"account_id": worker, "amount": {"asset": "TOKEN", "units": "1000"}, "reason": "spoof"}
    asked = anna.made("/v1/epochs/1/slashes", {**fine, "evidence_position": 3})
    path = f"/v1/reward-corrections/{asked['correction_id']}"
    assert (asked["state"], asked["delta"], asked["evidence_position"]) == ("proposed", "-1000", 3)
    one = accepted(anna, asked, ANNA).json()
    assert (one["state"], one["ballot"]["yes"]) == ("proposed", [ANNA.governor_id])
    assert seen(accepted(anna, asked, ANNA)) == (409, "voted_already")
    assert balance(scene, "party:treasury:matured") == 0, "one person slashes nothing"
    done = accepted(anna, asked, BORIS).json()
    assert (done["state"], done["slashed"]["units"], done["adjusted"]) == ("accepted", "1000", "0")
    assert accepted(anna, asked, BORIS).json()["slashed"]["units"] == "1000", "once"
    assert balance(scene, "party:treasury:matured") == 1_000
    assert balance(scene, f"party:{worker}:unmatured") == share - 1_000
    wrong = {**fine, "amount": {"asset": "CREDIT", "units": "1"}}
    assert seen(anna.post("/v1/epochs/1/slashes", wrong)) == (422, "amount_out_of_range")

    # More is asked back than is unmatured: the rest comes out of what epoch 2 pays.
    back = {"account_id": worker, "delta": str(-share - 500), "reason": "was never there"}
    owed = anna.made("/v1/epochs/1/adjustments", back)
    accepted(anna, owed, ANNA)
    told = accepted(anna, owed, BORIS).json()
    assert (told["slashed"]["units"], told["adjusted"], told["adjusted_epoch"]) == (
        str(share - 1_000),
        "-1500",
        2,
    )
    given = {"account_id": scene.renter.account_id, "delta": "700", "reason": "late usage"}
    late = anna.made("/v1/epochs/1/adjustments", given)
    accepted(anna, late, ANNA)
    accepted(anna, late, CLEO)
    listed = anna.read("/v1/reward-corrections")["data"]
    assert [one["kind"] for one in listed] == ["slash", "adjustment", "adjustment"]
    assert anna.read(path)["accepted_by"] == done["accepted_by"]
    rewards = scene.anybody.read("/v1/epochs/1/rewards")["data"]
    assert [one.get("slashed", {}).get("units") for one in rewards] == [
        str(share) if one["account_id"] == worker else None for one in rewards
    ]

    settled = seal(scene, 2, worker, UNPAID)
    assert dict(settled.rewards)[scene.renter.account_id] == 700
    assert dict(settled.rewards)[worker] == dict(settled.rewards)[UNPAID] - 1_500
    assert settled.adjustments == ()

    # Epoch 1 matures: nothing is left for the worker, and UNPAID has no wallet for an epoch.
    at_us = mature(scene, first)
    assert balance(scene, f"party:{worker}:matured") == 0
    assert balance(scene, "party:treasury:matured") == treasury + share
    ledger = scene.service.ledger
    with scene.service.connect() as connection:
        assert settlement.forfeit_rewards(ledger, connection, at_us + WEEK_US - 1) == 0
        carry = balance(scene, "pool:compute:carry")
        assert settlement.forfeit_rewards(ledger, connection, at_us + WEEK_US) == 1
        assert settlement.forfeit_rewards(ledger, connection, at_us + WEEK_US) == 0, "once"
        unpaid = dict(first.rewards)[UNPAID]
        assert balance(scene, f"party:{UNPAID}:matured") == 0
        assert balance(scene, "pool:compute:carry") == carry + unpaid
    third = seal(scene, 3, worker)
    assert third.cut.openings.compute_carry == carry + unpaid
    assert balance(scene, "pool:compute:carry") == third.compute_carry
    assert ledger.books.books_balanced()

    files = {one.epoch: epoch_file(one) for one in (first, settled, third)}
    assert replayed(scene, files) == []
    tampered = replayed(scene, files, lambda fact: replace(fact, amount=token(share * 2)))
    assert any(f"slashed {share * 2} of {worker}" in one for one in tampered), tampered


def replayed(scene: Scene, files: dict[int, bytes], change: Any = None) -> list[str]:
    """What executing the log again finds wrong with it, its slashes changed first."""
    replay, found = EpochReplay(lambda epoch: executed(epoch, files.get(epoch))), list[str]()
    for recorded in scene.service.ledger.market.read_facts(0, 10_000):
        is_changed = change is not None and isinstance(recorded.fact, RewardSlashed)
        fact = change(recorded.fact) if is_changed else recorded.fact
        found += replay.take(recorded.position, fact)
    return [one for one in found if " cut " not in one]


@pytest.fixture(scope="module")
def chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with chain_scene.deployed() as made:
        yield made


def test_a_slash_and_a_forfeit_are_in_the_leaves_and_in_what_is_sealed_next(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> None:
    """The owner earns, is slashed by half, and links a wallet only after it has forfeited."""
    with chain_scene.scene(database, chain, tmp_path) as scene:
        scene.found(holdback_epochs=1, rewards=replace(NO_TERMS, forfeit_epochs=1))
        scene.buy(100)
        scene.jobs().step(scene.now_us)
        scene.lease("a", "burn", 3_600)
        _end(scene, 1)
        earned = scene.balance(f"party:{OWNER}:unmatured")
        half, correction = earned // 2, "correction_" + "1" * 32
        scene.handle(enrolling(ANNA, scene.now_us))
        scene.handle(
            ProposeRewardCorrection(
                correction_id=correction,
                kind=SLASH,
                epoch=1,
                account_id=OWNER,
                delta=-half,
                reason="half of it was spoofed",
                evidence_position=None,
                by="mem_a",
                at_us=scene.now_us,
            )
        )
        subject = scene.ledger.world().state(correction_stream(correction)).ballot()[0]
        by: dict[str, Any] = {"key_id": "key_b", "by": "mem_b", "at_us": scene.now_us}
        scene.handle(acceptance(scene.ledger, correction, ANNA.vote(subject), **by))
        _end(scene, 2)
        assert scene.balance(f"party:{OWNER}:matured") == earned - half
        scene.travel(chain_scene.DAY_S)
        forfeits = settlement.forfeit_rewards(scene.ledger, scene.connection, scene.now_us)
        assert forfeits == 1
        scene.link()
        _end(scene, 3)
        sealed = settlement.epoch_state(scene.ledger, 3).sealed
        assert sealed is not None
        second_seal = settlement.epoch_state(scene.ledger, 2).sealed
        assert second_seal is not None
        carried = second_seal.compute_carry.units + earned - half
        assert sealed.compute_carry_before.units == carried
        assert settlement.settlement_at(scene.ledger, scene.connection, 3).epoch == 3
        leaves = leaves_of(scene.ledger, scene.connection, 1, scene.treasury.address)
        assert leaves is not None, "the root of epoch 1 was taken before anything matured"
        assert leaves.totals == []
        scene.jobs().step(scene.now_us)
        newest = leaves_of(scene.ledger, scene.connection, 2, scene.treasury.address)
        assert newest is not None
        (treasury,) = newest.leaves
        assert treasury.account_id == "treasury"
        assert treasury.total >= EMISSION // 10 + half
        assert scene.ledger.books.books_balanced()


def _end(scene: chain_scene.Scene, epoch: int) -> None:
    scene.end_epoch(epoch)
    scene.jobs().step(scene.now_us)
    assert scene.settle_epochs() == ()
    scene.jobs().step(scene.now_us)
