"""Leases that are priced otherwise, over HTTP and on PostgreSQL: from request to the last unit."""

from __future__ import annotations

from typing import Any

import pytest

from api.market.bid_timer import run_bids
from domain.duration import HOUR_US, MINUTE_US
from tests.scenes.server import NOW_US, Caller, Provider, Scene
from tests.scenes.work import accrue_now, reported, send

SECOND_US = 1_000_000


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


class Market:
    """A scene with three providers that can all be bid with, and its jobs."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        third = scene.account()
        self.third = Provider(scene, third, "gamma", "NVIDIA A100-PCIE-80GB", 2_500_000)
        self.providers = (scene.provider, scene.other, self.third)
        for provider in self.providers:
            scene.deposit(provider.owner, 1_000_000)

    def tick(self, us: int = 0) -> int:
        """Let time pass, then what the bidding job does."""
        clock: Any = self.scene.clock
        clock.advance(us)
        with self.scene.service.connect() as connection:
            return run_bids(self.scene.service, connection, clock.now_us())

    def bid(self, lease_id: str, provider: Provider, units: int, **more: Any) -> Any:
        body = {"offer_id": provider.offer_id, "price_per_gpu_hour": credits_of(units), **more}
        return provider.owner.post(f"/v1/auctions/{lease_id}/bids", body)

    def ready(self, lease: dict[str, Any]) -> None:
        node = next(one for one in self.providers if one.node_id == lease["node_id"])
        node.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready")

    def balances(self, whose: Caller) -> dict[str, int]:
        found = whose.read(f"/v1/accounts/{whose.account_id}/balances")["data"]
        return {row["part"]: int(row["balance"]["units"]) for row in found}

    def lease(self, lease_id: str) -> dict[str, Any]:
        return self.scene.renter.read(f"/v1/leases/{lease_id}")

    def run(self, lease: dict[str, Any], first: int, minutes: int) -> None:
        """The lease's node reports these minutes since the scene began."""
        node = next(one for one in self.providers if one.node_id == lease["node_id"])
        sent = send(self.scene, node, reported(node, lease, first=first, minutes=minutes))
        assert sent.status_code == 200, sent.text


@pytest.fixture
def market(scene: Scene) -> Market:
    return Market(scene)


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def test_a_reverse_auction_of_three_providers_runs_from_request_to_settlement(
    market: Market,
) -> None:
    """Design marketplace 4: bids within the cap, deposits, the cheapest wins at its bid."""
    scene = market.scene
    asked = scene.lease(pricing={"module": "reverse_auction", "closes_in_seconds": 60})
    lease_id = asked["lease_id"]
    assert (asked["state"], asked["pricing"], asked["held"]) == (
        "requested",
        "reverse_auction/1",
        credits_of(0),
    )
    (shown,) = scene.owner.read("/v1/auctions")["data"]
    assert (shown["lease_id"], shown["deposit"], shown["bids_max"]) == (
        lease_id,
        credits_of(500_000),
        20,
    )
    prices = (2_600_000, 2_400_000, 2_500_000)
    placed = [
        market.bid(lease_id, provider, price)
        for provider, price in zip(market.providers, prices, strict=True)
    ]
    assert [one.status_code for one in placed] == [201, 201, 201]
    assert market.lease(lease_id)["state"] == "quoted"
    assert [market.balances(p.owner)["bid.cash"] for p in market.providers] == [500_000] * 3
    assert market.tick() == 0, "nothing is due before the closing"
    market.tick(60 * SECOND_US)
    lease = market.lease(lease_id)
    assert (lease["state"], lease["node_id"]) == ("reserved", scene.other.node_id)
    assert lease["price_per_gpu_hour"] == credits_of(2_400_000)
    held = [market.balances(p.owner)["bid.cash"] for p in market.providers]
    assert held == [0, 500_000, 0], "the losers' deposits are back with the reservation"
    market.ready(lease)
    assert market.balances(scene.rival)["bid.cash"] == 0
    assert market.balances(scene.rival)["cash"] == 1_000_000
    clock: Any = scene.clock
    clock.advance(HOUR_US)
    market.run(lease, 1, 60)
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    accrue_now(scene, lease_id)
    settled = market.lease(lease_id)
    assert (settled["state"], settled["charge"]) == ("settled", credits_of(2_400_000))
    assert market.balances(scene.renter)["cash"] == 100_000_000 - 2_400_000
    auction = scene.renter.read(f"/v1/auctions/{lease_id}")
    assert (auction["state"], auction["price_per_gpu_hour"]) == ("awarded", credits_of(2_400_000))
    told = scene.renter.read(f"/v1/auctions/{lease_id}/bids")["data"]
    assert [(one["state"], one["deposit_state"]) for one in told] == [
        ("lost", "returned"),
        ("won", "returned"),
        ("lost", "returned"),
    ]


