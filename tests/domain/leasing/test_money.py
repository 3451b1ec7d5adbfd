"""The money of a lease beside its price: depositors, top-ups, federated fees, clients, owners."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import OwnerShare, SetRevenueShares, split_among
from domain.funds.reasons import FundsReason
from domain.lease.funds import FEDERATED, EscrowPart, total
from domain.lease.lease import (
    AccrueUsage,
    FederatedCharge,
    Lease,
    LeaseReserved,
    LeaseSettled,
    LeaseToppedUp,
    TopUpLease,
    UsageAccrued,
)
from domain.leasing.accrual import _owners
from domain.leasing.top_up import refill_due
from domain.market.reasons import MarketReason
from domain.money import PPM, Amount, MoneyReason, credit, token
from domain.parties.account import AccountClosed, AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.reasons import PricesReason
from domain.prices.tariff import (
    CLOUDBENDER,
    FederatedFees,
    SlaClass,
    SlaTier,
    Split,
    SplitShare,
    TariffPublished,
)
from domain.refusal import Reason
from domain.stream import Stream
from domain.trust.reasons import TrustReason
from tests.domain.scenes.market import (
    BURN_OFFER,
    DEVICES,
    LEASE,
    NODE,
    NOON_US,
    OWNER,
    RENTER,
    close,
    job,
    lease_stream,
    opened,
    opening,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.given import Scene

SECOND_US = 1_000_000
FRIEND, CLIENT, ALICE, BOB = "acct_friend", "client_beam", "acct_alice", "acct_bob"
CASH = {f"party:{RENTER}:cash": 10_000_000, f"party:{FRIEND}:cash": 100_000_000}


def account(account_id: str, kind: str = "party") -> tuple[Stream[Any], AccountOpened]:
    fact = AccountOpened(account_id=account_id, kind=kind, opened_by="op", at_us=0)
    return Stream("account", account_id), fact


def tariff(**changes: object) -> tuple[Stream[Any], TariffPublished]:
    plain = {
        "version": 2,
        "usage_fees": CLOUDBENDER.usage_fees,
        "provider_share_ppm": 500_000,
        "burn_share_ppm": 0,
        "effective_from_us": 1,
        "by": "op",
        "at_us": 1,
        "split": None,
        "federated": None,
        "device_fee_per_month": None,
        "storage_node_per_hour": None,
        "meters": (),
        "sla": (),
        "notice_us": 0,
        "free_start": None,
        **changes,
    }
    return Stream("tariff", "network"), TariffPublished(**plain)  # type: ignore[arg-type]


def facts(where: Scene, kind: type) -> list:  # type: ignore[type-arg]
    return [fact for _, fact in where.past if isinstance(fact, kind)]


def lease_in(where: Scene) -> Lease:
    lease = where.state(lease_stream)
    assert isinstance(lease, Lease)
    return lease


def top_up(units: int, after_us: int = 0, who: str = RENTER, **changes: object) -> TopUpLease:
    command = TopUpLease(
        lease_id=LEASE, account_id=who, amount=credit(units), at_us=NOON_US + after_us
    )
    return replace(command, **changes)  # type: ignore[arg-type]


def hour(number: int, devices: int = 1) -> AccrueUsage:
    rows = tuple(
        usage((number - 1) * HOUR_US, number * HOUR_US, device, position=number)
        for device in DEVICES[:devices]
    )
    return AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=number, rows=rows, at_us=NOON_US + number * HOUR_US
    )


# --- several depositors -----------------------------------------------------------------------


def running(funds: int = 10_000_000) -> Scene:
    return opened(funds=funds, balances=CASH).given(account(FRIEND))


def test_a_top_up_moves_the_end_to_the_last_second_that_all_of_the_escrow_pays() -> None:
    """10 CREDIT at 2.78 close at second 12,949; with 10 more the end is that of 20."""
    before = running()
    assert opening(before).funds_end_us == NOON_US + 12_949 * SECOND_US
    after = before.after(top_up(10_000_000, 60 * SECOND_US, FRIEND))
    assert lease_in(after).window_end_us == NOON_US + 25_899 * SECOND_US
    (topped,) = facts(after, LeaseToppedUp)
    assert topped.parts == (EscrowPart("cash", credit(10_000_000), 2, FRIEND),)


def test_deposits_are_drained_in_order_of_arrival_and_each_gets_its_own_rest_back() -> None:
    after = running().after(top_up(10_000_000, 0, FRIEND))
    for number in range(1, 5):
        after = after.after(hour(number))
    drawn = [part for fact in facts(after, UsageAccrued) for part in fact.drawn]
    assert [(part.number, part.account_id, part.amount.units) for part in drawn] == [
        (1, None, 2_780_000),
        (1, None, 2_780_000),
        (1, None, 2_780_000),
        (1, None, 1_660_000),
        (2, FRIEND, 1_120_000),
    ]
    ended = after.after(close(4 * HOUR_US)).after(settle(4 * HOUR_US))
    refunds = [
        part
        for _, fact in ended.past
        for part in getattr(fact, "refund", ())
        if isinstance(part, EscrowPart)
    ]
    assert refunds == [EscrowPart("cash", credit(8_880_000), 2, FRIEND)]


@given(
    top_ups=st.lists(
        st.tuples(st.sampled_from((RENTER, FRIEND)), st.integers(1, 10**7)), max_size=5
    ),
    hours=st.integers(0, 4),
)
def test_all_that_was_put_in_is_drawn_or_given_back_deposit_by_deposit(
    top_ups: list[tuple[str, int]], hours: int
) -> None:
    rich = {**CASH, f"party:{RENTER}:cash": 10**9}
    where = opened(funds=12_000_000, balances=rich).given(account(FRIEND))
    for who, units in top_ups:
        where = where.after(top_up(units, 0, who))
    for number in range(1, hours + 1):
        where = where.after(hour(number))
    where = where.after(close(hours * HOUR_US + SECOND_US))
    where = where.after(settle(hours * HOUR_US + SECOND_US + 25 * HOUR_US))
    left: dict[tuple[int, str, str | None], int] = {}
    (reserved,) = facts(where, LeaseReserved)
    into = [*reserved.escrow, *(p for f in facts(where, LeaseToppedUp) for p in f.parts)]
    out = [p for f in facts(where, UsageAccrued) for p in f.drawn]
    out += [p for _, f in where.past for p in getattr(f, "refund", ()) if isinstance(p, EscrowPart)]
    for sign, parts in ((1, into), (-1, out)):
        for part in parts:
            place = (part.number, part.source, part.account_id)
            left[place] = left.get(place, 0) + sign * part.amount.units
    assert set(left.values()) <= {0}
    assert sum(f.charge_new.units for f in facts(where, UsageAccrued)) == total(
        [p for f in facts(where, UsageAccrued) for p in f.drawn]
    )


def test_what_has_ended_stays_ended() -> None:
    late = top_up(1, 12_949 * SECOND_US, FRIEND)
    running().when(late).then_refused(FleetReason.LEASE_STATE, ended_at_us=...)
    closed = running().after(close(HOUR_US))
    closed.when(top_up(1, HOUR_US, FRIEND)).then_refused(
        FleetReason.LEASE_STATE, lease_id="lease_11111111", status="closing"
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (top_up(0), FundsReason.AMOUNT_NOT_POSITIVE),
        (top_up(1, amount=token(1)), FundsReason.AMOUNT_NOT_POSITIVE),
        (top_up(10**12, 0, FRIEND), FundsReason.CREDIT_TOO_LOW),
        (top_up(1, 0, "acct_nobody"), PartiesReason.ACCOUNT_UNKNOWN),
        (top_up(1, federated=True), FleetReason.LEASE_STATE),
    ],
)
def test_a_top_up_that_cannot_be_is_refused(command: TopUpLease, reason: Reason) -> None:
    running().when(command).then_refused(reason)


def test_others_fill_half_of_an_escrow_at_most_and_never_lock_its_renter_out() -> None:
    where = running()
    for _ in range(32 - len(lease_in(where).held)):
        where = where.after(top_up(1, 0, FRIEND))
    where.when(top_up(1, 0, FRIEND)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    for _ in range(32):
        where = where.having({f"party:{RENTER}:cash": 1}).after(top_up(1))
    where.when(top_up(1)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_who_owes_tops_up_nothing() -> None:
    in_debt = running().having({f"party:{FRIEND}:owed": 1})
    in_debt.when(top_up(1, 0, FRIEND)).then_refused(FundsReason.UNPAID_DEBT)


def test_a_lease_with_refill_goes_on_while_the_balance_lasts() -> None:
    asked = replace(request(), refill=True)
    where = scene(CASH).after(job()).after(asked).after(reserve()).after(ready)
    lease = lease_in(where)
    assert lease.window_end_us == NOON_US + HOUR_US
    assert refill_due(lease, LEASE, NOON_US + HOUR_US // 2) is None
    command = refill_due(lease, LEASE, NOON_US + HOUR_US // 2 + 1)
    assert command is not None
    after = where.after(command)
    assert lease_in(after).window_end_us == NOON_US + 2 * HOUR_US
    rest = replace(command, amount=credit(10**9))
    assert total(lease_in(where.after(rest)).held) == 2_780_000 + 10_000_000
    empty = where.having({f"party:{RENTER}:cash": 0})
    empty.when(command).then_refused(FundsReason.CREDIT_TOO_LOW)
    assert refill_due(lease_in(running()), LEASE, NOON_US + 12_900 * SECOND_US) is None


def test_a_refill_stops_where_only_the_federated_fee_ends_and_drains_no_balance() -> None:
    """More for usage would not move the end: the balance stays the account's."""
    asked = replace(request(), account_id=OWNER, project_id="home", refill=True)
    poor = {f"party:{RENTER}:cash": 2_650_000, f"party:{OWNER}:cash": 100_000_000}
    where = (
        scene(poor)
        .given(tariff(federated=CLOUDBENDER.federated))
        .after(job(1, federated="training", participants=(OWNER,)))
        .after(asked)
        .after(reserve())
        .after(ready)
    )
    now_us = NOON_US + HOUR_US // 2 + 1
    command = refill_due(lease_in(where), LEASE, now_us)
    assert command is not None
    refilled = where.after(command)
    assert lease_in(refilled).window_end_us == NOON_US + HOUR_US
    assert refill_due(lease_in(refilled), LEASE, now_us) is None


