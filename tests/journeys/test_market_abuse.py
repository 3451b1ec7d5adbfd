"""What one party of the market may not do to the others: money, turns and background jobs."""

from __future__ import annotations

from typing import Any

import pytest

from api.door.moments import moment
from api.leasing import watch_timer as lease_watch
from api.market import bid_timer as bid_jobs
from api.market.bids import resource as bids_api
from domain.duration import MINUTE_US, SECOND_US
from domain.jobs.gang import GANG_WAIT_US
from domain.pools import queue as pool_queue
from tests.api.leasing.test_turns import interruptible, watch
from tests.api.leasing.test_work import Told, executor_of
from tests.api.market.test_bidding import (
    MONTH_HOURS,
    Market,
    credits_of,
    listed,
    market,
    spot,
    standing,
    started,
)
from tests.api.pools.test_pools import ask, job, pool, run, state
from tests.scenes.server import Provider, Scene
from tests.scenes.work import accrue_now
from tests.scenes.work import run as work_of

__all__ = ["market", "spot"]


def deny(scene: Scene) -> None:
    """The renter will have nothing to do with the first provider any more."""
    path = f"/v1/accounts/{scene.renter.account_id}/counterparties"
    scene.renter.made(path, {"counterparty_id": scene.owner.account_id, "verdict": "deny"})


def retire(provider: Provider) -> None:
    for step in ("drain", "retire"):
        provider.owner.made(f"/v1/nodes/{provider.node_id}/{step}")


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


def test_a_bidder_whose_node_is_worked_on_is_dropped_and_the_next_bid_wins(market: Market) -> None:
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
    waiting = standing(spot, 1_500_000)
    deny(spot.scene)
    spot.tick()  # no error: it would slow down the round for everybody
    assert spot.lease(waiting["lease_id"])["state"] == "requested"


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


def test_who_lacks_room_and_could_not_pay_the_price_anyway_delays_nobody(scene: Scene) -> None:
    """Once its pool was drained for it, it would be refused for the price."""
    pool_id = pool(scene, scene.provider, gang_patience_seconds=60)
    ask(scene, pool_id)
    cheap = job(scene, pool_id, gpus=2, max_price_per_gpu_hour=credits_of(300_000))
    assert scene.renter.made("/v1/leases", {"job": cheap})["waits_for"] == pool_id
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    later = ask(scene, pool_id)
    run(scene)
    assert state(scene, later["lease_id"]) == "reserved"


def test_a_gang_that_waits_for_more_than_room_delays_nobody(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider, gang_patience_seconds=60)
    cheap = job(scene, pool_id, max_price_per_gpu_hour=credits_of(300_000))
    gang = scene.renter.made("/v1/gangs", {"job": cheap, "members": 2})
    assert gang["state"] == "requested"
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    later = ask(scene, pool_id)
    run(scene)
    assert state(scene, later["lease_id"]) == "reserved"


def test_a_gang_is_told_which_demand_leaves_too_few_nodes(scene: Scene) -> None:
    """Dear enough for one node's two devices, and four are wanted."""
    price = scene.anybody.read(f"/v1/offers/{scene.provider.offer_id}")["price_per_gpu_hour"]
    dearer = scene.anybody.read(f"/v1/offers/{scene.other.offer_id}")["price_per_gpu_hour"]
    assert int(price["units"]) < int(dearer["units"])
    body = {"job": job(scene, None, max_price_per_gpu_hour=price), "members": 4}
    refused = scene.renter.post("/v1/gangs", body).json()
    assert refused["code"] == "no_match"
    told = refused["facts"]
    assert (told["dimension"], told["required"], told["at_most"]) == ("price", price["units"], "2")
    assert "missing" not in told
    scene.lease()
    refused = scene.renter.post("/v1/gangs", {"job": job(scene, None), "members": 4}).json()
    assert (refused["facts"]["dimension"], refused["facts"]["missing"]) == ("free", "room")