def test_deposits_are_on_statements_and_are_nobodys_income(market: Market) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    market.bid(lease_id, scene.provider, 2_600_000)
    market.tick(600 * SECOND_US)
    market.tick(0)
    scene.renter.made(f"/v1/leases/{lease_id}/close")
    who = f"/v1/accounts/{scene.owner.account_id}/statements"
    told = scene.owner.read(who)
    kinds = {(one["kind"], one["part"]): one["movement"]["units"] for one in told["kinds"]}
    assert kinds["bid_deposit", "cash"] == "0"
    assert kinds["bid_deposit", "bid.cash"] == "0"
    assert not {kind for kind, _ in kinds} & {"earning", "usage"}


def test_the_renter_accepts_a_bid_of_its_choice_and_nobody_else_may(market: Market) -> None:
    scene = market.scene
    terms = {"module": "reverse_auction", "pick": "renter", "deposit": credits_of(100_000)}
    lease_id = scene.lease(pricing=terms)["lease_id"]
    first = market.bid(lease_id, scene.provider, 2_600_000).json()
    market.bid(lease_id, scene.other, 2_400_000)
    path = f"/v1/auctions/{lease_id}/bids/{first['bid_id']}"
    assert code(scene.stranger.post(f"{path}/accept", {})) == (404, "lease_unknown")
    unknown = scene.renter.post(f"/v1/auctions/{lease_id}/bids/bid_{'0' * 32}/accept", {})
    assert code(unknown) == (404, "bid_unknown")
    told = scene.renter.made(f"{path}/accept")
    assert (told["state"], told["node_id"]) == ("reserved", scene.provider.node_id)
    assert told["price_per_gpu_hour"] == credits_of(2_600_000)
    assert code(market.bid(lease_id, market.third, 2_000_000)) == (409, "auction_state")
    assert market.balances(scene.rival)["bid.cash"] == 0


def test_a_sealed_auction_pays_the_second_price_and_shows_a_bidder_its_own_bid_only(
    market: Market,
) -> None:
    """J-7 over HTTP: procurement VCG as the plug-in example."""
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "second_price", "closes_in_seconds": 60})["lease_id"]
    for provider, price in zip(market.providers, (2_600_000, 2_400_000, 2_500_000), strict=True):
        assert market.bid(lease_id, provider, price).status_code == 201
    path = f"/v1/auctions/{lease_id}/bids"
    assert len(scene.owner.read(path)["data"]) == 1
    assert scene.renter.read(path)["data"] == []
    market.tick(60 * SECOND_US)
    lease = market.lease(lease_id)
    assert lease["node_id"] == scene.other.node_id
    assert lease["price_per_gpu_hour"] == credits_of(2_500_000)
    assert len(scene.renter.read(path)["data"]) == 3
    (match,) = scene.renter.read(f"/v1/jobs/{lease['job_id']}/explain")["matches"]
    assert match["rule"] == "second_price/1"