# --- federated jobs (C-21) --------------------------------------------------------------------


def federated(kind: str = "training", gpus: int = 2, unit: str = "worker") -> Scene:
    """The owner of the node takes part in a job of the renter's, on the owner's own devices."""
    fees = FederatedFees(credit(1_850_000), credit(2_650_000), unit)
    balances = {f"party:{RENTER}:cash": 100_000_000, f"party:{OWNER}:cash": 100_000_000}
    asked = replace(request(), account_id=OWNER, project_id="home")
    return (
        scene(balances)
        .given(tariff(federated=fees))
        .after(job(gpus, federated=kind, participants=(OWNER,)))
        .after(asked)
        .after(reserve(gpus))
        .after(ready)
    )


@pytest.mark.parametrize(("kind", "fee"), [("training", 2_650_000), ("inference", 1_850_000)])
def test_the_creator_pays_the_federated_fee_and_the_project_owner_the_usage_fee(
    kind: str, fee: int
) -> None:
    """C-21: one worker of 2 x A100 for an hour: job creator 2.65, project owner 0.50."""
    where = federated(kind).having({f"party:{OWNER}:cash": 100_000_000})
    where = where.after(close(HOUR_US))
    rows = tuple(usage(0, HOUR_US, device) for device in DEVICES[:2])
    where = where.after(settle(HOUR_US, rows))
    (accrued,) = facts(where, UsageAccrued)
    assert accrued.charge == credit(500_000)
    assert accrued.parts.fee == 500_000
    assert accrued.federated == FederatedCharge(credit(fee), credit(fee))
    assert accrued.project_id == "home"
    paid = {(part.account_id, part.purpose): part.amount for part in accrued.drawn}
    assert paid == {(None, None): credit(500_000), (RENTER, FEDERATED): credit(fee)}


