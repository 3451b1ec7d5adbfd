"""What one party of the market may not do to the others: money, turns and background jobs."""

from __future__ import annotations

from typing import Any

import pytest

from api import bid_jobs, lease_watch
from api.bids import resource as bids_api
from api.models import moment
from tests.api.scene import Scene
from tests.api.test_bidding import (
    MONTH_HOURS,
    SECOND_US,
    Market,
    credits_of,
    listed,
    market,
    spot,
    standing,
)
from tests.api.test_lease_turns import interruptible, watch
from tests.api.test_pools import ask, job, pool, run, state
from tests.api.test_work import Told, executor_of
from tests.api.work import MINUTE_US, accrue_now
from tests.api.work import run as work_of

__all__ = ["market", "spot"]


def deny(scene: Scene) -> None:
    """The renter will have nothing to do with the first provider any more."""
    path = f"/v1/accounts/{scene.renter.account_id}/counterparties"
    scene.renter.made(path, {"counterparty_id": scene.owner.account_id, "verdict": "deny"})


def worked_on(scene: Scene) -> dict[str, Any]:
    """A maintenance from the next second on, for an hour."""
    at = scene.clock.now_us()
    until = moment(at + 60 * MINUTE_US)
    return {"kind": "emergency", "from": moment(at + SECOND_US), "until": until}


def test_a_bidder_that_may_not_win_any_more_is_dropped_and_the_next_bid_wins(
    market: Market,
) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    assert market.bid(lease_id, scene.provider, 2_000_000).status_code == 201
    assert market.bid(lease_id, scene.other, 2_400_000).status_code == 201
    deny(scene)
    market.tick(600 * SECOND_US)
    assert market.lease(lease_id)["node_id"] == scene.other.node_id
    assert market.balances(scene.owner)["bid.cash"] == 0


def test_a_bidder_whose_node_is_worked_on_is_dropped_and_the_next_bid_wins(
    market: Market,
) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    assert market.bid(lease_id, scene.provider, 2_000_000).status_code == 201
    assert market.bid(lease_id, scene.other, 2_400_000).status_code == 201
    scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/maintenances", worked_on(scene))
    market.tick(600 * SECOND_US)
    assert market.lease(lease_id)["node_id"] == scene.other.node_id


def test_a_bid_of_a_node_that_is_worked_on_is_not_accepted_and_the_answer_is_documented(
    market: Market,
) -> None:
    scene = market.scene
    pricing = {"module": "reverse_auction", "pick": "renter"}
    lease_id = scene.lease(pricing=pricing)["lease_id"]
    bid = market.bid(lease_id, scene.provider, 2_000_000).json()
    scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/maintenances", worked_on(scene))
    market.tick(5 * SECOND_US)
    path = f"/v1/auctions/{lease_id}/bids/{bid['bid_id']}/accept"
    assert scene.renter.post(path, {}).json()["code"] == "node_in_maintenance"
    operations = {one.name: one for one in bids_api.operations}
    assert "node_in_maintenance" in operations["accept_bid"].problems


def test_a_standing_bid_that_only_a_denied_provider_could_serve_waits_on(spot: Market) -> None:
    standing(spot, 1_500_000)
    deny(spot.scene)
    spot.tick()  # no error: it would slow down the round for everybody


def test_work_that_ends_does_not_give_back_what_was_prepaid(market: Market) -> None:
    """A renter whose process exits would else have back what an early end keeps."""
    scene = market.scene
    scene.deposit(scene.renter, 2_000_000_000)
    listed(scene.provider, 1_500_000)
    term = {"module": "reserved", "months": 1}
    told = Told(scene, executor_of(scene, scene.provider), pricing=term)
    assert told.answer().status_code == 200
    market.ready(market.lease(told.lease_id))
    clock: Any = scene.clock
    clock.advance(60 * MINUTE_US)
    market.run(market.lease(told.lease_id), 0, 60)
    assert told.ended(exit_code=0).json()["state"] == "active"
    scene.renter.made(f"/v1/leases/{told.lease_id}/close")
    accrue_now(scene, told.lease_id)
    unused = (MONTH_HOURS - 1) * 1_500_000
    kept = unused - unused * 400_000 // 1_000_000
    assert market.balances(scene.renter)["cash"] == 2_100_000_000 - 1_500_000 - kept


def test_who_waits_for_what_nobody_sells_delays_nobody(scene: Scene) -> None:
    """A price that no node has, before everybody else, would close a pool for a day."""
    pool_id = pool(scene, scene.provider, gang_patience_seconds=60)
    cheap = job(scene, pool_id, max_price_per_gpu_hour=credits_of(300_000))
    assert scene.renter.made("/v1/leases", {"job": cheap})["waits_for"] == pool_id
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    later = ask(scene, pool_id)
    run(scene)
    assert state(scene, later["lease_id"]) == "reserved"


def test_a_gang_of_a_suspended_client_ends_and_stops_no_pool(scene: Scene) -> None:
    client = scene.client()
    scene.deposit(client, 100_000_000)
    first, second = pool(scene, scene.provider), pool(scene, scene.other)
    held = [ask(scene, pool_id, gpus=2) for pool_id in (first, second)]
    gang = client.made("/v1/gangs", {"job": job(scene, first), "members": 2})
    assert gang["state"] == "requested"
    waits = [ask(scene, pool_id) for pool_id in (first, second)]
    scene.operator.made(f"/v1/clients/{client.account_id}/suspend")
    for lease in held:
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert run(scene) == 2
    assert [state(scene, one["lease_id"]) for one in waits] == ["reserved", "reserved"]
    assert scene.operator.read(f"/v1/gangs/{gang['gang_id']}")["state"] == "closed"


def test_high_bids_that_nobody_pays_keep_no_other_bid_waiting(
    spot: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bid_jobs, "WAITING_MAX", 1)
    poor = standing(spot, 2_000_000, spot.scene.account())["lease_id"]
    mine = standing(spot, 1_500_000)["lease_id"]
    spot.tick()
    assert spot.lease(mine)["state"] == "reserved"
    assert spot.scene.operator.read(f"/v1/leases/{poor}")["state"] == "requested"


def test_who_was_warned_keeps_nobody_else_from_the_warning(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_watch, "LEASES_MAX", 1)
    both = [interruptible(scene), interruptible(scene)]
    work_of(scene, both[0], minutes=61)
    for lease in both:
        watch(scene)
        events = scene.renter.read(f"/v1/leases/{lease['lease_id']}/events")["data"]
        assert "lease.funds_end_warned.v1" in {one["type"] for one in events}


def test_a_lease_that_cannot_be_looked_at_keeps_no_other_from_its_turn(scene: Scene) -> None:
    seen: list[str] = []

    def breaks() -> None:
        raise KeyError("a state that nobody foresaw")

    with scene.service.connect() as connection:
        here = lease_watch._Run(scene.service, connection, scene.clock.now_us())
        here.look("lease_bad", breaks)
        here.look("lease_good", lambda: seen.append("lease_good"))
    assert (here.stopped, seen) == (["lease_bad"], ["lease_good"])