def test_v_9_a_trade_lies_between_what_either_side_would_do_without(market: Market) -> None:
    """A GPU-hour costs Robinson 2 and Friday 4: at 3 each of them is better off by 1."""
    scene = market.scene
    friday = scene.job(max_price_per_gpu_hour=credits_of(4_000_000))
    pricing = {"module": "second_price", "closes_in_seconds": 60}
    lease_id = scene.lease(job=friday, pricing=pricing)["lease_id"]
    robinson, other, third = market.providers
    assert code(market.bid(lease_id, third, 4_000_001)) == (409, "price_above_cap")
    assert market.bid(lease_id, robinson, 2_000_000).status_code == 201
    assert market.bid(lease_id, other, 3_000_000).status_code == 201
    market.tick(60 * SECOND_US)
    lease = market.lease(lease_id)
    price = int(lease["price_per_gpu_hour"]["units"])
    assert (lease["node_id"], price) == (robinson.node_id, 3_000_000)
    assert (4_000_000 - price, price - 2_000_000) == (1_000_000, 1_000_000)
    alone = scene.lease(job=friday, pricing=pricing)["lease_id"]
    assert market.bid(alone, robinson, 4_000_000).status_code == 201
    market.tick(60 * SECOND_US)
    assert market.lease(alone)["price_per_gpu_hour"] == credits_of(4_000_000), "never above"


def test_a_winner_that_does_not_start_loses_its_deposit_and_the_renter_does_not_earn_it(
    market: Market,
) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction", "closes_in_seconds": 1})[
        "lease_id"
    ]
    market.bid(lease_id, scene.provider, 2_600_000)
    market.tick(SECOND_US)
    clock: Any = scene.clock
    clock.advance(600 * SECOND_US)
    accrue_now(scene, lease_id)
    lease = market.lease(lease_id)
    assert (lease["state"], lease["close_code"]) == ("settled", 10_003)
    assert market.balances(scene.renter)["cash"] == 100_000_000
    assert market.balances(scene.owner) | {"cash": 500_000, "bid.cash": 0} == market.balances(
        scene.owner
    )
    (bid,) = scene.owner.read("/v1/bids")["data"]
    assert (bid["state"], bid["deposit_state"]) == ("won", "forfeited")


def test_bids_that_break_a_rule_are_refused_by_its_name(market: Market) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    provider = scene.provider
    assert code(market.bid(lease_id, provider, 5_000_001)) == (409, "price_above_cap")
    assert code(market.bid(lease_id, provider, 249_999)) == (422, "price_below_usage_fee")
    assert code(market.bid(lease_id, provider, 0)) == (422, "amount_not_positive")
    assert code(market.bid(lease_id, provider, 10**15)) == (422, "amount_out_of_range")
    foreign = {"offer_id": scene.other.offer_id, "price_per_gpu_hour": credits_of(2_000_000)}
    assert code(scene.owner.post(f"/v1/auctions/{lease_id}/bids", foreign)) == (
        404,
        "offer_unknown",
    )
    poor = Provider(scene, scene.account(), "delta", "NVIDIA A100-PCIE-80GB", 2_500_000)
    assert code(market.bid(lease_id, poor, 2_000_000)) == (402, "credit_too_low")
    assert market.bid(lease_id, provider, 2_000_000).status_code == 201
    assert code(market.bid(lease_id, provider, 1_900_000)) == (409, "bid_exists")
    posted = scene.lease()["lease_id"]
    assert code(market.bid(posted, provider, 2_000_000)) == (404, "lease_unknown")


def test_a_withdrawn_bid_returns_its_deposit_and_a_request_nobody_bids_for_ends(
    market: Market,
) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    bid_id = market.bid(lease_id, scene.provider, 2_000_000).json()["bid_id"]
    path = f"/v1/auctions/{lease_id}/bids/{bid_id}/withdraw"
    assert code(scene.rival.post(path, {})) == (404, "bid_unknown")
    assert scene.owner.made(path)["returned"] == credits_of(500_000)
    assert market.balances(scene.owner)["cash"] == 1_000_000
    market.tick(600 * SECOND_US)
    lease = market.lease(lease_id)
    assert (lease["state"], lease["close_code"]) == ("settled", 5)


def test_what_is_no_longer_there_is_dropped_and_the_next_bid_wins(market: Market) -> None:
    scene = market.scene
    lease_id = scene.lease(pricing={"module": "reverse_auction"})["lease_id"]
    market.bid(lease_id, scene.provider, 2_000_000)
    market.bid(lease_id, scene.other, 2_400_000)
    scene.owner.made(f"/v1/offers/{scene.provider.offer_id}/withdraw")
    market.tick(600 * SECOND_US)
    assert market.lease(lease_id)["node_id"] == scene.other.node_id
    (bid,) = scene.owner.read("/v1/bids")["data"]
    assert (bid["state"], bid["deposit_state"]) == ("unavailable", "forfeited")


