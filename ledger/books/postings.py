"""From facts to double entry: one fact, at most one entry per asset, and each sums to zero.

    sum(units of an entry) == 0            debits are positive, credits negative

Pure. The append writes these entries in its own transaction, and PostgreSQL itself refuses an
entry that does not balance or that would take an account below zero. The table of accounts and of
postings is in design economics 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from domain.chain.burn import BurnConfirmed
from domain.chain.payout_root import EpochMintConfirmed, PayoutConfirmed
from domain.corrections.dispute import DisputeOpened
from domain.epochs.epoch import EpochSealed, RewardsCredited, RewardsMatured
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_changes import RewardsForfeited, RewardSlashed
from domain.fleet.device import CapacityAccrued
from domain.fleet.edge_device import DeviceFeeCharged
from domain.fleet.storage_node import StorageNodeCharged
from domain.funds.card_money import CardMoneyMoved
from domain.funds.debt import DebtRepaid, DebtWrittenOff, ReserveFunded
from domain.funds.deposit import CreditsPurchaseConfirmed, DepositConfirmed
from domain.funds.draw import Drawn
from domain.funds.funding import PromotionExpired, PromotionGranted
from domain.funds.payment import (
    PaymentConfirmed,
    PaymentReceived,
    PaymentRefundAsked,
    PaymentRefunded,
    PaymentRefundFailed,
    PaymentReinstated,
    PaymentReversed,
)
from domain.funds.promotion import PromotionClosed, PromotionOpened, fund_of
from domain.governance.grant import TREASURY, GrantClawedBack, GrantOpened, MilestoneAccepted
from domain.income.adjustment import AdjustmentBooked
from domain.income.cash_out import (
    CashOutCancelled,
    CashOutFailed,
    CashOutPaid,
    CashOutRequested,
    CashOutReturned,
)
from domain.income.maturity import EarningsForgone, EarningsMatured, EarningsSwept
from domain.income.region_pool import RegionDayShared, RegionEarningsGathered, RegionSharesPaid
from domain.lease.lease import (
    EscrowPart,
    LeaseClosed,
    LeaseReserved,
    LeaseSettled,
    LeaseToppedUp,
    UsageAccrued,
)
from domain.lease.reserved_term import TermEndedEarly
from domain.lease.shared_escrow import EscrowFunded, EscrowFundsTaken, EscrowReturned
from domain.lease.turns import LeaseExtended, LeaseFundsTaken
from domain.leasing.other_resources import ResourceAccrued
from domain.market.auction import (
    AuctionAwarded,
    AuctionEnded,
    BidLapsed,
    BidPlaced,
    BidWithdrawn,
    DepositBack,
    DepositPart,
    WinnerDepositForfeited,
    WinnerDepositReturned,
    deposit_book,
)
from domain.money import Amount, Asset


@dataclass(frozen=True, slots=True)
class Entry:
    """One balanced entry: (account name, units), each account once."""

    asset: Asset
    lines: tuple[tuple[str, int], ...]


def entries_for(fact: Any) -> tuple[Entry, ...]:
    """The entries a fact books; most facts move nothing."""
    book = _BOOKS.get(type(fact))
    return () if book is None else tuple(book(fact))


def entry(asset: Asset, *lines: tuple[str, int]) -> Iterable[Entry]:
    """An entry without its zero lines, accounts that occur twice added up; nothing if empty."""
    sums: dict[str, int] = {}
    for account, units in lines:
        sums[account] = sums.get(account, 0) + units
    kept = tuple((account, units) for account, units in sums.items() if units)
    assert sum(units for _, units in kept) == 0, lines
    if kept:
        yield Entry(asset, kept)


def _deposit(fact: DepositConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    world = "world:bank" if fact.source == "cash" else "world:card"
    return entry(Asset.CREDIT, (world, units), (f"party:{fact.account_id}:{fact.source}", -units))


def _purchase(fact: CreditsPurchaseConfirmed) -> Iterable[Entry]:
    credits, burned = fact.credits.units, fact.tokens_burned.units
    buyer = "network:suspense" if fact.account_id is None else f"party:{fact.account_id}:burned"
    yield from entry(Asset.CREDIT, ("world:burned", credits), (buyer, -credits))
    yield from entry(Asset.TOKEN, ("recycle:authority", burned), ("recycle:pool", -burned))


def _world(is_final: bool) -> str:
    return "world:bank" if is_final else "world:card"


def _holder(account_id: str | None, is_final: bool) -> str:
    """Whose credits stand against money of the world; nobody's wait in suspense."""
    if account_id is None:
        return "network:suspense"
    return f"party:{account_id}:{'cash' if is_final else 'card'}"


