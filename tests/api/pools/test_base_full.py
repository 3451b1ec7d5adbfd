"""C-39, for every way to buy: a project that refuses takes no other provider's node, also when
the nodes of its account are full.
"""

from __future__ import annotations

from typing import Any

import pytest

from api.market.bid_timer import run_bids
from domain.duration import MINUTE_US
from tests.scenes.server import Scene

REFUSE = {"project_id": "train", "overflow": "refuse"}
RENT = {"project_id": "train", "overflow": "rent"}


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def says(scene: Scene, policy: dict[str, str]) -> None:
    scene.owner.made(f"/v1/accounts/{scene.owner.account_id}/projects", policy)


def asked(scene: Scene, **more: Any) -> dict[str, Any]:
    return {"job": scene.job(project_id="train"), **more}


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def tick(scene: Scene, us: int) -> int:
    clock: Any = scene.clock
    clock.advance(us)
    with scene.service.connect() as connection:
        return run_bids(scene.service, connection, clock.now_us())


@pytest.fixture
def full(scene: Scene) -> Scene:
    """The owner's project refuses, and both devices of the owner's node are leased."""
    scene.deposit(scene.owner, 100_000_000)
    scene.deposit(scene.rival, 10_000_000)
    for _ in range(2):
        scene.owner.made("/v1/leases", asked(scene))
    says(scene, REFUSE)
    return scene


def freed(scene: Scene) -> str:
    """Room at home again: the node, after one of the leases there is closed."""
    lease = scene.owner.read("/v1/leases", state="reserved")["data"][0]
    scene.owner.made(f"/v1/leases/{lease['lease_id']}/close")
    return scene.provider.node_id


def test_a_gang_is_refused(full: Scene) -> None:
    body = asked(full, members=2)
    refused = full.owner.post("/v1/gangs", body)
    assert code(refused) == (409, "base_full"), refused.text
    assert refused.json()["facts"]["project_id"] == "train"
    freed(full)
    assert code(full.owner.post("/v1/gangs", body)) == (409, "base_full"), "one place is not two"
    freed(full)
    gang = full.owner.made("/v1/gangs", body)
    leases = full.owner.read("/v1/leases", job_id=gang["job_id"])["data"]
    assert {one["node_id"] for one in leases} == {full.provider.node_id}


def test_a_quote_is_refused_before_it_is_made_and_before_it_is_accepted(full: Scene) -> None:
    says(full, RENT)
    quoted = full.owner.made("/v1/lease-quotes", asked(full))
    assert quoted["node_id"] == full.other.node_id
    says(full, REFUSE)
    accept = f"/v1/leases/{quoted['lease_id']}/accept", {"quote_id": quoted["quote_id"]}
    assert code(full.owner.post(*accept)) == (409, "base_full"), "the policy came in between"
    assert code(full.owner.post("/v1/lease-quotes", asked(full))) == (409, "base_full")
    assert "offered" not in full.owner.made("/v1/quotes", asked(full))
    home = freed(full)
    assert full.owner.made("/v1/lease-quotes", asked(full))["node_id"] == home
    assert full.owner.made("/v1/quotes", asked(full))["offered"]["node_id"] == home


def test_an_auction_takes_no_bid_of_another_provider(full: Scene) -> None:
    auction = {"module": "reverse_auction", "closes_in_seconds": 60}
    lease_id = full.owner.made("/v1/leases", asked(full, pricing=auction))["lease_id"]
    bid = {"offer_id": full.other.offer_id, "price_per_gpu_hour": credits_of(2_000_000)}
    path = f"/v1/auctions/{lease_id}/bids"
    assert code(full.rival.post(path, bid)) == (409, "base_full")
    tick(full, MINUTE_US)
    assert full.owner.read(f"/v1/leases/{lease_id}")["state"] == "settled", "nothing was bid"


def test_an_auction_ends_where_the_policy_came_after_the_bids(full: Scene) -> None:
    """The round of the timer failed at it again and again."""
    says(full, RENT)
    auction = {"module": "reverse_auction", "closes_in_seconds": 60}
    lease_id = full.owner.made("/v1/leases", asked(full, pricing=auction))["lease_id"]
    picked = asked(full, pricing={**auction, "pick": "renter"})
    other_id = full.owner.made("/v1/leases", picked)["lease_id"]
    bid = {"offer_id": full.other.offer_id, "price_per_gpu_hour": credits_of(2_000_000)}
    full.rival.made(f"/v1/auctions/{lease_id}/bids", bid)
    bid_id = full.rival.made(f"/v1/auctions/{other_id}/bids", bid)["bid_id"]
    says(full, REFUSE)
    refused = full.owner.post(f"/v1/auctions/{other_id}/bids/{bid_id}/accept")
    assert code(refused) == (409, "base_full"), refused.text
    tick(full, MINUTE_US)
    lease = full.owner.read(f"/v1/leases/{lease_id}")
    assert (lease["state"], lease.get("node_id")) == ("settled", None)
    (ended,) = full.rival.read(f"/v1/auctions/{lease_id}/bids")["data"]
    assert ended["deposit_state"] == "returned", "the bidder did nothing wrong"


def test_a_standing_bid_waits_for_the_base(full: Scene) -> None:
    offer = {
        "provider_id": full.other.provider_id,
        "node_id": full.other.node_id,
        "settlement": "cash",
        "price_per_gpu_hour": credits_of(4_000_000),
        "fractions": True,
        "terms": {"interruptible": True},
    }
    offer_id = full.rival.made("/v1/offers", offer)["offer_id"]
    floor = {"interruptible_floor": credits_of(1_000_000)}
    full.rival.made(f"/v1/offers/{offer_id}/prices", floor)
    standing = {"module": "continuous_bid", "bid": credits_of(2_000_000)}
    lease_id = full.owner.made("/v1/leases", asked(full, pricing=standing))["lease_id"]
    tick(full, MINUTE_US)
    assert full.owner.read(f"/v1/leases/{lease_id}")["state"] == "requested", "it waits"
    says(full, RENT)
    tick(full, MINUTE_US)
    assert full.owner.read(f"/v1/leases/{lease_id}")["node_id"] == full.other.node_id


def test_a_whole_month_is_refused(full: Scene) -> None:
    """It was told that no node has a GPU free for a month, which was not so."""
    month = {"months": 1, "price_per_gpu_hour": credits_of(1_000_000), "refund_ppm": 0}
    full.rival.made(f"/v1/offers/{full.other.offer_id}/prices", {"reserved": [month]})
    body = asked(full, pricing={"module": "reserved", "months": 1})
    refused = full.owner.post("/v1/leases", body)
    assert code(refused) == (409, "base_full"), refused.text
    says(full, RENT)
    full.deposit(full.owner, 1_000_000_000)
    assert full.owner.made("/v1/leases", body)["node_id"] == full.other.node_id
