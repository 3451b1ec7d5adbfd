"""Ownership of a node goes over in two steps, at an instant that no lease spans."""

from __future__ import annotations

from domain.fleet.device import DeviceReserved
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import (
    AcceptNodeTransfer,
    NodeOwnershipTransferred,
    OfferNodeTransfer,
    OwnerShare,
    RevenueSharesSet,
    revenue_stream,
    shares_before,
    shares_of,
)
from domain.money import PPM, MoneyReason
from domain.parties.account import AccountOpened
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, GPU_0, HOUR_US, NODE, NOON_US, with_active_node

ANN, BEN = "acct_ann", "acct_ben"
OWNED = RevenueSharesSet(node_id=NODE, shares=(OwnerShare(ANN, 900_000),), by="mem", at_us=NOON_US)
owned = with_active_node.given(
    *(
        (
            Stream("account", who),
            AccountOpened(account_id=who, kind="party", opened_by="op", at_us=NOON_US),
        )
        for who in (ANN, BEN)
    ),
    (revenue_stream(NODE), OWNED),
)


def offers(account_id: str, to: str) -> OfferNodeTransfer:
    return OfferNodeTransfer(
        node_id=NODE, account_id=account_id, to_account_id=to, by="mem", at_us=NOON_US
    )


def accepts(account_id: str, at_us: int = NOON_US + HOUR_US) -> AcceptNodeTransfer:
    return AcceptNodeTransfer(node_id=NODE, account_id=account_id, by="mem", at_us=at_us)


def test_the_part_is_the_new_owners_from_the_instant_on_and_not_before() -> None:
    scene = owned.after(offers(ANN, BEN))
    told = NodeOwnershipTransferred(
        node_id=NODE,
        from_account_id=ANN,
        to_account_id=BEN,
        share_ppm=900_000,
        shares=(OwnerShare(BEN, 900_000),),
        by="mem",
        at_us=NOON_US + HOUR_US,
    )
    scene.when(accepts(BEN)).then((revenue_stream(NODE), told))
    after = scene.after(accepts(BEN))
    assert shares_of(after, NODE) == (OwnerShare(BEN, 900_000),)
    assert shares_before(after, NODE, NOON_US + HOUR_US) == (OwnerShare(ANN, 900_000),)
    assert shares_before(after, NODE, NOON_US) == ()


def test_the_provider_hands_on_what_no_owner_has() -> None:
    scene = owned.after(offers(ALICE, BEN)).after(accepts(BEN))
    assert shares_of(scene, NODE) == (OwnerShare(ANN, 900_000), OwnerShare(BEN, 100_000))
    back = scene.after(offers(ANN, ALICE)).after(accepts(ALICE, NOON_US + 2 * HOUR_US))
    assert shares_of(back, NODE) == (OwnerShare(BEN, 100_000),)
    assert sum(one.share_ppm for one in shares_of(back, NODE)) <= PPM


def test_nothing_goes_over_that_was_not_offered_or_while_a_lease_holds_the_node() -> None:
    owned.when(accepts(BEN)).then_refused(FleetReason.TRANSFER_UNKNOWN)
    owned.when(offers(BEN, ANN)).then_refused(FleetReason.NODE_UNKNOWN)
    owned.when(offers(ANN, ANN)).then_refused(MoneyReason.DUPLICATE_ID)
    offered = owned.after(offers(ANN, BEN))
    offered.when(offers(ANN, BEN)).then_nothing()
    late = accepts(BEN, NOON_US + 7 * 24 * HOUR_US)
    offered.when(late).then_refused(FleetReason.TRANSFER_UNKNOWN)
    held = DeviceReserved(
        device_id=GPU_0,
        lease_id="lease_1",
        share_ppm=PPM,
        mem_ppm=PPM,
        at_us=NOON_US,
        mode="whole",
        mig=None,
    )
    busy = offered.given((Stream("device", GPU_0), held))
    busy.when(accepts(BEN)).then_refused(FleetReason.NODE_BUSY)