def _received(fact: PaymentReceived) -> Iterable[Entry]:
    units, is_final = fact.amount.units, fact.confirm_at_us is None
    holder = _holder(fact.account_id, is_final)
    return entry(Asset.CREDIT, (_world(is_final), units), (holder, -units))


def _confirmed(fact: PaymentConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.CREDIT, ("world:bank", units), ("world:card", -units))


def _reversed(fact: PaymentReversed) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        (_holder(fact.account_id, fact.is_final), fact.unspent.units),
        (f"party:{fact.account_id}:owed", fact.spent.units),
        (_world(fact.is_final), -fact.amount.units),
    )


def _reinstated(fact: PaymentReinstated) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, (_world(fact.is_final), units), (holder, -units))


def _refund_asked(fact: PaymentRefundAsked) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, (holder, units), ("payout:in_flight", -units))


def _refunded(fact: PaymentRefunded) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.CREDIT, ("payout:in_flight", units), (_world(fact.is_final), -units))


def _refund_failed(fact: PaymentRefundFailed) -> Iterable[Entry]:
    units, holder = fact.amount.units, _holder(fact.account_id, fact.is_final)
    return entry(Asset.CREDIT, ("payout:in_flight", units), (holder, -units))


def _card_money(fact: CardMoneyMoved) -> Iterable[Entry]:
    units, party = fact.to_cash.units, f"party:{fact.account_id}"
    return entry(Asset.CREDIT, (f"{party}:card", units), (f"{party}:cash", -units))


def _repaid(fact: DebtRepaid) -> Iterable[Entry]:
    party = f"party:{fact.account_id}"
    paid = [(f"{party}:{part.source}", part.amount.units) for part in fact.paid]
    return entry(Asset.CREDIT, *paid, (f"{party}:owed", -sum(units for _, units in paid)))


def _written_off(fact: DebtWrittenOff) -> Iterable[Entry]:
    units, owed = fact.amount.units, f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, ("network:chargeback_reserve", units), (owed, -units))


def _reserve(fact: ReserveFunded) -> Iterable[Entry]:
    units = fact.amount.units
    lines = (("network:revenue:take", units), ("network:chargeback_reserve", -units))
    return entry(Asset.CREDIT, *lines)


def _escrow(escrow_id: str, part: EscrowPart) -> str:
    """The escrow account of one deposit and source."""
    return f"escrow:{escrow_id}:{part.number}:{part.source}"


def _deposited(
    owner_account_id: str, escrow_id: str, parts: tuple[EscrowPart, ...], sign: int
) -> Iterable[Entry]:
    """Credits into the escrow (sign 1), or back to whoever put them there (sign -1)."""
    lines: list[tuple[str, int]] = []
    for part in parts:
        units = sign * part.amount.units
        lines.append((f"party:{part.account_id or owner_account_id}:{part.source}", units))
        lines.append((_escrow(escrow_id, part), -units))
    return entry(Asset.CREDIT, *lines)