@pytest.mark.parametrize("gpus", [1, 2])
def test_the_federated_fee_counts_hours_whatever_the_number_of_devices(gpus: int) -> None:
    where = federated(gpus=gpus).after(top_up(10_000_000, 0, OWNER))
    where = where.after(hour(1, gpus)).after(hour(2, gpus))
    assert [fact.federated for fact in facts(where, UsageAccrued)] == [
        FederatedCharge(credit(2_650_000), credit(2_650_000)),
        FederatedCharge(credit(5_300_000), credit(2_650_000)),
    ]


def test_a_job_of_one_fee_has_it_carried_by_one_lease_at_a_time() -> None:
    where = federated(gpus=1, unit="job")
    second = replace(request(), account_id=OWNER, lease_id="lease_second")
    taken = replace(reserve(), lease_id="lease_second", device_ids=(DEVICES[1],))
    both = where.after(second).after(taken)
    terms = [fact.federated for fact in facts(both, LeaseReserved)]
    assert [one.fee_per_hour.units for one in terms] == [2_650_000, 0]
    ended = where.after(close(HOUR_US)).after(second).after(taken)
    terms = [fact.federated for fact in facts(ended, LeaseReserved)]
    assert [one.fee_per_hour.units for one in terms] == [2_650_000, 2_650_000]


