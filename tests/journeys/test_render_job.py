"""A render job as RNP-005 has it, from its client to the reward: a client burns TOKEN for credits,
its job is cut into parts, nodes are chosen and say what they used, scores follow, and the owner is
paid in TOKEN that is minted for it. REST, commands, a real EVM, under production's settings.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.chain.timer import account_ref
from contracts.chain import Chain
from contracts.outbox import State
from contracts.tally import Tally
from domain.duration import DAY_US, HOUR_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.money import token
from tests.api.parties.test_client_revenue import TARIFF
from tests.contracts import stage
from tests.scenes import chain as chain_scene
from tests.scenes import wallets
from tests.scenes.chain import CAP, EMISSION, START_US, TIMELOCK_S
from tests.scenes.desk import Desk
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, send, used

MODEL = "NVIDIA A100-PCIE-80GB"
TOKENS = 100
PRICE = 2_000_000
MINUTES = 30
GB = 10**9
PER_GB = 10_000
PER_GB_PRICE = {"asset": "CREDIT", "units": str(PER_GB)}
METERS = [{"meter": "network", "price": PER_GB_PRICE, "per": str(GB)}]
SPLIT = {
    "shares": [
        {"bucket": "provider", "share_ppm": 350_000},
        {"bucket": "platform", "share_ppm": 150_000},
    ],
    "residual": "burn",
}
"""The client has no share: who is paid of its own charge earns nobody a reward (decision 0045)."""


@pytest.fixture
def chain(scene: Scene) -> Generator[chain_scene.Scene, None, None]:
    """The contracts on an EVM, beside the market's own ledger."""
    service = scene.service
    with chain_scene.deployed() as (devnet, deployment), service.connect() as connection:
        node = Chain(devnet.w3)
        played = stage.Stage(devnet, node, Tally(node, deployment), stage.wallets(devnet))
        made = chain_scene.Scene(
            service.ledger, service.conninfo, connection, devnet, played, service.settings.data_dir
        )
        yield made
        for jobs in made.jobs_made:
            jobs.close()


def founded(scene: Scene, chain: chain_scene.Scene) -> None:
    """A policy by what was burned, and its first epoch: what an operator's command does."""
    by: dict[str, Any] = {"by": "operator", "at_us": scene.clock.now_us()}
    policy = PublishPolicy(
        version=1,
        epoch_length_us=DAY_US,
        segments=(EmissionSegment(1, 10, 10 * EMISSION),),
        hard_cap=token(100 * CAP),
        compute_ppm=700_000,
        availability_ppm=200_000,
        treasury_ppm=100_000,
        compute_base="burned_value",
        holdback_epochs=0,
        effective_from_epoch=1,
        rewards=None,
        **by,
    )
    chain.handle(policy, OpenEpoch(epoch=1, start_us=START_US, at_us=scene.clock.now_us()))


def follow(scene: Scene, chain: chain_scene.Scene) -> None:
    """The market's clock is at least at the chain's, and the chain is read up to now."""
    clock: Any = scene.clock
    clock.move_to(max(chain.now_us, scene.clock.now_us()))
    chain.jobs().step(scene.clock.now_us())


def worked(desk: Desk, parts: list[dict[str, Any]], by: Any, first: int) -> None:
    """The node starts these parts, signs half an hour of each, and they end well."""
    scene, provider = desk.scene, desk.scene.provider
    node = f"/v1/nodes/{provider.node_id}/assignments"
    leases = [by.read(f"/v1/leases/{one['lease_id']}") for one in parts]
    for lease in leases:
        provider.node.made(f"{node}/{lease['lease_id']}/ready")
    desk.pass_time(MINUTES * MINUTE_US)
    moved = {"received_bytes": GB, "sent_bytes": 0}
    body = used(provider, *leases, first=first, minutes=MINUTES, **moved)
    assert send(scene, provider, body).status_code == 200
    for lease in leases:
        by.made(f"/v1/leases/{lease['lease_id']}/close", {"code": 0})