def _promotion_opened(fact: PromotionOpened) -> Iterable[Entry]:
    """A fund is the sponsor's cash: whoever is paid with a grant is paid with money."""
    units, sponsor = fact.amount.units, f"party:{fact.sponsor_account_id}:cash"
    return entry(Asset.CREDIT, (sponsor, units), (fund_of(fact.program), -units))


def _promotion_closed(fact: PromotionClosed) -> Iterable[Entry]:
    units, sponsor = fact.amount.units, f"party:{fact.sponsor_account_id}:cash"
    return entry(Asset.CREDIT, (fund_of(fact.program), units), (sponsor, -units))


def _promotion_granted(fact: PromotionGranted) -> Iterable[Entry]:
    units, granted = fact.amount.units, f"party:{fact.account_id}:grant.{fact.program}"
    return entry(Asset.CREDIT, (fund_of(fact.program), units), (granted, -units))


def _promotion_expired(fact: PromotionExpired) -> Iterable[Entry]:
    units, granted = fact.amount.units, f"party:{fact.account_id}:grant.{fact.program}"
    return entry(Asset.CREDIT, (granted, units), ("network:breakage", -units))


def _grant_opened(fact: GrantOpened) -> Iterable[Entry]:
    """Set aside from what has matured to the treasury."""
    locked, unassigned = fact.locked.units, fact.unassigned.units
    return entry(
        Asset.TOKEN,
        (TREASURY, locked + unassigned),
        (f"grant:{fact.grant_id}:locked", -locked),
        (f"grant:{fact.grant_id}:unassigned", -unassigned),
    )


def _milestone_accepted(fact: MilestoneAccepted) -> Iterable[Entry]:
    units, whose = fact.amount.units, f"grant:{fact.grant_id}"
    return entry(Asset.TOKEN, (f"{whose}:locked", units), (f"{whose}:unlocked", -units))


def _grant_clawed_back(fact: GrantClawedBack) -> Iterable[Entry]:
    locked, unassigned = fact.locked.units, fact.unassigned.units
    return entry(
        Asset.TOKEN,
        (f"grant:{fact.grant_id}:locked", locked),
        (f"grant:{fact.grant_id}:unassigned", unassigned),
        (TREASURY, -locked - unassigned),
    )


def _reserved(fact: LeaseReserved) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.escrow, 1)


def _topped_up(fact: LeaseToppedUp | LeaseExtended) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.parts, 1)


def _closed(fact: LeaseClosed | LeaseSettled) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.lease_id, fact.refund, -1)


def _funds_taken(fact: LeaseFundsTaken) -> Iterable[Entry]:
    """What was held for work that is not done any more pays the debt of a reversed payment."""
    taken = [(_escrow(fact.lease_id, part), part.amount.units) for part in fact.parts]
    owed = f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, *taken, (owed, -sum(units for _, units in taken)))


def _escrow_funded(fact: EscrowFunded) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.escrow_id, fact.parts, 1)


def _escrow_returned(fact: EscrowReturned) -> Iterable[Entry]:
    return _deposited(fact.account_id, fact.escrow_id, fact.parts, -1)


def _escrow_taken(fact: EscrowFundsTaken) -> Iterable[Entry]:
    taken = [(_escrow(fact.escrow_id, part), part.amount.units) for part in fact.parts]
    owed = f"party:{fact.account_id}:owed"
    return entry(Asset.CREDIT, *taken, (owed, -sum(units for _, units in taken)))