@pytest.mark.parametrize(
    ("pricing", "expected"),
    [
        ({"module": "dutch"}, (422, "pricing_unknown")),
        ({"module": "reverse_auction", "closes_in_seconds": 0}, (422, "invalid")),
        ({"module": "reverse_auction", "closes_in_seconds": 86_400}, (422, "invalid")),
        ({"module": "reverse_auction", "deposit": credits_of(100_000_001)}, (422, "auction_terms")),
        ({"module": "second_price", "pick": "renter"}, (422, "auction_terms")),
        ({"module": "reverse_auction", "bids_max": 101}, (422, "invalid")),
        ({"module": "continuous_bid"}, (422, "invalid")),
        ({"module": "continuous_bid", "bid": credits_of(10**12)}, (409, "price_above_cap")),
        ({"module": "continuous_bid", "bid": credits_of(0)}, (422, "amount_not_positive")),
        ({"module": "reserved", "months": 2}, (422, "invalid")),
        ({"module": "reserved"}, (422, "invalid")),
        ({"module": "reserved", "months": 1}, (409, "no_match")),
        ({"module": "posted", "months": 1}, (422, "invalid")),
    ],
)
def test_absurd_terms_are_refused_by_their_rule(
    scene: Scene, pricing: dict[str, Any], expected: tuple[int, str]
) -> None:
    asked = scene.renter.post("/v1/leases", {"job": scene.job(), "pricing": pricing})
    assert code(asked) == expected


def test_who_cannot_pay_an_hour_at_the_cap_is_given_no_bids(scene: Scene) -> None:
    body = {"job": scene.job(), "pricing": {"module": "reverse_auction"}}
    assert code(scene.stranger.post("/v1/leases", body)) == (402, "credit_too_low")


# --- standing bids ---------------------------------------------------------------------------


@pytest.fixture
def spot(scene: Scene) -> Market:
    """Every offer lets interruptible leases from 1 credit on; the first node's are all taken."""
    market = Market(scene)
    for provider in market.providers:
        scene_offer = provider.owner.made(
            "/v1/offers",
            {
                "provider_id": provider.provider_id,
                "node_id": provider.node_id,
                "price_per_gpu_hour": credits_of(2_000_000),
                "fractions": True,
                "terms": {"interruptible": True},
            },
        )
        provider.owner.made(f"/v1/offers/{provider.offer_id}/withdraw")
        provider.offer_id = scene_offer["offer_id"]
    first = scene.provider
    first.owner.made(
        f"/v1/offers/{first.offer_id}/prices", {"interruptible_floor": credits_of(1_000_000)}
    )
    return market


def standing(market: Market, units: int, renter: Caller | None = None) -> dict[str, Any]:
    return market.scene.lease(
        renter, pricing={"module": "continuous_bid", "bid": credits_of(units)}
    )


def started(market: Market, lease_id: str, renter: Caller | None = None) -> dict[str, Any]:
    """The lease as it stands, its node said ready if it waits for that."""
    reader = renter or market.scene.renter
    lease = reader.read(f"/v1/leases/{lease_id}")
    if lease["state"] == "reserved":
        market.ready(lease)
        lease = reader.read(f"/v1/leases/{lease_id}")
    return lease