def test_a_lease_ends_when_the_first_of_its_two_holds_ends() -> None:
    where = federated(gpus=1)
    lease = lease_in(where)
    assert lease.window_end_us == NOON_US + HOUR_US  # an hour of usage fee is held
    more = where.after(top_up(10 * 250_000, 0, OWNER))
    assert lease_in(more).window_end_us == NOON_US + 11 * HOUR_US
    poor = {f"party:{RENTER}:cash": 2_650_000 + 1_325_000, f"party:{OWNER}:cash": 10**8}
    short = (
        scene(poor)
        .given(tariff(federated=CLOUDBENDER.federated))
        .after(job(1, federated="training", participants=(OWNER,)))
        .after(replace(request(funds=10_000_000), account_id=OWNER))
        .after(reserve())
        .after(ready)
    )
    assert lease_in(short).window_end_us == NOON_US + 3 * HOUR_US // 2
    longer = short.having({f"party:{RENTER}:cash": 2_650_000})
    longer = longer.after(top_up(2_650_000, 0, RENTER, federated=True))
    assert lease_in(longer).window_end_us == NOON_US + 5 * HOUR_US // 2


def test_a_stranger_takes_no_part_and_the_creators_own_lease_pays_no_federated_fee() -> None:
    begun = scene().given(tariff(federated=CLOUDBENDER.federated))
    asked = job(1, federated="training", participants=(OWNER,))
    stranger = replace(request(), account_id=FRIEND)
    begun.after(asked).when(stranger).then_refused(TrustReason.JOB_UNKNOWN)
    own = begun.after(asked).after(request()).after(reserve())
    assert facts(own, LeaseReserved)[0].federated is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"federated": "mining", "participants": (OWNER,)}, PartiesReason.UNKNOWN_MODE),
        ({"participants": (OWNER,)}, PartiesReason.UNKNOWN_MODE),
        ({"federated": "training"}, PartiesReason.COUNT_OUT_OF_RANGE),
        ({"federated": "training", "participants": (OWNER, OWNER)}, MoneyReason.DUPLICATE_ID),
        ({"federated": "training", "participants": (RENTER,)}, MoneyReason.DUPLICATE_ID),
    ],
)
def test_a_federated_job_names_its_kind_and_its_participants(
    changes: dict[str, Any], reason: Reason
) -> None:
    scene().when(job(1, **changes)).then_refused(reason)


# --- clients and owners -----------------------------------------------------------------------

SHARED = Split((SplitShare("client", 100_000), SplitShare("provider", 500_000)), "platform")


def brought(client_id: str = CLIENT) -> Scene:
    return (
        scene()
        .given(account(CLIENT, "client"), tariff(split=SHARED))
        .after(job(client_id=client_id))
        .after(request())
        .after(reserve())
        .after(ready)
        .after(close(HOUR_US))
        .after(settle(HOUR_US, (usage(0, HOUR_US),)))
    )