def _accrued(fact: UsageAccrued) -> Iterable[Entry]:
    """Escrow to the owners, the client and the platform; burned credits are retired at use. What
    the escrow is short of is owed, and whoever earned it is paid all the same.
    """
    new, escrow_id = fact.parts_new, fact.escrow_id or fact.lease_id
    drawn = [(_escrow(escrow_id, part), part.amount.units) for part in fact.drawn]
    burned = sum(part.amount.units for part in fact.drawn if part.source == "burned")
    assert burned in (0, new.burn), fact
    if fact.owed is not None:
        drawn.append((f"party:{fact.owed.account_id}:owed", fact.owed.amount.units))
    federated = 0 if fact.federated is None else fact.federated.new.units
    owners = [(fact.provider_account_id, new.provider)]
    if fact.owners:
        owners = [(part.account_id, part.units_new) for part in fact.owners]
    assert sum(units for _, units in owners) == new.provider, fact
    if new.client:
        assert fact.client_account_id is not None, fact
        owners.append((fact.client_account_id, new.client))
    return entry(
        Asset.CREDIT,
        *drawn,
        ("network:revenue:usage", -new.fee),
        ("network:revenue:federated", -federated),
        *((f"party:{account_id}:holdback", -units) for account_id, units in owners),
        ("network:revenue:take", -new.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - new.burn),
    )


def _bid_lines(
    account_id: str, parts: tuple[DepositPart, ...], to_account_id: str, sign: int
) -> list[tuple[str, int]]:
    """A deposit aside (sign 1), or from there to whoever has it now, source by source (-1)."""
    lines: list[tuple[str, int]] = []
    for part in parts:
        units = sign * part.amount.units
        lines.append((f"party:{to_account_id}:{part.source}", units))
        lines.append((deposit_book(account_id, part.source), -units))
    return lines


def _bid_placed(fact: BidPlaced) -> Iterable[Entry]:
    return entry(Asset.CREDIT, *_bid_lines(fact.account_id, fact.deposit, fact.account_id, 1))


def _bid_back(fact: BidWithdrawn | BidLapsed) -> Iterable[Entry]:
    return entry(Asset.CREDIT, *_bid_lines(fact.account_id, fact.returned, fact.account_id, -1))


def _deposits_back(fact: AuctionAwarded | AuctionEnded | WinnerDepositReturned) -> Iterable[Entry]:
    returned = (fact.returned,) if isinstance(fact.returned, DepositBack) else fact.returned
    lines = [
        line
        for one in returned
        for line in _bid_lines(one.account_id, one.parts, one.account_id, -1)
    ]
    return entry(Asset.CREDIT, *lines)


def _deposit_forfeited(fact: WinnerDepositForfeited) -> Iterable[Entry]:
    """To the network."""
    whose = fact.forfeited
    held = [(deposit_book(whose.account_id, one.source), one.amount.units) for one in whose.parts]
    return entry(Asset.CREDIT, *held, ("network:revenue:take", -sum(units for _, units in held)))


def _term_ended_early(fact: TermEndedEarly) -> Iterable[Entry]:
    """What is kept of a prepaid term goes where a charge goes."""
    parts = fact.parts
    drawn = [(_escrow(fact.lease_id, part), part.amount.units) for part in fact.drawn]
    burned = sum(part.amount.units for part in fact.drawn if part.source == "burned")
    assert burned in (0, parts.burn), fact
    owners = [(fact.provider_account_id, parts.provider)]
    if fact.owners:
        owners = [(part.account_id, part.units_new) for part in fact.owners]
    assert sum(units for _, units in owners) == parts.provider, fact
    if parts.client:
        assert fact.client_account_id is not None, fact
        owners.append((fact.client_account_id, parts.client))
    return entry(
        Asset.CREDIT,
        *drawn,
        ("network:revenue:usage", -parts.fee),
        *((f"party:{account_id}:holdback", -units) for account_id, units in owners),
        ("network:revenue:take", -parts.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - parts.burn),
    )


def _taken(account_id: str, drawn: tuple[Drawn, ...], owed: Amount) -> list[tuple[str, int]]:
    """The debits of a charge without an escrow: what was there, and the rest as a debt."""
    paid = [(f"party:{one.account_id}:{one.source}", one.amount.units) for one in drawn]
    return [*paid, (f"party:{account_id}:owed", owed.units)]


def _device_fee(fact: DeviceFeeCharged) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        *_taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:device", -fact.charge.units),
    )