def test_an_outbid_lease_is_paused_resumed_and_billed_for_its_active_windows_only(
    spot: Market,
) -> None:
    """Design marketplace 4, continuous bid: losers are paused, not closed."""
    scene = spot.scene
    clock: Any = scene.clock
    low = [standing(spot, units)["lease_id"] for units in (1_200_000, 1_500_000)]
    assert spot.tick() > 0
    leases = [started(spot, lease_id) for lease_id in low]
    assert [one["state"] for one in leases] == ["active", "active"]
    assert leases[0]["price_per_gpu_hour"] == credits_of(1_200_000)
    clock.advance(30 * MINUTE_US)
    spot.run(leases[0], 0, 30)
    scene.deposit(scene.stranger, 100_000_000)
    high = standing(spot, 2_000_000, scene.stranger)["lease_id"]
    assert spot.tick() > 0
    assert spot.lease(low[0])["state"] == "paused"
    assert spot.lease(low[1])["state"] == "active", "the lowest bid made room"
    bid = scene.renter.read(f"/v1/leases/{low[0]}/bid")
    assert (bid["state"], bid["reason"], bid["lowest_winning"]) == (
        "paused",
        "outbid",
        credits_of(1_500_000),
    )
    winner = started(spot, high, scene.stranger)
    (match,) = scene.stranger.read(f"/v1/jobs/{winner['job_id']}/explain")["matches"]
    assert (match["rule"], match["recomputed"]) == ("lowest_bids/1", True), match["differences"]
    told = [(one["node_id"], one["paused_bid"]) for one in match["candidates"]]
    assert told[0] == (winner["node_id"], credits_of(1_200_000))
    assert match["considered"] == len(told)
    assert winner["device_ids"] == leases[0]["device_ids"]
    (price,) = scene.anybody.read("/v1/market-prices")["data"]
    assert (price["holding"], price["lowest"], price["highest"]) == (
        2,
        credits_of(1_500_000),
        credits_of(2_000_000),
    )
    clock.advance(60 * MINUTE_US)
    scene.stranger.made(f"/v1/leases/{high}/close")
    assert spot.tick() > 0
    assert spot.lease(low[0])["state"] == "active"
    clock.advance(30 * MINUTE_US)
    spot.run(leases[0], 90, 30)
    scene.renter.made(f"/v1/leases/{low[0]}/close")
    accrue_now(scene, low[0])
    accrue_now(scene, low[0])
    accrue_now(scene, low[0])
    settled = spot.lease(low[0])
    assert (settled["state"], settled["charge"]) == ("settled", credits_of(1_200_000))
    assert settled["gpu_us"] == str(HOUR_US), "two half hours; the hour in between is not billed"


def test_equal_bids_keep_the_holder_and_on_demand_outranks_them_all(spot: Market) -> None:
    scene = spot.scene
    low = [standing(spot, 1_500_000)["lease_id"] for _ in range(2)]
    spot.tick()
    for lease_id in low:
        assert started(spot, lease_id)["state"] == "active"
    same = standing(spot, 1_500_000)["lease_id"]
    assert spot.tick() == 0
    assert spot.lease(same)["state"] == "requested"
    wanted = scene.job(models=["NVIDIA A100-PCIE-80GB"])
    taken = [scene.lease(job=wanted) for _ in range(2)]
    assert {one["node_id"] for one in taken} == {spot.third.node_id}, "free devices first"
    outranked = scene.lease(job=wanted)
    assert outranked["node_id"] == scene.provider.node_id
    states = sorted(spot.lease(lease_id)["state"] for lease_id in low)
    assert states == ["active", "paused"]
    (match,) = scene.renter.read(f"/v1/jobs/{outranked['job_id']}/explain")["matches"]
    assert (match["rule"], match["recomputed"], match["differences"]) == ("lowest_bids/1", True, [])
    (room,) = match["candidates"]
    assert (room["node_id"], room["paused_bid"]) == (outranked["node_id"], credits_of(1_500_000))
    assert room["factors_ppm"].keys() == {
        "spec_fit",
        "reputation",
        "locality",
        "free_peers",
        "storage",
        "price",
    }


