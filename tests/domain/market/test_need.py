"""Every demand of a lease is asked again when it is quoted, reserved or bid for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.gpu_time import GPU_HOUR_US, charge_for
from domain.hardware.constraints import Constraints, RequiredAttribute
from domain.lease.lease import LeaseReserved, lease_of
from domain.lease.looked import Looked, Stated
from domain.leasing.bidding import award
from domain.leasing.demands import CHECKED, ELSEWHERE
from domain.market.auction import OpenAuction
from domain.market.dimensions import DIMENSIONS
from domain.market.need import dearest, need_of
from domain.market.offer import PRICE_UNITS_MAX
from domain.market.reasons import MarketReason
from domain.parties.counterparty import SetCounterparty
from domain.refusal import Refused
from tests.domain.scenes.bidders import CLOSES_US, asked, awarded, bid, market
from tests.domain.scenes.market import LEASE, NOON_US, RENTER, job, request, reserve, scene

FLOOR = Constraints(min_reputation_ppm=900_000, accept_provisional=False)
SIGNED = Constraints(attributes=(RequiredAttribute("iso27001", None, ("acct_tuev",)),))


def test_no_dimension_of_a_match_is_forgotten_by_the_decision() -> None:
    names = [dimension.name for dimension in DIMENSIONS]
    assert sorted((*CHECKED, *ELSEWHERE)) == sorted(names)


@pytest.mark.parametrize(
    ("demands", "looked", "dimension"),
    [
        (FLOOR, Looked(), "provisional"),
        (FLOOR, Looked(node_ppm=899_999), "reputation"),
        (FLOOR, Looked(node_ppm=900_000), None),
        (SIGNED, Looked(attributes=(Stated("iso27001", "yes", "acct_bsi"),)), "attributes"),
        (SIGNED, Looked(attributes=(Stated("iso27001", "yes", "acct_tuev"),)), None),
        (
            SIGNED,
            Looked(attributes=(Stated("iso27001", "yes", "acct_tuev", NOON_US),)),
            "attributes",
        ),
        (SIGNED, Looked(attributes=(Stated("iso27001", "yes", "acct_tuev", NOON_US + 1),)), None),
        (None, Looked(spec_ttl_us=HOUR_US - 1), "spec_age"),
        (None, Looked(spec_ttl_us=HOUR_US), None),
    ],
)
def test_what_the_views_tell_is_compared_with_the_demands_when_a_lease_is_reserved(
    demands: Constraints | None, looked: Looked, dimension: str | None
) -> None:
    here = scene().after(job(constraints=demands)).after(request())
    placed = here.when(replace(reserve(), looked=looked))
    if dimension is None:
        assert any(isinstance(change.fact, LeaseReserved) for change in placed.changes())
        return
    with pytest.raises(Refused) as caught:
        placed.changes()
    assert caught.value.reason is MarketReason.OFFER_MISMATCH
    assert caught.value.facts["dimension"] == dimension


@pytest.mark.parametrize("node_ppm", [None, 899_999, 900_000])
def test_a_bid_and_its_award_ask_for_the_score_each_at_its_time(node_ppm: int | None) -> None:
    world = market("a")
    world.do(job(constraints=FLOOR))
    world.do(replace(request(), pricing="reverse_auction"))
    world.do(
        OpenAuction(
            lease_id=LEASE, pricing="reverse_auction", at_us=NOON_US, closes_at_us=CLOSES_US
        )
    )
    placing = bid("a", 2_000_000, looked=Looked(node_ppm=node_ppm))
    if node_ppm != 900_000:
        with pytest.raises(Refused, match="offer_mismatch"):
            world.do(placing)
        return
    world.do(placing)
    found = award(world, LEASE, None, CLOSES_US)
    assert found is not None
    with pytest.raises(Refused, match="offer_mismatch"):
        world.do(found[1][0])  # nobody looked at the node when it was awarded


def test_an_auction_without_demands_is_awarded_without_a_look() -> None:
    world = asked(market("a"))
    world.do(bid("a", 2_000_000))
    assert awarded(world) == "bid_a"


def test_the_need_of_a_lease_names_whom_its_renter_denies() -> None:
    world = market("a")
    world.do(job())
    world.do(request())
    world.do(
        SetCounterparty(
            account_id=RENTER, counterparty_id="acct_owner", verdict="deny", by="m", at_us=NOON_US
        )
    )
    requested = lease_of(world, LEASE).requested
    assert requested is not None
    need = need_of(world, requested, NOON_US, Looked(renter_ppm=7))
    assert need.denied == frozenset({"acct_owner"})
    assert not need.allowed
    assert need.renter_ppm == 7


@given(st.integers(-1, 10**15), st.integers(1, 64 * 10**12))
def test_the_dearest_price_is_the_last_one_that_is_carried(units: int, gpu_us: int) -> None:
    price = dearest(units, gpu_us)
    if units < 0:
        assert price == -1
        return
    assert charge_for(gpu_us, price) <= units
    assert price == PRICE_UNITS_MAX or (price + 1) * gpu_us // GPU_HOUR_US > units