def _earnings_matured(fact: EarningsMatured) -> Iterable[Entry]:
    units = fact.amount.units
    party = f"party:{fact.account_id}"
    return entry(Asset.CREDIT, (f"{party}:holdback", units), (f"{party}:payable", -units))


def _earnings_swept(fact: EarningsSwept) -> Iterable[Entry]:
    units = fact.amount.units
    swept, earned = f"party:{fact.account_id}:payable", f"party:{fact.to_account_id}:earned"
    return entry(Asset.CREDIT, (swept, units), (earned, -units))


def _region_gathered(fact: RegionEarningsGathered) -> Iterable[Entry]:
    units, payable = fact.amount.units, f"party:{fact.account_id}:payable"
    lines = ((payable, units), (f"region:{fact.region_id}:revenue", -units))
    return entry(Asset.CREDIT, *lines)


def _region_day(fact: RegionDayShared) -> Iterable[Entry]:
    """The operator's part, and the new carry for the old; the shares leave with their chunks."""
    region, infra = f"region:{fact.region_id}", fact.infra.units
    shares = fact.participation.units + fact.usage.units
    operator = fact.infra_book or f"party:{fact.infra_account_id}:payable"
    return entry(
        Asset.CREDIT,
        (f"{region}:revenue", fact.gathered.units - shares),
        (f"{region}:carry", fact.carry_before.units - fact.carry.units),
        (operator, -infra),
    )


def _region_shares(fact: RegionSharesPaid) -> Iterable[Entry]:
    paid = [
        (part.book or f"party:{part.account_id}:payable", -part.units)
        for share in fact.shares
        for part in share.parts
    ]
    return entry(Asset.CREDIT, (f"region:{fact.region_id}:revenue", fact.amount.units), *paid)


def _resource(fact: ResourceAccrued) -> Iterable[Entry]:
    """Balances to provider and platform; credits bought by burning are retired at use."""
    new = fact.parts_new
    burned = sum(one.amount.units for one in fact.drawn if one.source == "burned")
    assert 0 <= burned <= new.burn, fact
    return entry(
        Asset.CREDIT,
        *_taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:usage", -new.fee),
        (f"party:{fact.provider_account_id}:holdback", -new.provider),
        ("network:revenue:take", -new.platform),
        ("world:burned", -burned),
        ("network:burn_due", burned - new.burn),
    )


def _earnings_forgone(fact: EarningsForgone) -> Iterable[Entry]:
    units, earned = fact.amount.units, f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (earned, units), ("network:revenue:take", -units))


def _cash_out_requested(fact: CashOutRequested) -> Iterable[Entry]:
    units, earned = fact.amount.units, f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (earned, units), ("payout:in_flight", -units))


def _cash_out_paid(fact: CashOutPaid) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.CREDIT, ("payout:in_flight", units), ("world:bank", -units))


def _cash_out_back(fact: CashOutFailed | CashOutCancelled | CashOutReturned) -> Iterable[Entry]:
    """To whoever had earned it; to suspense when that account was closed meanwhile."""
    units, closed = fact.amount.units, fact.account_id is None
    source = "world:bank" if isinstance(fact, CashOutReturned) else "payout:in_flight"
    back = "network:suspense" if closed else f"party:{fact.account_id}:earned"
    return entry(Asset.CREDIT, (source, units), (back, -units))


def _disputed(fact: DisputeOpened) -> Iterable[Entry]:
    """What the claim would take from owners' holdback waits until somebody rules."""
    held = [one for line in fact.lines for one in line.held]
    return entry(
        Asset.CREDIT,
        *((f"party:{one.account_id}:holdback", one.units) for one in held),
        (f"dispute:{fact.dispute_id}", -sum(one.units for one in held)),
    )