def test_a_bid_is_raised_while_it_waits_and_as_a_lease_of_its_own_once_it_has_run(
    spot: Market,
) -> None:
    scene = spot.scene
    below = standing(spot, 900_000)["lease_id"]
    assert spot.tick() == 0, "below the floor"
    path = f"/v1/leases/{below}/bid"
    assert code(scene.stranger.post(path, {"bid": credits_of(1)})) == (404, "lease_unknown")
    told = scene.renter.made(path, {"bid": credits_of(1_100_000)})
    assert told["lease_id"] == below
    spot.tick()
    ran = started(spot, below)
    assert (ran["state"], ran["price_per_gpu_hour"]) == ("active", credits_of(1_100_000))
    raised = scene.renter.made(path, {"bid": credits_of(1_600_000)})
    assert raised["restart_of"] == below
    again = spot.lease(raised["lease_id"])
    assert (again["state"], again["price_per_gpu_hour"]) == ("reserved", credits_of(1_600_000))
    explained = scene.renter.read(f"/v1/jobs/{again['job_id']}/explain")["matches"]
    kept = next(one for one in explained if one["lease_id"] == again["lease_id"])
    assert (kept["recomputed"], kept["differences"]) == (True, []), "it named no candidate"
    (candidate,) = kept["candidates"]
    assert (candidate["node_id"], candidate["price_per_gpu_hour"]) == (
        again["node_id"],
        credits_of(1_600_000),
    )
    assert candidate["factors_ppm"]["free_peers"] >= 0, "what the lease itself held is free"
    assert (again["device_ids"], again["restart_of"]) == (ran["device_ids"], below)
    assert spot.lease(below)["state"] == "closing"
    over = scene.renter.post(f"/v1/leases/{again['lease_id']}/bid", {"bid": credits_of(5_000_001)})
    assert code(over) == (409, "bid_state")
    market_lease = scene.lease()["lease_id"]
    other = scene.renter.post(f"/v1/leases/{market_lease}/bid", {"bid": credits_of(1)})
    assert code(other) == (404, "lease_unknown")


# --- reserved terms --------------------------------------------------------------------------

MONTH_HOURS = 720


def listed(provider: Provider, units: int, refund_ppm: int = 400_000) -> None:
    provider.owner.made(
        f"/v1/offers/{provider.offer_id}/prices",
        {
            "reserved": [
                {"months": 1, "price_per_gpu_hour": credits_of(units), "refund_ppm": refund_ppm}
            ]
        },
    )


def test_a_reserved_term_is_prepaid_and_ended_early_gives_back_its_stated_part(
    market: Market,
) -> None:
    """Design marketplace 4, reserved: 1, 3 or 6 months at a fixed price."""
    scene = market.scene
    scene.deposit(scene.renter, 1_000_000_000)
    listed(scene.provider, 1_500_000)
    listed(scene.other, 1_900_000)
    asked = scene.lease(pricing={"module": "reserved", "months": 1})
    whole = MONTH_HOURS * 1_500_000
    assert (asked["node_id"], asked["held"]) == (scene.provider.node_id, credits_of(whole))
    lease = market.lease(asked["lease_id"])
    assert lease["price_per_gpu_hour"] == credits_of(1_500_000)
    market.ready(lease)
    clock: Any = scene.clock
    clock.advance(60 * MINUTE_US)
    market.run(lease, 0, 60)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    unused = whole - 1_500_000
    kept = unused - unused * 400_000 // 1_000_000
    assert market.lease(lease["lease_id"])["charge"] == credits_of(1_500_000)
    assert market.balances(scene.renter)["cash"] == 1_100_000_000 - 1_500_000 - kept
    earned = market.balances(scene.owner)["holdback"]
    # Half of what is left after the usage fee is the provider's, of the hour and of what is kept.
    fee = kept * 250_000 // 1_500_000
    assert earned == (1_500_000 - 250_000) // 2 + (kept - fee) // 2
    told = scene.renter.read(f"/v1/accounts/{scene.renter.account_id}/statements")
    kinds = {(one["kind"], one["part"]): int(one["movement"]["units"]) for one in told["kinds"]}
    assert kinds["early_end", "escrow.cash"] == -kept


def test_a_provider_that_ends_a_reserved_term_keeps_nothing_of_what_is_unused(
    market: Market,
) -> None:
    scene = market.scene
    scene.deposit(scene.renter, 2_000_000_000)
    listed(scene.provider, 1_500_000, refund_ppm=0)
    lease = market.lease(scene.lease(pricing={"module": "reserved", "months": 1})["lease_id"])
    market.ready(lease)
    scene.owner.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    assert market.balances(scene.renter)["cash"] == 2_100_000_000