def test_a_render_job_from_its_client_to_the_reward(
    scene: Scene, chain: chain_scene.Scene, tmp_path: Path
) -> None:
    desk, owner, operator = Desk(scene, tmp_path), scene.owner, scene.operator
    clock: Any = scene.clock
    wallets.link(owner, 0)
    operator.made("/v1/tariffs", {**TARIFF, "split": SPLIT, "meters": METERS})
    clock.move_to(START_US)
    founded(scene, chain)
    scene.provider.offer(PRICE, settlement="burn")

    # A client is registered, connects with a key of its own, and burns TOKEN for its credits.
    account = scene.account(kind="client")
    desk.told(operator, "client", "register", account.account_id)
    beam = scene.instance(account, "eu")
    chain.buy(TOKENS, account_ref(account.account_id))
    follow(scene, chain)
    clock.move_to(START_US + MINUTE_US)
    bought = TOKENS * stage.PRICE
    (balance,) = account.read(f"/v1/accounts/{account.account_id}/balances")["data"]
    assert (balance["part"], balance["balance"]["units"]) == ("burned", str(bought))

    # Its job says what it needs of a node, and is cut into three parts; a node has two GPUs.
    maxima = [{"meter": "network", "amount": {"asset": "CREDIT", "units": "1000000"}}]
    job = scene.job(
        models=[MODEL],
        plan={"chunks": 3},
        constraints={
            "min_reputation_ppm": 500_000,
            "accept_provisional": True,
            "rank": "best_score",
            "weights": {"reputation": 600_000, "locality": 200_000, "free_peers": 200_000},
        },
        meter_maxima=maxima,
        project_id="film",
        end_user_ref="artist-7",
    )
    job_id = beam.made("/v1/jobs", job)["job_id"]
    assert desk.timers("plans") == {"plans": 2}
    (match, _) = beam.read(f"/v1/jobs/{job_id}/explain")["matches"]
    assert (match["recomputed"], match["differences"]) == (True, [])
    (chosen,) = match["candidates"]
    before = scene.anybody.read(f"/v1/nodes/{scene.provider.node_id}/reputation")["score_ppm"]
    assert chosen["node_id"] == scene.provider.node_id
    assert {"reputation", "locality", "free_peers"} <= set(chosen["factors_ppm"])
    first = (clock.now_us() - NOW_US) // MINUTE_US
    worked(desk, beam.read(f"/v1/jobs/{job_id}/parts")["data"], beam, first)
    assert desk.timers("plans") == {"plans": 1}
    third = [
        one for one in beam.read(f"/v1/jobs/{job_id}/parts")["data"] if one["state"] == "reserved"
    ]
    worked(desk, third, beam, first + MINUTES)
    assert beam.read(f"/v1/jobs/{job_id}")["state"] == "completed"
    desk.pass_time(HOUR_US)
    desk.timers("accrual", "resources")

    # Its score has risen by what all may read, and count again.
    node = f"/v1/nodes/{scene.provider.node_id}/reputation"
    after = scene.anybody.read(node)
    assert (after["good"], after["total"]) == (3, 3)
    assert after["score_ppm"] > before
    told = [one["input"] for one in scene.anybody.read(f"{node}/evidence")["data"]]
    assert sorted(told) == ["completion"] * 3 + ["responsiveness"] * 3

    # The bill: to the unit the three parts and what they moved, under its project and end user.
    parts = beam.read(f"/v1/jobs/{job_id}/parts")["data"]
    each, moved = PRICE * MINUTES // 60, MINUTES * PER_GB
    for one in parts:
        lease = f"/v1/leases/{one['lease_id']}"
        assert beam.read(lease)["charge"]["units"] == str(each)
        (meter,) = beam.read(f"{lease}/resources")["resources"]
        assert (meter["meter"], meter["charge"]["units"]) == ("network", str(moved))
    assert beam.read(f"/v1/jobs/{job_id}/cost")["charge"]["units"] == str(3 * each)
    bill = desk.told(account, "statement", "--kind", "usage")["lines"]
    assert [int(one["movement"]["units"]) for one in bill] == [-each] * 3
    assert {(one["project_id"], one["end_user_ref"]) for one in bill} == {("film", "artist-7")}

    # The epoch ends: emission is minted against the burn, and the owner's wallet claims its part.
    chain.end_epoch(1)
    follow(scene, chain)
    assert chain.settle_epochs() == ()
    reward = EMISSION * 7 // 10
    why = desk.told(owner, "epoch", "explain", 1, scene.provider.node_id)
    (use,) = why["uses"]
    assert (use["source"], int(use["burned"])) == ("burned", 3 * (each + moved)), (
        "one stream, bill and reward"
    )
    assert int(why["compute"]["paid"]["units"]) == reward

    follow(scene, chain)
    chain.travel(TIMELOCK_S)
    follow(scene, chain)
    assert chain.claim(1, wallets.ADDRESSES[0]).state is State.FINAL
    assert chain.tally.balance(wallets.ADDRESSES[0]) == reward
    follow(scene, chain)
    assert chain.balance(f"party:{owner.account_id}:matured") == 0
    desk.timers("resources")
    (balance,) = account.read(f"/v1/accounts/{account.account_id}/balances")["data"]
    assert balance["balance"]["units"] == str(bought - 3 * (each + moved)), "retired, not paid out"
    assert desk.audited()["verified"]