def _adjusted(fact: AdjustmentBooked) -> Iterable[Entry]:
    """An adjustment says itself what it moves: which accounts it may, its domain asserts."""
    return entry(Asset.CREDIT, *((line.account, line.units) for line in fact.lines))


def _storage_node(fact: StorageNodeCharged) -> Iterable[Entry]:
    return entry(
        Asset.CREDIT,
        *_taken(fact.account_id, fact.drawn, fact.owed),
        ("network:revenue:storage", -fact.charge_new.units),
    )


def _capacity(fact: CapacityAccrued) -> Iterable[Entry]:
    """Physical time starts as idle; what was leased, stranded or unavailable leaves idle.

    A device leased twice at one instant would drive idle below zero, which PostgreSQL refuses.
    """
    asset = fact.physical.asset
    sort = "seat" if asset is Asset.SEAT_MS else "device"
    device = f"{sort}:{fact.device_id}"
    taken = fact.leased.units + fact.stranded.units + fact.unavailable.units
    return entry(
        asset,
        (f"{device}:physical", -fact.physical.units),
        (f"{device}:idle", fact.physical.units - taken),
        (f"{device}:leased", fact.leased.units),
        (f"{device}:stranded", fact.stranded.units),
        (f"{device}:unavailable", fact.unavailable.units),
    )


def _policy(fact: PolicyPublished) -> Iterable[Entry]:
    """The hard cap is an account limit: every token ever minted is drawn from it."""
    cap = fact.hard_cap.units if fact.version == 1 else 0
    return entry(Asset.TOKEN, ("emission:authority", cap), ("emission:unissued", -cap))


def _sealed(fact: EpochSealed) -> Iterable[Entry]:
    """Minted is drawn from what was never issued and from what was burned; what the seal returned
    is never drawn. The pools keep their carries.
    """
    rewards, returned_release = fact.rewards.units, fact.returned_release.units
    emission = fact.emission.units - (fact.returned.units - returned_release)
    released = fact.release.units - returned_release
    kept = fact.compute_carry.units - fact.compute_carry_before.units
    kept_idle = fact.availability_carry.units - fact.availability_carry_before.units
    assert emission + released == fact.minted == rewards + kept + kept_idle, fact
    yield from entry(
        Asset.TOKEN,
        ("emission:unissued", emission),
        ("emission:authority", -emission),
        ("recycle:pool", released),
        ("recycle:authority", -released),
        ("chain:mint_due", emission + released),
        ("pool:availability:carry", -kept_idle),
        ("pool:compute:carry", -kept),
        (f"epoch:{fact.epoch}:unmatured", -rewards),
    )


def _units(amount: Amount | None) -> int:
    return 0 if amount is None else amount.units


def _credited(fact: RewardsCredited) -> Iterable[Entry]:
    lines = [(f"party:{r.account_id}:unmatured", -r.amount.units) for r in fact.rewards]
    total = sum(reward.amount.units for reward in fact.rewards)
    return entry(Asset.TOKEN, (f"epoch:{fact.epoch}:unmatured", total), *lines)


def _matured(fact: RewardsMatured) -> Iterable[Entry]:
    lines: list[tuple[str, int]] = []
    for reward in fact.rewards:
        lines.append((f"party:{reward.account_id}:unmatured", reward.amount.units))
        lines.append((f"party:{reward.account_id}:matured", -reward.amount.units))
    return entry(Asset.TOKEN, *lines)


def _slashed(fact: RewardSlashed) -> Iterable[Entry]:
    units = fact.amount.units
    unmatured = f"party:{fact.account_id}:unmatured"
    return entry(Asset.TOKEN, (unmatured, units), (TREASURY, -units))


def _forfeited(fact: RewardsForfeited) -> Iterable[Entry]:
    lines = [(f"party:{r.account_id}:matured", r.amount.units) for r in fact.rewards]
    total = sum(reward.amount.units for reward in fact.rewards)
    return entry(Asset.TOKEN, *lines, ("pool:compute:carry", -total))