def test_an_offer_that_ends_within_the_term_is_no_place_for_it(market: Market) -> None:
    """`available_until` is a hard constraint."""
    scene = market.scene
    scene.deposit(scene.renter, 2_000_000_000)
    until = NOW_US + 29 * 24 * HOUR_US
    from api.door.moments import moment

    made = scene.owner.made(
        "/v1/offers",
        {
            "provider_id": scene.provider.provider_id,
            "node_id": scene.provider.node_id,
            "price_per_gpu_hour": credits_of(2_000_000),
            "available_until": moment(until),
        },
    )
    scene.owner.made(f"/v1/offers/{scene.provider.offer_id}/withdraw")
    scene.provider.offer_id = made["offer_id"]
    listed(scene.provider, 1_500_000)
    refused = scene.renter.post(
        "/v1/leases", {"job": scene.job(), "pricing": {"module": "reserved", "months": 1}}
    )
    assert code(refused) == (409, "no_match")
    listed(scene.other, 1_900_000)
    asked = scene.lease(pricing={"module": "reserved", "months": 1})
    assert asked["node_id"] == scene.other.node_id


def test_a_price_list_is_checked_against_the_usage_fee_and_read_by_anybody(scene: Scene) -> None:
    path = f"/v1/offers/{scene.provider.offer_id}/prices"
    assert code(scene.anybody.get(path)) == (404, "offer_unknown")
    low = {"interruptible_floor": credits_of(249_999)}
    assert code(scene.owner.post(path, low)) == (422, "price_below_usage_fee")
    line = {"months": 3, "price_per_gpu_hour": credits_of(1_000_000), "refund_ppm": 1}
    assert code(scene.owner.post(path, {"reserved": [line, line]})) == (422, "duplicate_id")
    assert code(scene.rival.post(path, {})) == (404, "offer_unknown")
    scene.owner.made(path, {"reserved": [line]})
    assert scene.anybody.read(path)["reserved"] == [line]
    scene.owner.made(path, {})
    assert scene.anybody.read(path)["reserved"] == []


def test_every_module_is_told_with_its_version(scene: Scene) -> None:
    told = scene.anybody.read("/v1/pricing-modules")["data"]
    assert {one["pricing"]: one["kind"] for one in told} == {
        "posted/1": "posted",
        "reverse_auction/1": "auction",
        "second_price/1": "auction",
        "continuous_bid/1": "standing",
        "reserved/1": "term",
    }


def test_a_pool_prices_all_its_requests_by_its_own_module(market: Market) -> None:
    """J-7: which module prices is the pool's policy."""
    scene = market.scene
    policy = {"pricing": "second_price", "scheduler": "immediate"}
    pool = scene.operator.made("/v1/pools", {"name": "sealed", "policy": policy})["pool_id"]
    node = {"node_id": scene.provider.node_id}
    scene.owner.made(f"/v1/pools/{pool}/nodes", node)
    job = scene.job(constraints={"pool_id": pool})
    asked = scene.renter.made("/v1/leases", {"job": job})
    assert (asked["state"], asked["pricing"]) == ("requested", "second_price/1")
    other = {"job": job, "pricing": {"module": "reverse_auction"}}
    assert code(scene.renter.post("/v1/leases", other)) == (422, "pricing_not_offered")
    outside = market.bid(asked["lease_id"], scene.other, 2_400_000)
    assert code(outside) == (409, "offer_mismatch"), "a bid from outside the pool is refused"
    third = {"node_id": market.third.node_id}
    market.third.owner.made(f"/v1/pools/{pool}/nodes", third)
    assert market.bid(asked["lease_id"], market.third, 2_400_000).status_code == 201
    assert market.bid(asked["lease_id"], scene.provider, 2_600_000).status_code == 201
    scene.operator.made(f"/v1/pools/{pool}/nodes/{market.third.node_id}/remove")
    market.tick(600 * SECOND_US)
    lease = market.lease(asked["lease_id"])
    assert lease["node_id"] == scene.provider.node_id, "a node that has left the pool is dropped"
    assert scene.anybody.read("/v1/market-prices", pool_id=pool)["data"] == []
    unknown = {"name": "odd", "policy": {"pricing": "barter"}}
    assert code(scene.operator.post("/v1/pools", unknown)) == (422, "pool_policy_invalid")