def test_the_client_that_brought_the_job_has_the_share_of_the_tariff() -> None:
    """R-17, R-12: 2.78 less the fee of 0.25 is 2.53; a tenth of that is the client's."""
    (accrued,) = facts(brought(), UsageAccrued)
    parts = accrued.parts
    assert (parts.fee, parts.client, parts.provider, parts.platform) == (
        250_000,
        253_000,
        1_265_000,
        1_012_000,
    )
    assert accrued.client_account_id == CLIENT


def test_without_a_client_its_share_falls_to_those_after_it() -> None:
    (accrued,) = facts(brought("direct"), UsageAccrued)
    assert (accrued.parts.client, accrued.client_account_id) == (None, None)
    assert accrued.parts.provider == 1_265_000
    assert accrued.parts.platform == 1_265_000


def test_of_a_lease_of_ones_own_hardware_nobody_but_the_platform_has_a_part() -> None:
    """All of it is the fee, whatever the tariff shares with a client that brought the job."""
    where = (
        scene({f"party:{OWNER}:cash": 10_000_000})
        .given(account(CLIENT, "client"), tariff(split=SHARED))
        .after(job(client_id=CLIENT, account_id=OWNER))
        .after(replace(request(), account_id=OWNER))
        .after(reserve())
        .after(ready)
        .after(close(HOUR_US))
        .after(settle(HOUR_US, (usage(0, HOUR_US),)))
    )
    (accrued,) = facts(where, UsageAccrued)
    assert accrued.parts == Parts(fee=250_000, provider=0, platform=0, burn=0)


def owned(*shares: OwnerShare) -> Scene:
    setting = SetRevenueShares(
        node_id=NODE, account_id=OWNER, shares=shares, by="mem", at_us=NOON_US
    )
    return scene().given(account(ALICE), account(BOB)).after(setting)


def test_the_provider_part_of_a_lease_is_split_among_the_owners_of_its_node() -> None:
    """K-1: one provider earns it, the ledger splits it to the unit."""
    where = owned(OwnerShare(ALICE, 333_333), OwnerShare(BOB, 333_333))
    where = where.after(job()).after(request()).after(reserve()).after(ready)
    where = where.after(close(HOUR_US)).after(settle(HOUR_US, (usage(0, HOUR_US),)))
    (accrued,) = facts(where, UsageAccrued)
    assert accrued.owners is not None
    assert {part.account_id: part.units_new for part in accrued.owners} == {
        ALICE: 421_666,
        BOB: 421_666,
        OWNER: 421_668,
    }
    assert sum(part.units for part in accrued.owners) == accrued.parts.provider == 1_265_000


def test_the_share_of_an_owner_whose_account_is_closed_is_the_providers() -> None:
    closed = AccountClosed(account_id=BOB, by="op", at_us=NOON_US)
    where = owned(OwnerShare(ALICE, 300_000), OwnerShare(BOB, 200_000))
    where = where.given((Stream("account", BOB), closed))
    where = where.after(job()).after(request()).after(reserve())
    assert facts(where, LeaseReserved)[0].owners == (OwnerShare(ALICE, 300_000),)


def test_a_running_lease_keeps_the_owners_it_was_reserved_with() -> None:
    where = owned(OwnerShare(ALICE, PPM)).after(job()).after(request()).after(reserve())
    changed = SetRevenueShares(node_id=NODE, account_id=OWNER, shares=(), by="m", at_us=NOON_US)
    where = where.after(changed).after(ready).after(close(HOUR_US))
    (accrued,) = facts(where.after(settle(HOUR_US, (usage(0, HOUR_US),))), UsageAccrued)
    assert [(part.account_id, part.units) for part in accrued.owners] == [
        (ALICE, 1_265_000),
        (OWNER, 0),
    ]


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ((OwnerShare(ALICE, 600_000), OwnerShare(BOB, 400_001)), PartiesReason.SHARE_OUT_OF_RANGE),
        ((OwnerShare(ALICE, 0),), PartiesReason.SHARE_OUT_OF_RANGE),
        ((OwnerShare(ALICE, 1), OwnerShare(ALICE, 1)), MoneyReason.DUPLICATE_ID),
        ((OwnerShare(OWNER, 1),), MoneyReason.DUPLICATE_ID),
        ((OwnerShare("acct_nobody", 1),), PartiesReason.ACCOUNT_UNKNOWN),
    ],
)
def test_shares_are_of_open_accounts_and_no_more_than_all(
    shares: tuple[OwnerShare, ...], reason: Reason
) -> None:
    setting = SetRevenueShares(
        node_id=NODE, account_id=OWNER, shares=shares, by="mem", at_us=NOON_US
    )
    scene().given(account(ALICE), account(BOB)).when(setting).then_refused(reason)
    theirs = replace(setting, account_id=RENTER, shares=())
    scene().when(theirs).then_refused(FleetReason.NODE_UNKNOWN)