def _mint(fact: EpochMintConfirmed) -> Iterable[Entry]:
    units = fact.amount.units
    return entry(Asset.TOKEN, ("chain:distributor", units), ("chain:mint_due", -units))


def _payout(fact: PayoutConfirmed) -> Iterable[Entry]:
    """What the treasury claims of grants is still theirs, and now in its wallet."""
    units, set_aside = fact.amount.units, fact.set_aside
    return entry(
        Asset.TOKEN,
        (f"party:{fact.account_id}:matured", units - set_aside),
        ("chain:treasury", set_aside),
        ("chain:distributor", -units),
    )


def _burn(fact: BurnConfirmed) -> Iterable[Entry]:
    credits, tokens = fact.credits.units, fact.tokens.units
    yield from entry(Asset.CREDIT, ("network:burn_due", credits), ("world:bank", -credits))
    yield from entry(Asset.TOKEN, ("recycle:authority", tokens), ("recycle:pool", -tokens))


_BOOKS: dict[type[Any], Callable[[Any], Iterable[Entry]]] = {
    DepositConfirmed: _deposit,
    CreditsPurchaseConfirmed: _purchase,
    PaymentReceived: _received,
    PaymentConfirmed: _confirmed,
    PaymentReversed: _reversed,
    PaymentReinstated: _reinstated,
    PaymentRefundAsked: _refund_asked,
    PaymentRefunded: _refunded,
    PaymentRefundFailed: _refund_failed,
    CardMoneyMoved: _card_money,
    DebtRepaid: _repaid,
    DebtWrittenOff: _written_off,
    ReserveFunded: _reserve,
    GrantOpened: _grant_opened,
    MilestoneAccepted: _milestone_accepted,
    GrantClawedBack: _grant_clawed_back,
    PromotionOpened: _promotion_opened,
    PromotionClosed: _promotion_closed,
    PromotionGranted: _promotion_granted,
    PromotionExpired: _promotion_expired,
    LeaseReserved: _reserved,
    LeaseToppedUp: _topped_up,
    LeaseExtended: _topped_up,
    LeaseFundsTaken: _funds_taken,
    LeaseClosed: _closed,
    LeaseSettled: _closed,
    UsageAccrued: _accrued,
    EscrowFunded: _escrow_funded,
    EscrowReturned: _escrow_returned,
    EscrowFundsTaken: _escrow_taken,
    TermEndedEarly: _term_ended_early,
    BidPlaced: _bid_placed,
    BidWithdrawn: _bid_back,
    BidLapsed: _bid_back,
    AuctionAwarded: _deposits_back,
    AuctionEnded: _deposits_back,
    WinnerDepositReturned: _deposits_back,
    WinnerDepositForfeited: _deposit_forfeited,
    EarningsMatured: _earnings_matured,
    EarningsSwept: _earnings_swept,
    EarningsForgone: _earnings_forgone,
    CashOutRequested: _cash_out_requested,
    CashOutPaid: _cash_out_paid,
    CashOutFailed: _cash_out_back,
    CashOutCancelled: _cash_out_back,
    CashOutReturned: _cash_out_back,
    RegionEarningsGathered: _region_gathered,
    RegionDayShared: _region_day,
    RegionSharesPaid: _region_shares,
    CapacityAccrued: _capacity,
    DeviceFeeCharged: _device_fee,
    ResourceAccrued: _resource,
    DisputeOpened: _disputed,
    AdjustmentBooked: _adjusted,
    StorageNodeCharged: _storage_node,
    PolicyPublished: _policy,
    EpochSealed: _sealed,
    RewardsCredited: _credited,
    RewardsMatured: _matured,
    RewardSlashed: _slashed,
    RewardsForfeited: _forfeited,
    EpochMintConfirmed: _mint,
    PayoutConfirmed: _payout,
    BurnConfirmed: _burn,
}
