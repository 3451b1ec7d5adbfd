"""What each money fact books: it sums to zero, and every account stands in the chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.brought import ClientPart
from domain.chain import burn
from domain.chain import payout_root as payout
from domain.corrections import dispute
from domain.epochs import epoch, reward_changes
from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_changes import Reward
from domain.fleet import device, storage_node
from domain.fleet.revenue_share import OwnerPart, OwnerShare, split_among
from domain.funds import card_money, debt, deposit, funding, payment, promotion
from domain.funds.draw import Drawn
from domain.governance import grant
from domain.income import adjustment, cash_out, maturity, region_pool
from domain.lease import lease, reserved_term, shared_escrow
from domain.lease import turns as lease_turns
from domain.lease.funds import EscrowPart
from domain.leasing import other_resources as resource_usage
from domain.money import PPM, Amount, Asset, credit, token
from domain.prices.charge_split import Parts, peel
from domain.prices.tariff import MeterRate
from domain.sites import edge_device
from ledger.books import postings
from ledger.books.chart import kind_of
from ledger.books.entry import Entry, entry
from ledger.books.postings import entries_for
from ledger.log import codec
from projections.income.movements import KINDS
from tests.ledger.books import priced
from tests.projections.story import Size, story

AT_US = 1_795_161_600_000_000
RENTER, OWNER, LEASE, GPU = "acct_renter", "acct_owner", "lease_1", "GPU-1"

units = st.integers(0, 10**20)
positive = st.integers(1, 10**20)


def lines(fact: Any, asset: Asset = Asset.CREDIT) -> dict[str, int]:
    """What a fact books in one asset; an asset it does not move is empty."""
    entries = [each for each in entries_for(fact) if each.asset is asset]
    assert len(entries) <= 1, "one entry per fact and asset"
    return dict(entries[0].lines) if entries else {}


def check(entries: Iterable[Entry]) -> None:
    """The three things every entry keeps."""
    for each in entries:
        names = [name for name, _ in each.lines]
        assert sum(moved for _, moved in each.lines) == 0, each
        assert len(set(names)) == len(names), each
        assert all(moved for _, moved in each.lines), each
        assert {kind_of(name).asset for name in names} == {each.asset}, each


# --- facts of every kind, with any amounts ----------------------------------------------------

sources = st.sampled_from(("grant", "earned", "cash", "card", "burned"))
escrows = st.dictionaries(sources, positive, max_size=5).map(
    lambda parts: tuple(EscrowPart(source, credit(held)) for source, held in parts.items())
)


@st.composite
def deposits(draw: st.DrawFn) -> Any:
    return deposit.DepositConfirmed(
        deposit_id="dep_1",
        account_id=RENTER,
        source=draw(st.sampled_from(("cash", "card"))),
        amount=credit(draw(positive)),
        reference="r",
        confirmed_by="op",
        at_us=AT_US,
    )


@st.composite
def purchases(draw: st.DrawFn) -> Any:
    return deposit.CreditsPurchaseConfirmed(
        burner="0xb",
        purchase_id=1,
        account_id=draw(st.sampled_from((None, RENTER))),
        payer="0x1",
        tokens_burned=token(draw(positive)),
        credits=credit(draw(positive)),
        price_round=1,
        tx_hash="0x2",
        log_index=0,
        block_number=9,
        at_us=AT_US,
    )


@st.composite
def reservations(draw: st.DrawFn) -> Any:
    return lease.LeaseReserved(
        meter_maxima=(),
        lease_id=LEASE,
        job_id="job_1",
        account_id=RENTER,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        node_id="node_1",
        provider_id="prov_1",
        provider_account_id=OWNER,
        offer_id="offer_1",
        device_ids=(GPU,),
        share_ppm=PPM,
        mem_ppm=PPM,
        gpu_class="datacenter",
        price_per_gpu_hour=credit(1),
        pay_with="cash",
        own=False,
        tariff_version=1,
        fee_per_gpu_hour=credit(1),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        escrow=draw(escrows),
        at_us=AT_US,
        split=None,
        client_account_id=None,
        owners=(),
        federated=None,
        sla_class=None,
        counted=(),
        prepaid=None,
        quotas=(),
        gang_id=None,
        pool_id=None,
        mode="whole",
        mig=None,
        reclaim_window_us=None,
        interruptible=False,
        quote_id=None,
        by=None,
    )


@st.composite
def closings(draw: st.DrawFn) -> Any:
    return lease.LeaseClosed(
        lease_id=LEASE,
        account_id=RENTER,
        closed_at_us=AT_US,
        party="renter",
        code=1,
        refund=draw(escrows),
        at_us=AT_US,
        by=None,
        evidence=None,
    )


@st.composite
def settlements(draw: st.DrawFn) -> Any:
    return lease.LeaseSettled(
        lease_id=LEASE,
        account_id=RENTER,
        charge=credit(draw(units)),
        gpu_us=draw(units),
        refund=draw(escrows),
        at_us=AT_US,
        disputed=False,
    )


def accrued(drawn: dict[str, int], new: Parts) -> lease.UsageAccrued:
    charge = sum(drawn.values())
    assert new.total == charge
    return lease.UsageAccrued(
        lease_id=LEASE,
        hour_index=0,
        until_us=AT_US,
        node_id="node_1",
        account_id=RENTER,
        provider_account_id=OWNER,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        lane=1,
        usage_position=1,
        resume_position=1,
        ppm_us=0,
        gpu_us=0,
        gpu_us_new=0,
        charge=credit(charge),
        charge_new=credit(charge),
        parts=new,
        parts_new=new,
        drawn=tuple(EscrowPart(source, credit(part)) for source, part in drawn.items()),
        watermarks=(),
        refused=(),
        at_us=AT_US,
        client_account_id=None,
        owners=(),
        federated=None,
        owed=None,
        escrow_id=None,
    )


@st.composite
def accruals(draw: st.DrawFn) -> Any:
    """Paid from cash sources, or wholly by burned credits: a lease settles in one of the two."""
    if draw(st.booleans()):
        paid = draw(units)
        return accrued({"burned": paid} if paid else {}, Parts(0, 0, 0, paid))
    drawn = draw(
        st.dictionaries(st.sampled_from(("grant", "earned", "cash", "card")), positive, max_size=4)
    )
    charge, price = sum(drawn.values()), draw(st.integers(1, 10**9))
    fee, share, burned = (
        draw(st.integers(0, price)),
        draw(st.integers(0, PPM)),
        draw(st.integers(0, PPM)),
    )
    fact = accrued(drawn, peel(charge, price, fee, share, burned))
    return draw(shared(fact)) if draw(st.booleans()) else fact


@st.composite
def shared(draw: st.DrawFn, fact: lease.UsageAccrued) -> lease.UsageAccrued:
    """The same charge with a client, several owners and a federated fee of another account."""
    new = fact.parts_new
    client, federated = draw(st.integers(0, new.platform)), draw(positive)
    parts = replace(new, platform=new.platform - client, client=client)
    shares = (OwnerShare("acct_a", 300_000), OwnerShare("acct_b", 500_000))
    owners = tuple(
        OwnerPart(who, part, part) for who, part in split_among(new.provider, shares, OWNER)
    )
    paid = EscrowPart("cash", credit(federated), 2, "acct_creator", "federated")
    if fact.drawn and fact.drawn[-1].source != "burned":
        unfunded = lease.Unfunded("acct_creator", fact.drawn[-1].amount)
        fact = replace(fact, drawn=fact.drawn[:-1], owed=unfunded)
    return replace(
        fact,
        parts=parts,
        parts_new=parts,
        client_account_id="client_1",
        owners=owners,
        federated=lease.FederatedCharge(credit(federated), credit(federated)),
        drawn=(*fact.drawn, paid),
    )


def extended(units: int) -> lease_turns.LeaseExtended:
    return lease_turns.LeaseExtended(
        lease_id=LEASE,
        account_id=RENTER,
        term_us=2,
        parts=topped_up(units).parts,
        put_in=credit(units + 1),
        term_end_us=None,
        funds_end_us=None,
        at_us=AT_US,
        counted=(),
    )


def funds_taken(units: int) -> lease_turns.LeaseFundsTaken:
    return lease_turns.LeaseFundsTaken(
        lease_id=LEASE,
        account_id=OWNER,
        payment_id="pay_1",
        parts=topped_up(units).parts,
        funds_end_us=None,
        at_us=AT_US,
    )


def escrow_funded(units: int) -> shared_escrow.EscrowFunded:
    return shared_escrow.EscrowFunded(
        escrow_id="job_1",
        account_id=RENTER,
        depositor_account_id=OWNER,
        parts=topped_up(units).parts,
        put_in=credit(units + 1),
        ends_us=None,
        at_us=AT_US,
        counted=(),
    )


def topped_up(units: int) -> lease.LeaseToppedUp:
    parts = (EscrowPart("cash", credit(units), 2), EscrowPart("card", credit(1), 3, OWNER))
    return lease.LeaseToppedUp(
        lease_id=LEASE,
        account_id=RENTER,
        depositor_account_id=OWNER,
        parts=parts,
        put_in=credit(units + 1),
        funds_end_us=None,
        at_us=AT_US,
        counted=(),
    )


def capacity(
    physical: int, leased: int, stranded: int, unavailable: int, mined: int = 0
) -> device.CapacityAccrued:
    return device.CapacityAccrued(
        device_id=GPU,
        from_us=0,
        to_us=AT_US,
        physical_us=0,
        leased_ppm_us=0,
        stranded_ppm_us=0,
        unavailable_ppm_us=0,
        mined_ppm_us=0,
        at_us=AT_US,
        node_id="node_1",
        physical=Amount(Asset.GPU_MS, physical),
        leased=Amount(Asset.GPU_MS, leased),
        stranded=Amount(Asset.GPU_MS, stranded),
        unavailable=Amount(Asset.GPU_MS, unavailable),
        mined=Amount(Asset.GPU_MS, mined),
        lane=None,
        usage_position=None,
    )


def policy(version: int, cap: int) -> PolicyPublished:
    return PolicyPublished(
        version=version,
        epoch_length_us=1,
        segments=(EmissionSegment(1, 52, 1),),
        hard_cap=token(cap),
        compute_ppm=700_000,
        availability_ppm=200_000,
        treasury_ppm=100_000,
        compute_base="burned_value",
        holdback_epochs=0,
        effective_from_epoch=1,
        by="op",
        at_us=AT_US,
        rewards=None,
        governance=None,
        proposal=None,
    )


def sealed(compute: int, availability: int, treasury: int, before: int, carry: int) -> Any:
    return epoch.EpochSealed(
        epoch=1,
        cut_position=1,
        policy_version=1,
        emission=token(compute + availability + treasury),
        compute_pool=token(compute),
        availability_pool=token(availability),
        treasury_pool=token(treasury),
        compute_carry_before=token(before),
        rewards=token(compute + before + treasury - carry),
        compute_carry=token(carry),
        recipients=1,
        chunks=1,
        file_sha256="22" * 32,
        at_us=AT_US,
        unissued=token(0),
        recyclable=token(0),
        release=token(0),
        returned=token(0),
        returned_release=token(0),
        availability_carry_before=token(0),
        availability_carry=token(availability),
        compute_weight=0,
        availability_weight=0,
        availability_tier_2_weight=0,
        adjustments_open=(),
        price_snapshot=None,
        clients_sha256=None,
    )


@st.composite
def seals(draw: st.DrawFn) -> Any:
    compute, before = draw(units), draw(units)
    carry = draw(st.integers(0, compute + before))
    return sealed(compute, draw(units), draw(units), before, carry)


rewards = st.lists(
    st.builds(Reward, st.sampled_from((RENTER, OWNER, "treasury")), positive.map(token)), max_size=5
).map(tuple)
credited = st.builds(
    epoch.RewardsCredited, epoch=st.just(1), chunk=st.just(1), rewards=rewards, at_us=st.just(AT_US)
)
matured = st.builds(
    epoch.RewardsMatured, epoch=st.just(1), chunk=st.just(1), rewards=rewards, at_us=st.just(AT_US)
)


slashed = positive.map(
    lambda units: reward_changes.RewardSlashed(
        epoch=1,
        correction_id="c",
        account_id=OWNER,
        amount=token(units),
        reason="r",
        evidence_position=None,
        proposed_by="a",
        by="b",
        at_us=AT_US,
    )
)
forfeited = st.builds(
    reward_changes.RewardsForfeited,
    epoch=st.just(2),
    through_epoch=st.just(1),
    rewards=rewards,
    at_us=st.just(AT_US),
)


def nobodys(units: int) -> tuple[ClientPart, ...]:
    return (ClientPart("", units),) if units else ()


def earnings_matured(gross: int, reduced: int) -> maturity.EarningsMatured:
    return maturity.EarningsMatured(
        account_id=OWNER,
        after_position=0,
        through_position=9,
        gross=credit(gross + reduced),
        reduced=credit(reduced),
        amount=credit(gross),
        at_us=AT_US,
        clients=nobodys(gross),
        before=0,
    )


def earnings_swept(amount: int, to: str) -> maturity.EarningsSwept:
    return maturity.EarningsSwept(
        account_id=OWNER,
        day=1,
        amount=credit(amount),
        to_account_id=to,
        at_us=AT_US,
        clients=nobodys(amount),
        before=0,
    )


def cash_out_fact(kind: type[Any], amount: int, account_id: str | None) -> Any:
    common: dict[str, Any] = {"cash_out_id": "co_1", "amount": credit(amount), "at_us": AT_US}
    if kind is cash_out.CashOutRequested:
        return kind(
            account_id=OWNER, destination="acct_x", by="mem", clients=nobodys(amount), **common
        )
    if kind is cash_out.CashOutPaid:
        return kind(by="job", clients=nobodys(amount), **common)
    if kind is cash_out.CashOutReturned:
        return kind(account_id=account_id, returned=credit(amount), reason="r", **common)
    reason = {"reason": "r"} if kind is cash_out.CashOutFailed else {}
    return kind(account_id=account_id, by="job", **reason, **common)


def cash_outs(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(cash_out_fact, st.just(kind), positive, st.sampled_from((OWNER, None)))


def disputed(held: list[tuple[str, int]]) -> dispute.DisputeOpened:
    line = dispute.DisputedLine(
        position=7,
        charge=credit(10**9),
        claimed=credit(10**9),
        gpu_us=1,
        held=tuple(dispute.Held(who, units) for who, units in held),
        proven=True,
    )
    return dispute.DisputeOpened(
        dispute_id="dispute_1",
        lease_id="lease_1",
        volume_id=None,
        account_id=RENTER,
        provider_account_id=OWNER,
        side="renter",
        lines=(line, line),
        claimed=credit(1),
        reserved=credit(1),
        claim_code="other",
        claim_sha256=None,
        evidence=(),
        expires_at_us=AT_US,
        by="m",
        at_us=AT_US,
    )


def adjusted(given: int, payable: int) -> adjustment.AdjustmentBooked:
    lines = (
        adjustment.BookLine("dispute:dispute_1", given + payable),
        adjustment.BookLine(f"party:{RENTER}:cash", -given),
        adjustment.BookLine(f"party:{OWNER}:payable", -payable),
    )
    return adjustment.AdjustmentBooked(
        adjustment_id="adj_1",
        corrects_position=7,
        lease_id="lease_1",
        volume_id=None,
        account_id=RENTER,
        provider_account_id=OWNER,
        reason="dispute",
        cause="dispute:dispute_1",
        returned=given,
        recovered=given,
        owed=0,
        lines=lines,
        late=None,
        by="m",
        at_us=AT_US,
    )


def minted(amount: int) -> payout.EpochMintConfirmed:
    return payout.EpochMintConfirmed(
        epoch=1,
        amount=token(amount),
        settlement_id="22" * 32,
        tx_hash="0x3",
        block_number=6,
        at_us=AT_US,
    )


def paid(amount: int, set_aside: int = 0) -> payout.PayoutConfirmed:
    return payout.PayoutConfirmed(
        distributor="0xd",
        account_id=OWNER,
        address="0xab",
        seq=1,
        amount=token(amount),
        cumulative=token(amount),
        tx_hash="0x8",
        log_index=0,
        block_number=7,
        at_us=AT_US,
        set_aside=set_aside,
    )


def burned(credits: int, tokens: int) -> burn.BurnConfirmed:
    return burn.BurnConfirmed(
        burn_id=1,
        credits=credit(credits),
        tokens=token(tokens),
        tx_hash="0xbb",
        block_number=5,
        at_us=AT_US,
    )


@st.composite
def drawings(draw: st.DrawFn) -> tuple[Drawn, ...]:
    """Of the account itself and of who pays for it, each source once."""
    accounts = st.sampled_from((RENTER, "acct_payer"))
    parts = draw(st.dictionaries(st.tuples(accounts, sources), positive, max_size=5))
    return tuple(Drawn(who, source, credit(held)) for (who, source), held in parts.items())


def device_fee(drawn: tuple[Drawn, ...], owed: int) -> edge_device.DeviceFeeCharged:
    charge = credit(sum(one.amount.units for one in drawn) + owed)
    return edge_device.DeviceFeeCharged(
        account_id=RENTER,
        day="2026-11-20",
        unique=1,
        fee_per_month=charge,
        tariff_version=1,
        days_in_month=30,
        fee_days=charge.units * 30,
        due=charge,
        charge=charge,
        drawn=drawn,
        owed=credit(owed),
        at_us=AT_US,
    )


@st.composite
def region_days(draw: st.DrawFn) -> region_pool.RegionDayShared:
    """Some of what was gathered or carried goes to the operator and to shares, the rest on."""
    gathered, before, infra, participation, usage = (draw(st.integers(0, 10**9)) for _ in range(5))
    gathered += infra + participation + usage
    return region_pool.RegionDayShared(
        region_id="region_a",
        day=1,
        terms_version=1,
        gathered=credit(gathered),
        carry_before=credit(before),
        infra_due=credit(infra),
        arrears_before=credit(0),
        infra=credit(infra),
        infra_account_id=OWNER,
        arrears=credit(0),
        forgone=credit(0),
        participation=credit(participation),
        usage=credit(usage),
        carry=credit(gathered + before - infra - participation - usage),
        control_nodes=1,
        ingress_nodes=0,
        ingress_bytes=0,
        nodes=1,
        chunks=1,
        at_us=AT_US,
        infra_book=draw(st.sampled_from((None, "network:suspense"))),
    )


def region_shares(parts: list[tuple[str, int, bool]]) -> region_pool.RegionSharesPaid:
    """One node of several owners, some of whose accounts were closed."""
    told = tuple(
        region_pool.SharePart(account_id, units, "network:suspense" if is_closed else None)
        for account_id, units, is_closed in parts
    )
    units = sum(part.units for part in told)
    return region_pool.RegionSharesPaid(
        region_id="region_a",
        day=1,
        chunk=0,
        amount=credit(units),
        at_us=AT_US,
        shares=(region_pool.NodeShare("node_a", 5, 0, units, 0, units, told),),
    )


holders = st.sampled_from((None, RENTER))
REFUND: dict[str, st.SearchStrategy[Any]] = {
    "payment_id": st.just("pay_1"),
    "account_id": st.just(RENTER),
    "refund_id": st.just("ref_1"),
    "amount": positive.map(credit),
    "at_us": st.just(AT_US),
}


def paid_in(account_id: str | None, amount: int, confirm_at_us: int | None) -> Any:
    return payment.PaymentReceived(
        payment_id="pay_1",
        account_id=account_id,
        method="card",
        amount=credit(amount),
        reference="pi_1",
        saved_method=None,
        confirm_at_us=confirm_at_us,
        by="stripe",
        at_us=AT_US,
    )


@st.composite
def reversals(draw: st.DrawFn) -> Any:
    account_id, unspent = draw(holders), draw(positive)
    spent = draw(units) if account_id else 0
    return payment.PaymentReversed(
        payment_id="pay_1",
        account_id=account_id,
        reference="dp_1",
        amount=credit(unspent + spent),
        unspent=credit(unspent),
        spent=credit(spent),
        is_final=draw(st.booleans()),
        reason="fraudulent",
        at_us=AT_US,
    )


@st.composite
def resources(draw: st.DrawFn) -> resource_usage.ResourceAccrued:
    """In cash, split by shares; or burned credits, and whatever is left to burn for the rest."""
    is_burn = draw(st.booleans())
    drawn = tuple(one for one in draw(escrows) if (one.source == "burned") == is_burn)
    charge = sum(one.amount.units for one in drawn)
    shares = (draw(st.integers(0, PPM)), draw(st.integers(0, PPM)))
    return resource(drawn, Parts(0, 0, 0, charge) if is_burn else peel(charge, 1, 0, *shares))


def resource_hold(parts: tuple[EscrowPart, ...], *, returned: bool) -> Any:
    told: dict[str, Any] = {"lease_id": LEASE, "meter": "storage", "account_id": RENTER}
    told |= {"parts": parts, "at_us": AT_US}
    if not returned:
        return resource_usage.ResourceHeld(**told)
    return resource_usage.ResourceReturned(**told, from_us=0, until_us=9, ran_us=8, told_us=7)


def resource(drawn: tuple[EscrowPart, ...], parts: Parts) -> resource_usage.ResourceAccrued:
    return resource_usage.ResourceAccrued(
        lease_id=LEASE,
        meter="storage",
        unit="GB-second",
        node_id="node_1",
        account_id=RENTER,
        provider_account_id=OWNER,
        client_id="direct",
        project_id="",
        end_user_ref="",
        after_position=0,
        through_position=1,
        client_account_id=None,
        owners=(),
        lane=0,
        rows=1,
        mark=None,
        time_us=1,
        told_us=1,
        measured=1,
        quantity=1,
        quantity_new=1,
        rate=MeterRate("storage", credit(1), 1),
        tariff_version=1,
        charge=credit(parts.total),
        charge_new=credit(parts.total),
        parts=parts,
        parts_new=parts,
        drawn=drawn,
        refused=(),
        at_us=AT_US,
    )


def grant_opened(locked: int, unassigned: int) -> Any:
    return grant.GrantOpened(
        grant_id="grant_1",
        locked=token(locked),
        unassigned=token(unassigned),
        proposed_by="a",
        by="b",
        at_us=AT_US,
    )


def milestone_accepted(amount: int) -> Any:
    return grant.MilestoneAccepted(
        grant_id="grant_1",
        milestone_id="api",
        amount=token(amount),
        proposed_by="a",
        by="b",
        at_us=AT_US,
    )


def clawed_back(locked: int, unassigned: int) -> Any:
    return grant.GrantClawedBack(
        grant_id="grant_1",
        scope="unearned",
        locked=token(locked),
        unassigned=token(unassigned),
        proposed_by="a",
        by="b",
        at_us=AT_US,
    )


def program(kind: Any) -> Any:
    """A promotion that is opened or closed with so much in its fund."""
    return lambda amount: kind(
        program="spring", sponsor_account_id="acct_op", amount=credit(amount), by="op", at_us=AT_US
    )


def granted(amount: int) -> Any:
    return funding.PromotionGranted(
        account_id=RENTER,
        program="spring",
        amount=credit(amount),
        priority=1,
        expires_at_us=None,
        by="op",
        at_us=AT_US,
    )


def expired(amount: int) -> Any:
    return funding.PromotionExpired(
        account_id=RENTER, program="spring", amount=credit(amount), at_us=AT_US
    )


def storage(drawn: tuple[Drawn, ...], owed: int) -> storage_node.StorageNodeCharged:
    charge = credit(sum(one.amount.units for one in drawn) + owed)
    return storage_node.StorageNodeCharged(
        region_id="region_1",
        number=1,
        account_id=OWNER,
        until_us=AT_US,
        elapsed_us=1,
        charge=charge,
        charge_new=charge,
        drawn=drawn,
        owed=credit(owed),
        at_us=AT_US,
    )


FACTS: dict[type[Any], st.SearchStrategy[Any]] = {
    deposit.DepositConfirmed: deposits(),
    deposit.CreditsPurchaseConfirmed: purchases(),
    lease.LeaseReserved: reservations(),
    lease.LeaseClosed: closings(),
    lease.LeaseSettled: settlements(),
    lease.LeaseToppedUp: positive.map(topped_up),
    lease_turns.LeaseExtended: positive.map(extended),
    lease_turns.LeaseFundsTaken: positive.map(funds_taken),
    shared_escrow.EscrowFunded: positive.map(escrow_funded),
    shared_escrow.EscrowReturned: escrows.map(
        lambda parts: shared_escrow.EscrowReturned(
            escrow_id="job_1", account_id=RENTER, parts=parts, at_us=AT_US
        )
    ),
    shared_escrow.EscrowFundsTaken: escrows.map(
        lambda parts: shared_escrow.EscrowFundsTaken(
            escrow_id="job_1",
            account_id=OWNER,
            payment_id="pay_1",
            parts=parts,
            allotted=None,
            ends_us=None,
            at_us=AT_US,
        )
    ),
    grant.GrantOpened: st.builds(grant_opened, units, units),
    grant.MilestoneAccepted: positive.map(milestone_accepted),
    grant.GrantClawedBack: st.builds(clawed_back, units, units),
    promotion.PromotionOpened: positive.map(program(promotion.PromotionOpened)),
    promotion.PromotionClosed: units.map(program(promotion.PromotionClosed)),
    funding.PromotionGranted: positive.map(granted),
    funding.PromotionExpired: positive.map(expired),
    lease.UsageAccrued: accruals(),
    device.CapacityAccrued: st.builds(
        lambda leased, stranded, away, mined, idle: capacity(
            leased + stranded + away + mined + idle, leased, stranded, away, mined
        ),
        units,
        units,
        units,
        units,
        units,
    ),
    edge_device.DeviceFeeCharged: st.builds(device_fee, drawings(), units),
    resource_usage.ResourceAccrued: resources(),
    resource_usage.ResourceHeld: escrows.map(lambda parts: resource_hold(parts, returned=False)),
    resource_usage.ResourceReturned: escrows.map(lambda parts: resource_hold(parts, returned=True)),
    dispute.DisputeOpened: st.lists(
        st.tuples(st.sampled_from((OWNER, "acct_worker")), positive), max_size=4
    ).map(disputed),
    adjustment.AdjustmentBooked: st.builds(adjusted, units, units),
    storage_node.StorageNodeCharged: st.builds(storage, drawings(), units),
    PolicyPublished: st.builds(policy, st.integers(1, 3), positive),
    maturity.EarningsMatured: st.builds(earnings_matured, units, units),
    maturity.EarningsSwept: st.builds(earnings_swept, positive, st.sampled_from((OWNER, RENTER))),
    maturity.EarningsForgone: positive.map(
        lambda amount: maturity.EarningsForgone(
            account_id=OWNER, amount=credit(amount), by="mem", at_us=AT_US
        )
    ),
    region_pool.RegionEarningsGathered: positive.map(
        lambda units: region_pool.RegionEarningsGathered(
            region_id="region_a",
            day=1,
            account_id=OWNER,
            through_position=9,
            nodes=(region_pool.NodeEarned("node_a", units),),
            amount=credit(units),
            at_us=AT_US,
            clients=nobodys(units),
        )
    ),
    region_pool.RegionDayShared: region_days(),
    region_pool.RegionSharesPaid: st.lists(
        st.tuples(st.sampled_from((OWNER, RENTER)), positive, st.booleans()), max_size=4
    ).map(region_shares),
    **{
        kind: cash_outs(kind)
        for kind in (
            cash_out.CashOutRequested,
            cash_out.CashOutPaid,
            cash_out.CashOutFailed,
            cash_out.CashOutCancelled,
            cash_out.CashOutReturned,
        )
    },
    epoch.EpochSealed: seals(),
    epoch.RewardsCredited: credited,
    epoch.RewardsMatured: matured,
    reward_changes.RewardSlashed: slashed,
    reward_changes.RewardsForfeited: forfeited,
    payout.EpochMintConfirmed: positive.map(minted),
    payout.PayoutConfirmed: positive.flatmap(
        lambda most: st.builds(paid, st.just(most), st.integers(0, most))
    ),
    burn.BurnConfirmed: st.builds(burned, positive, positive),
    payment.PaymentReceived: st.builds(
        paid_in, holders, positive, st.sampled_from((None, AT_US + 1))
    ),
    payment.PaymentConfirmed: st.builds(
        payment.PaymentConfirmed,
        payment_id=st.just("pay_1"),
        account_id=holders,
        amount=positive.map(credit),
        at_us=st.just(AT_US),
    ),
    payment.PaymentReversed: reversals(),
    payment.PaymentReinstated: st.builds(
        payment.PaymentReinstated,
        payment_id=st.just("pay_1"),
        account_id=holders,
        reference=st.just("dp_1"),
        amount=positive.map(credit),
        is_final=st.booleans(),
        at_us=st.just(AT_US),
    ),
    payment.PaymentRefundAsked: st.builds(
        payment.PaymentRefundAsked, **REFUND, is_final=st.booleans(), by=st.just("op")
    ),
    payment.PaymentRefunded: st.builds(
        payment.PaymentRefunded, **REFUND, is_final=st.booleans(), reference=st.just("re_1")
    ),
    payment.PaymentRefundFailed: st.builds(
        payment.PaymentRefundFailed, **REFUND, is_final=st.booleans(), reason=st.just("closed")
    ),
    card_money.CardMoneyMoved: st.builds(
        card_money.CardMoneyMoved,
        account_id=st.just(RENTER),
        cause=st.just("pay_1"),
        exposed=units.map(credit),
        settled=units.map(credit),
        to_cash=units.map(credit),
        at_us=st.just(AT_US),
    ),
    debt.DebtRepaid: st.builds(
        debt.DebtRepaid,
        account_id=st.just(RENTER),
        cause=st.just("pay_1"),
        at_us=st.just(AT_US),
        paid=st.lists(
            st.builds(debt.Repaid, st.sampled_from(debt.REPAYS), positive.map(credit)),
            min_size=1,
            max_size=3,
            unique_by=lambda part: part.source,
        ).map(tuple),
    ),
    debt.DebtWrittenOff: st.builds(
        debt.DebtWrittenOff,
        account_id=st.just(RENTER),
        amount=positive.map(credit),
        reason=st.just("gone"),
        by=st.just("op"),
        at_us=st.just(AT_US),
    ),
    debt.ReserveFunded: st.builds(
        debt.ReserveFunded, amount=positive.map(credit), by=st.just("op"), at_us=st.just(AT_US)
    ),
    **priced.FACTS,
}


def test_every_fact_that_moves_money_has_an_example_here() -> None:
    assert FACTS.keys() == postings._BOOKS.keys()


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_entry_sums_to_zero_and_stands_in_the_chart(kind: type, data: st.DataObject) -> None:
    fact = data.draw(FACTS[kind])
    assert type(fact) is kind
    check(entries_for(fact))


def test_a_whole_story_sums_to_zero_fact_by_fact_and_leaves_no_account_on_the_wrong_side() -> None:
    balances: dict[str, int] = {}
    for _, fact in story(Size()):
        entries = entries_for(fact)
        check(entries)
        for name, moved in (line for each in entries for line in each.lines):
            balances[name] = balances.get(name, 0) + kind_of(name).side * moved
            # The story emits tokens before any policy opens the account they come from.
            assert balances[name] >= 0 or name.startswith("emission:"), (name, fact)
    assert balances["party:acct_cash:cash"] > 0


def test_facts_that_move_nothing_book_nothing() -> None:
    quiet = [fact for _, fact in story(Size()) if type(fact) not in FACTS]
    assert {type(fact) for fact in quiet} < set(codec.NAMES.values())
    assert all(entries_for(fact) == () for fact in quiet)


def test_an_entry_drops_zero_lines_and_adds_up_an_account_that_occurs_twice() -> None:
    found = list(entry(Asset.CREDIT, ("a", 3), ("b", 0), ("a", 2), ("c", -5), ("d", 1), ("d", -1)))
    assert found == [Entry(Asset.CREDIT, (("a", 5), ("c", -5)))]
    assert list(entry(Asset.CREDIT, ("a", 0))) == []
    with pytest.raises(AssertionError):
        list(entry(Asset.CREDIT, ("a", 1)))


# --- what goes where --------------------------------------------------------------------------


def test_an_accrual_paid_in_cash_splits_between_provider_platform_and_burn() -> None:
    fact = accrued(
        {"grant": 1_000_000, "cash": 1_780_000}, Parts(250_000, 1_265_000, 1_000_000, 265_000)
    )
    assert lines(fact) == {
        "escrow:lease_1:1:grant": 1_000_000,
        "escrow:lease_1:1:cash": 1_780_000,
        "network:revenue:usage": -250_000,
        "party:acct_owner:holdback": -1_265_000,
        "network:revenue:take": -1_000_000,
        "network:burn_due": -265_000,
    }


def test_an_accrual_paid_in_burned_credits_retires_them_and_leaves_nothing_to_burn_again() -> None:
    fact = accrued({"burned": 2_780_000}, Parts(0, 0, 0, 2_780_000))
    assert lines(fact) == {"escrow:lease_1:1:burned": 2_780_000, "world:burned": -2_780_000}


def test_the_device_fee_is_drawn_from_balances_and_the_rest_is_a_debt() -> None:
    drawn = (Drawn(RENTER, "cash", credit(300_000)), Drawn("acct_payer", "card", credit(100_000)))
    assert lines(device_fee(drawn, 83_870)) == {
        "party:acct_renter:cash": 300_000,
        "party:acct_payer:card": 100_000,
        "party:acct_renter:owed": 83_870,
        "network:revenue:device": -483_870,
    }


def test_earnings_go_from_holdback_to_payable_to_the_billing_account() -> None:
    assert lines(earnings_matured(5, 2)) == {
        "party:acct_owner:holdback": 5,
        "party:acct_owner:payable": -5,
    }
    assert lines(earnings_swept(5, RENTER)) == {
        "party:acct_owner:payable": 5,
        "party:acct_renter:earned": -5,
    }
    with pytest.raises(AssertionError):
        lines(replace(earnings_swept(5, RENTER), clients=nobodys(4)))


def test_a_resource_is_paid_from_its_own_hold_and_shared_like_a_charge() -> None:
    """R-7, J-6: other resources than the GPU are billed."""
    held = resource_usage.ResourceHeld(
        lease_id=LEASE,
        meter="storage",
        account_id=RENTER,
        parts=(EscrowPart("cash", credit(100), 2),),
        at_us=AT_US,
    )
    hold = f"escrow:{LEASE}/storage:2:cash"
    assert lines(held) == {"party:acct_renter:cash": 100, hold: -100}
    drawn = (EscrowPart("cash", credit(100), 2),)
    assert lines(resource(drawn, Parts(0, 50, 40, 10))) == {
        hold: 100,
        "party:acct_owner:holdback": -50,
        "network:revenue:take": -40,
        "network:burn_due": -10,
    }


def test_what_is_kept_of_a_term_paid_by_burning_is_retired() -> None:
    kept = reserved_term.TermEndedEarly(
        lease_id=LEASE,
        account_id=RENTER,
        provider_account_id=OWNER,
        months=3,
        refund_ppm=0,
        unused=credit(70),
        refunded=credit(0),
        kept=credit(70),
        parts=Parts(0, 0, 0, 70),
        drawn=(EscrowPart("burned", credit(70)),),
        at_us=AT_US,
        owners=(),
        client_account_id=None,
        node_id="node_1",
    )
    assert lines(kept) == {f"escrow:{LEASE}:1:burned": 70, "world:burned": -70}
    in_cash = replace(kept, drawn=(EscrowPart("cash", credit(70)),))
    assert lines(in_cash) == {f"escrow:{LEASE}:1:cash": 70, "network:burn_due": -70}


def test_burned_credits_pay_for_resources_by_being_retired() -> None:
    drawn = (EscrowPart("burned", credit(70)),)
    assert lines(resource(drawn, Parts(0, 0, 0, 70))) == {
        f"escrow:{LEASE}/storage:1:burned": 70,
        "world:burned": -70,
    }


def test_a_cash_out_leaves_earned_when_asked_and_the_bank_when_paid() -> None:
    earned, in_flight = "party:acct_owner:earned", "payout:in_flight"
    asked = cash_out_fact(cash_out.CashOutRequested, 5, OWNER)
    assert lines(asked) == {earned: 5, in_flight: -5}
    paid = cash_out_fact(cash_out.CashOutPaid, 5, OWNER)
    assert lines(paid) == {in_flight: 5, "world:bank": -5}
    for back in (cash_out.CashOutFailed, cash_out.CashOutCancelled):
        assert lines(cash_out_fact(back, 5, OWNER)) == {in_flight: 5, earned: -5}
        assert lines(cash_out_fact(back, 5, None)) == {in_flight: 5, "network:suspense": -5}
    returned = cash_out_fact(cash_out.CashOutReturned, 5, OWNER)
    assert lines(returned) == {"world:bank": 5, earned: -5}


def test_a_storage_node_is_paid_by_its_provider_and_has_a_revenue_of_its_own() -> None:
    drawn = (Drawn(OWNER, "earned", credit(70)),)
    assert lines(storage(drawn, 30)) == {
        "party:acct_owner:earned": 70,
        "party:acct_owner:owed": 30,
        "network:revenue:storage": -100,
    }


def test_an_accrual_that_earned_nothing_books_nothing() -> None:
    assert entries_for(accrued({}, Parts(0, 0, 0, 0))) == ()


def test_burned_credits_that_do_not_pay_the_whole_burn_are_a_bug() -> None:
    with pytest.raises(AssertionError):
        entries_for(accrued({"burned": 5}, Parts(1, 0, 0, 4)))


def test_physical_time_is_idle_less_what_was_leased_stranded_unavailable_or_mined() -> None:
    assert lines(capacity(3_600_000, 900_000, 100_000, 600_000, 300_000), Asset.GPU_MS) == {
        "device:GPU-1:physical": -3_600_000,
        "device:GPU-1:idle": 1_700_000,
        "device:GPU-1:leased": 900_000,
        "device:GPU-1:stranded": 100_000,
        "device:GPU-1:unavailable": 600_000,
        "device:GPU-1:mined": 300_000,
    }


def test_a_device_leased_twice_takes_idle_below_zero_which_the_books_refuse() -> None:
    moved = lines(capacity(3_600_000, 7_200_000, 0, 0), Asset.GPU_MS)
    assert moved["device:GPU-1:idle"] * kind_of("device:GPU-1:idle").side < 0


def test_an_unknown_buyers_credits_wait_in_suspense_and_the_tokens_are_recycled() -> None:
    fact = deposit.CreditsPurchaseConfirmed(
        burner="0xb",
        purchase_id=1,
        account_id=None,
        payer="0x1",
        tokens_burned=token(7),
        credits=credit(5),
        price_round=1,
        tx_hash="0x2",
        log_index=0,
        block_number=9,
        at_us=AT_US,
    )
    assert lines(fact) == {"world:burned": 5, "network:suspense": -5}
    assert lines(fact, Asset.TOKEN) == {"recycle:authority": 7, "recycle:pool": -7}


def test_only_the_first_policy_opens_the_hard_cap() -> None:
    opened = {"emission:authority": 644, "emission:unissued": -644}
    assert lines(policy(1, 644), Asset.TOKEN) == opened
    assert entries_for(policy(2, 644)) == ()


def test_a_seal_gives_emission_and_old_carry_to_rewards_new_carry_and_availability() -> None:
    assert lines(sealed(70, 20, 10, before=5, carry=3), Asset.TOKEN) == {
        "emission:unissued": 100,
        "emission:authority": -100,
        "chain:mint_due": 100,
        "pool:availability:carry": -20,
        "pool:compute:carry": 2,
        "epoch:1:unmatured": -82,
    }


def test_what_the_seal_returned_is_neither_minted_nor_drawn() -> None:
    """100 by the schedule and 50 of what was burned; 12 and 5 of them go to nobody and go back."""
    whole = sealed(70, 20, 10, before=5, carry=3)
    fact = replace(
        whole,
        release=token(50),
        returned=token(17),
        returned_release=token(5),
        rewards=token(70 + 20 + 10 + 50 - 17 - 18 + 5 - 3),
        availability_carry_before=token(2),
        availability_carry=token(20),
    )
    assert lines(fact, Asset.TOKEN) == {
        "emission:unissued": 88,
        "emission:authority": -88,
        "recycle:pool": 45,
        "recycle:authority": -45,
        "chain:mint_due": 133,
        "pool:availability:carry": -18,
        "pool:compute:carry": 2,
        "epoch:1:unmatured": -117,
    }


def test_a_token_goes_from_the_epoch_to_the_party_and_out_of_the_distributor() -> None:
    """Every step ends where the next begins; at the end only what was paid is outside."""
    reward = (Reward(OWNER, token(9)),)
    steps = (
        minted(9),
        epoch.RewardsCredited(epoch=1, chunk=1, rewards=reward, at_us=AT_US),
        epoch.RewardsMatured(epoch=1, chunk=1, rewards=reward, at_us=AT_US),
        paid(9),
    )
    net: dict[str, int] = {}
    for fact in steps:
        for name, moved in lines(fact, Asset.TOKEN).items():
            net[name] = net.get(name, 0) + moved
    assert {name: moved for name, moved in net.items() if moved} == {
        "chain:mint_due": -9,
        "epoch:1:unmatured": 9,
    }


def test_a_slash_is_the_treasurys_at_once_and_a_forfeit_is_carried_in_the_compute_pool() -> None:
    fact = reward_changes.RewardSlashed(
        epoch=1,
        correction_id="c",
        account_id=OWNER,
        amount=token(4),
        reason="r",
        evidence_position=None,
        proposed_by="a",
        by="b",
        at_us=AT_US,
    )
    assert lines(fact, Asset.TOKEN) == {f"party:{OWNER}:unmatured": 4, "party:treasury:matured": -4}
    left = (Reward(OWNER, token(5)), Reward(RENTER, token(2)))
    back = reward_changes.RewardsForfeited(epoch=2, through_epoch=1, rewards=left, at_us=AT_US)
    assert lines(back, Asset.TOKEN) == {
        f"party:{OWNER}:matured": 5,
        f"party:{RENTER}:matured": 2,
        "pool:compute:carry": -7,
    }


@pytest.mark.parametrize("device_id", ["0000:3b:00.0", "a:leased", "GPU:physical", "::"])
def test_the_time_of_a_device_is_booked_whatever_its_own_name_is(device_id: str) -> None:
    """Hardware names itself; a colon in it must not stop the capacity of everybody."""
    fact = device.CapacityAccrued(
        device_id=device_id,
        from_us=AT_US,
        to_us=AT_US + 10_000,
        leased=Amount(Asset.GPU_MS, 4),
        physical=Amount(Asset.GPU_MS, 10),
        stranded=Amount(Asset.GPU_MS, 2),
        unavailable=Amount(Asset.GPU_MS, 1),
        mined=Amount(Asset.GPU_MS, 2),
        physical_us=10_000,
        leased_ppm_us=4 * 10**9,
        stranded_ppm_us=2 * 10**9,
        unavailable_ppm_us=10**9,
        mined_ppm_us=2 * 10**9,
        at_us=AT_US,
        node_id="node_1",
        lane=None,
        usage_position=None,
    )
    check(entries_for(fact))
    booked = lines(fact, Asset.GPU_MS)
    assert {name.rpartition(":")[2]: moved for name, moved in booked.items()} == {
        "physical": -10,
        "idle": 1,
        "leased": 4,
        "stranded": 2,
        "unavailable": 1,
        "mined": 2,
    }
    assert all(name.startswith(f"device:{device_id}:") for name in booked)


# --- what a bill calls them ------------------------------------------------------------------

OF_NO_PARTY = {
    "device.capacity_accrued.v1",
    "policy.published.v1",
    "epoch.sealed.v1",
    "epoch.mint_confirmed.v1",
    "burn.confirmed.v1",
    "milestone.accepted.v1",
    "payment.confirmed.v1",
    "payment.refunded.v1",
    "reserve.funded.v1",
    "cash_out.paid.v1",
}
"""Facts that move no party's account and no escrow: no bill shows them."""


def test_every_fact_that_moves_a_party_has_a_kind_on_its_bill() -> None:
    """A fact that books on `party:` or `escrow:` accounts goes into
    `projections/income/movements.py`.
    """
    booked = {codec.NAME_OF[kind] for kind in postings._BOOKS}
    assert booked == KINDS.keys() | OF_NO_PARTY