def test_a_gang_that_no_nodes_could_ever_serve_is_refused_at_once(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    large = {"pool_id": pool_id, "memory_mib": 200_000}
    body = {"job": scene.job(constraints=large), "members": 2}
    refused = scene.renter.post("/v1/gangs", body)
    assert refused.status_code == 409, refused.text
    told = refused.json()
    assert (told["code"], told["facts"]["dimension"]) == ("match_impossible", "memory")
    assert scene.renter.read("/v1/gangs")["data"] == []


def test_a_gang_whose_nodes_have_gone_for_good_ends_with_the_pool_s_patience(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider, scene.other, gang_patience_seconds=60)
    held = ask(scene, pool_id)
    gang = scene.renter.made("/v1/gangs", {"job": job(scene, pool_id), "members": 4})
    scene.renter.made(f"/v1/leases/{held['lease_id']}/close")
    retire(scene.provider)
    run(scene)
    assert scene.renter.read(f"/v1/gangs/{gang['gang_id']}")["state"] == "requested"
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    run(scene)
    after = scene.renter.read(f"/v1/gangs/{gang['gang_id']}")
    assert (after["state"], after["close_code"]) == ("closed", 5)


def test_a_gang_does_not_wait_for_ever(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    ask(scene, pool_id)
    gang = scene.renter.made("/v1/gangs", {"job": job(scene, pool_id), "members": 2})
    scene.clock.advance(GANG_WAIT_US - 1)  # type: ignore[attr-defined]
    run(scene)
    assert scene.renter.read(f"/v1/gangs/{gang['gang_id']}")["state"] == "requested"
    scene.clock.advance(1)  # type: ignore[attr-defined]
    assert run(scene) > 0
    after = scene.renter.read(f"/v1/gangs/{gang['gang_id']}")
    assert (after["state"], after["close_code"]) == ("closed", 6)
    assert scene.anybody.read(f"/v1/pools/{pool_id}")["waiting"] == 0


def test_one_account_s_requests_leave_the_others_their_turns(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_queue, "LOOKED_AT_MAX", 4)
    monkeypatch.setattr(pool_queue, "LOOKED_AT_OF_ONE_MAX", 2)
    pool_id = pool(scene, scene.provider)
    cheap = job(scene, pool_id, max_price_per_gpu_hour=credits_of(300_000))
    for _ in range(5):
        scene.renter.made("/v1/leases", {"job": cheap})
    other = scene.account()
    scene.deposit(other, 100_000_000)
    mine = ask(scene, pool_id, by=other)
    assert run(scene) == 1
    assert state(scene, mine["lease_id"]) == "reserved"


def test_what_is_due_longest_is_closed_first(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bid_jobs, "DUE_MAX", 1)
    scene = market.scene
    asked = []
    for seconds in (60, 90, 120, 150):
        auction = {"module": "reverse_auction", "closes_in_seconds": seconds}
        asked.append(scene.lease(pricing=auction)["lease_id"])
    market.tick(200 * SECOND_US)
    for number in range(1, 5):
        states = [market.lease(lease_id)["state"] for lease_id in asked]
        assert states == ["settled"] * number + ["requested"] * (4 - number)
        market.tick()


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


def held_by_bids(spot: Market) -> list[str]:
    """Both devices of the first node, at 1.5 credits."""
    low = [standing(spot, 1_500_000)["lease_id"] for _ in range(2)]
    spot.tick()
    for lease_id in low:
        assert started(spot, lease_id)["state"] == "active"
    return low


def states_of(spot: Market, lease_ids: list[str]) -> list[str]:
    return sorted(spot.lease(lease_id)["state"] for lease_id in lease_ids)


def test_a_bid_makes_no_room_on_a_node_that_does_not_meet_the_demands(spot: Market) -> None:
    scene, low = spot.scene, held_by_bids(spot)
    demanding = scene.job(constraints={"capabilities": ["cudnn"]})
    refused = scene.renter.post("/v1/leases", {"job": demanding})
    assert refused.json()["code"] == "no_match"
    higher = {"module": "continuous_bid", "bid": credits_of(1_900_000)}
    waits = scene.renter.made("/v1/leases", {"job": demanding, "pricing": higher})["lease_id"]
    assert spot.tick() == 0
    assert spot.lease(waits)["state"] == "requested"
    assert states_of(spot, low) == ["active", "active"]


@pytest.mark.parametrize("scheduler", ["first_come", "immediate"])
def test_a_lease_on_demand_outranks_standing_bids_in_a_pool_too(
    spot: Market, scheduler: str
) -> None:
    scene, low = spot.scene, held_by_bids(spot)
    pool_id = pool(scene, scene.provider, scheduler=scheduler)
    asked = ask(scene, pool_id)["lease_id"]
    run(scene)
    assert state(scene, asked) == "reserved"
    assert states_of(spot, low) == ["active", "paused"]
    spot.tick()
    assert states_of(spot, low) == ["active", "paused"]


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