@given(
    units=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    shares_ppm=st.lists(st.integers(1, PPM // 4), max_size=4),
)
def test_no_owner_ever_loses_and_all_parts_sum_to_the_whole(
    units: list[int], shares_ppm: list[int]
) -> None:
    shares = tuple(OwnerShare(f"acct_{n}", ppm) for n, ppm in enumerate(shares_ppm))
    before = [0] * (len(shares) + 1)
    for whole in sorted(units):
        parts = [part for _, part in split_among(whole, shares, OWNER)]
        assert sum(parts) == whole
        assert all(now >= then for now, then in zip(parts, before, strict=True))
        before = parts


@given(
    units=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    own_ppm=st.lists(st.integers(1, PPM // 4), min_size=1, max_size=3),
)
def test_an_account_that_owns_a_part_twice_gets_both_in_one_line_and_none_is_lost(
    units: list[int], own_ppm: list[int]
) -> None:
    """An operator that owns a part of a node: what it owns, and what no other owner has."""
    shares = (*(OwnerShare(OWNER, ppm) for ppm in own_ppm), OwnerShare(ALICE, PPM // 4))
    reserved = SimpleNamespace(owners=shares, provider_account_id=OWNER)
    before = 0
    for whole in sorted(units):
        parts = split_among(whole, shares, OWNER)
        assert [who for who, _ in parts] == [OWNER, ALICE]
        assert sum(part for _, part in parts) == whole
        told = _owners(reserved, whole, before)  # type: ignore[arg-type]
        assert sum(part.units_new for part in told) == whole - before
        before = whole


# --- promises ---------------------------------------------------------------------------------


def test_a_lease_keeps_the_class_it_was_promised_and_an_unknown_one_is_refused() -> None:
    """V-6: the class is on the lease."""
    gold = SlaClass("gold", (SlaTier(990_000, 100_000),))
    begun = scene().given(tariff(sla=(gold,))).after(job(sla_class="gold")).after(request())
    assert facts(begun.after(reserve()), LeaseReserved)[0].sla_class == "gold"
    tin = scene().given(tariff(sla=(gold,))).after(job(sla_class="tin")).after(request())
    tin.when(reserve()).then_refused(PricesReason.SLA_CLASS_UNKNOWN)


def test_a_promise_is_paid_for_in_cash_and_never_with_burned_credits() -> None:
    """E-C2, E-H5: 95 % of bought credits come back already; a refund would come on top."""
    gold = SlaClass("gold", (SlaTier(990_000, 100_000),))
    asked = scene().given(tariff(sla=(gold,))).after(job(sla_class="gold"))
    burning = replace(request(), pay_with="burn")
    asked.when(burning).then_refused(PartiesReason.UNKNOWN_MODE, sla_class="gold")
    either = asked.after(request())
    either.when(reserve(offer=BURN_OFFER)).then_refused(MarketReason.OFFER_MISMATCH)
    plain = scene().after(job()).after(burning)
    assert plain.state(lease_stream).requested.pay_with == "burn"


def test_a_settled_lease_has_nothing_left() -> None:
    where = running().after(top_up(5, 0, FRIEND)).after(close(SECOND_US))
    where = where.after(settle(SECOND_US, (usage(0, SECOND_US),)))
    (settled,) = facts(where, LeaseSettled)
    assert isinstance(settled.charge, Amount)
    assert lease_in(where).held == ()
