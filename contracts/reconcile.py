"""The chain against the ledger at one final block: every way in which they must agree, by name.

    totalSupply = genesis + sum(minted) - sum(burned)
    minted(e) <= ceiling(e)       sum(max(0, minted - cap)) + recyclable = sum(burned)
    claimedTotal = sum(claimed) <= committedTotal <= balance + claimedTotal
    sum(minted) = balance(distributor) + claimedTotal - donations
    leaf(a) = ledger lifetime(a) >= claimed(a)      purchase ids = 1..n

Any difference stops proposals. This file reads and compares; it repairs nothing and posts nothing.
The ledger's side comes in as plain totals, so it needs no ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.deployment import ZERO_ADDRESS, Deployment, Difference, check_deployment
from contracts.manifest import Payout
from contracts.tally import Event, Tally

__all__ = [
    "ChainTotals",
    "Difference",
    "LedgerTotals",
    "SealedEpoch",
    "read_chain",
    "reconcile",
    "reconcile_file",
]


@dataclass(frozen=True, slots=True)
class SealedEpoch:
    """What the ledger sealed for an epoch: TOKEN units and the SHA-256 of its file, hex."""

    tokens: int
    settlement_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTotals:
    """The ledger's word at the same block. TOKEN units of 10^-8, CREDIT units of 10^-6.

    `lifetime` is by address: totals of the leaves of the accepted root. `mint_due` is the balance
    of `chain:mint_due`, `distributor` that of `chain:distributor`.
    """

    sealed: Mapping[int, SealedEpoch] = field(default_factory=dict)
    mint_due: int = 0
    distributor: int = 0
    lifetime: Mapping[str, int] = field(default_factory=dict)
    payouts_confirmed: int = 0
    purchases: int = 0
    credits_from_burns: int = 0
    tokens_burned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """One `EpochMinted`, with what the schedule alone allowed."""

    epoch: int
    amount: int
    ceiling: int
    cap: int
    settlement_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTotals:
    """The chain's word at block `number`, from events and from calls."""

    number: int
    genesis_supply: int
    total_supply: int
    minted: tuple[Minted, ...]
    recyclable: int
    burned_in: int
    burned: int
    purchase_ids: tuple[int, ...]
    tokens_bought_with: int
    credits_bought: int
    claimed: Mapping[str, int]
    claims_paid: int
    claimed_total: int
    committed_total: int
    seq: int
    roots_accepted: tuple[int, ...]
    balance: int
    donated: int
    deployment: tuple[Difference, ...]


def read_chain(tally: Tally, *, number: int | None = None) -> ChainTotals:
    """Everything that reconciliation needs at block `number` (default: the last final one)."""
    chain, deployment = tally.chain, tally.deployment
    last = chain.finalized() if number is None else number
    events = tally.events(deployment.block, last)
    claims = _named(events, "RewardsDistributor", "Claimed")
    burns = _named(events, "EmissionController", "BurnRecorded")
    purchases = _named(events, "CreditBurner", "CreditsPurchased")
    accounts = {event.arguments["account"].lower() for event in claims}
    epochs = {event.arguments["epoch"] for event in burns}
    return ChainTotals(
        number=last,
        genesis_supply=deployment.terms.genesis_supply,
        total_supply=tally.total_supply(number=last),
        minted=tuple(
            Minted(
                epoch=told["epoch"],
                amount=told["amount"],
                ceiling=told["ceiling"],
                cap=tally.cap(told["epoch"], number=last),
                settlement_id=told["settlementId"].hex(),
            )
            for told in _arguments(_named(events, "EmissionController", "EpochMinted"))
        ),
        recyclable=tally.recyclable(number=last),
        burned_in=sum(tally.burned_in(epoch, number=last) for epoch in epochs),
        burned=_burned(events),
        purchase_ids=tuple(told["purchaseId"] for told in _arguments(purchases)),
        tokens_bought_with=sum(told["tokensBurned"] for told in _arguments(purchases)),
        credits_bought=sum(told["credits"] for told in _arguments(purchases)),
        claimed={account: tally.claimed(account, number=last) for account in accounts},
        claims_paid=sum(told["amount"] for told in _arguments(claims)),
        claimed_total=tally.claimed_total(number=last),
        committed_total=tally.committed_total(number=last),
        seq=tally.seq(number=last),
        roots_accepted=tuple(
            told["seq"] for told in _arguments(_named(events, "RewardsDistributor", "RootAccepted"))
        ),
        balance=tally.balance(deployment.distributor, number=last),
        donated=_donated(events, deployment),
        deployment=tuple(check_deployment(chain, deployment, number=last)),
    )


def reconcile(chain: ChainTotals, ledger: LedgerTotals) -> list[Difference]:
    """Every difference, named. Empty when chain and ledger tell the same story."""
    checks = (_supply, _emission, _distribution, _sealed, _leaves, _purchases)
    found = [difference for check in checks for difference in check(chain, ledger)]
    return [*chain.deployment, *found]


def reconcile_file(chain: ChainTotals, payout: Payout, accepted_root: str) -> list[Difference]:
    """What needs no ledger: the chain with itself, with the deployment, and with a payout file.

    A file whose root was replaced by a later one says nothing of the claims since.
    """
    none = LedgerTotals()
    found = [*chain.deployment]
    for check in (_supply, _emission, _distribution):
        found += check(chain, none)
    if payout.root == accepted_root:
        found += _equal("committed", payout.committed, chain.committed_total)
    elif chain.seq >= payout.seq:
        return found
    lifetime = {leaf.account.lower(): leaf.total for leaf in payout.leaves()}
    return [*found, *_overpaid(chain, lifetime)]


def _supply(chain: ChainTotals, _: LedgerTotals) -> Iterator[Difference]:
    minted = sum(mint.amount for mint in chain.minted)
    expected = chain.genesis_supply + minted - chain.burned
    yield from _equal("total supply", expected, chain.total_supply)


def _emission(chain: ChainTotals, _: LedgerTotals) -> Iterator[Difference]:
    for mint in chain.minted:
        if mint.amount > mint.ceiling:
            yield Difference(f"epoch {mint.epoch} ceiling", mint.ceiling, mint.amount)
    epochs = [mint.epoch for mint in chain.minted]
    yield from _equal("epochs minted in order", list(range(1, len(epochs) + 1)), epochs)
    recycled = sum(max(0, mint.amount - mint.cap) for mint in chain.minted)
    yield from _equal("recycled pool", chain.burned_in - recycled, chain.recyclable)
    yield from _equal("burns recorded", chain.tokens_bought_with, chain.burned_in)


def _distribution(chain: ChainTotals, _: LedgerTotals) -> Iterator[Difference]:
    yield from _equal("claims paid", chain.claims_paid, chain.claimed_total)
    yield from _equal("sum of claimed", sum(chain.claimed.values()), chain.claimed_total)
    if chain.claimed_total > chain.committed_total:
        yield Difference("claimed at most", chain.committed_total, chain.claimed_total)
    if chain.balance < chain.committed_total - chain.claimed_total:
        needed = chain.committed_total - chain.claimed_total
        yield Difference("distributor holds at least", needed, chain.balance)
    yield from _equal("roots accepted", list(range(1, chain.seq + 1)), list(chain.roots_accepted))


def _sealed(chain: ChainTotals, ledger: LedgerTotals) -> Iterator[Difference]:
    for mint in chain.minted:
        sealed = ledger.sealed.get(mint.epoch)
        if sealed is None:
            yield Difference(f"epoch {mint.epoch}", "not sealed", f"minted {mint.amount}")
            continue
        yield from _equal(f"epoch {mint.epoch} minted", sealed.tokens, mint.amount)
        yield from _equal(
            f"epoch {mint.epoch} settlement", sealed.settlement_id, mint.settlement_id
        )
    minted = sum(mint.amount for mint in chain.minted)
    sealed_total = sum(epoch.tokens for epoch in ledger.sealed.values())
    yield from _equal("mint due", sealed_total - minted, ledger.mint_due)
    held = minted - chain.claimed_total + chain.donated
    yield from _equal("distributor balance", held, chain.balance)
    yield from _equal("ledger distributor", chain.balance - chain.donated, ledger.distributor)


def _leaves(chain: ChainTotals, ledger: LedgerTotals) -> Iterator[Difference]:
    lifetime = {account.lower(): total for account, total in ledger.lifetime.items()}
    yield from _equal("committed", sum(lifetime.values()), chain.committed_total)
    yield from _overpaid(chain, lifetime)
    yield from _equal("payouts confirmed", chain.claimed_total, ledger.payouts_confirmed)


def _overpaid(chain: ChainTotals, lifetime: Mapping[str, int]) -> Iterator[Difference]:
    for account, claimed in sorted(chain.claimed.items()):
        if claimed > lifetime.get(account, 0):
            yield Difference(f"claimed by {account} at most", lifetime.get(account, 0), claimed)


def _purchases(chain: ChainTotals, ledger: LedgerTotals) -> Iterator[Difference]:
    count = len(chain.purchase_ids)
    yield from _equal("purchase ids", list(range(1, count + 1)), list(chain.purchase_ids))
    yield from _equal("purchases", count, ledger.purchases)
    yield from _equal("credits from burns", chain.credits_bought, ledger.credits_from_burns)
    yield from _equal("tokens burned", chain.tokens_bought_with, ledger.tokens_burned)


def _equal(name: str, expected: object, got: object) -> Iterator[Difference]:
    if expected != got:
        yield Difference(name, expected, got)


def _named(events: Iterable[Event], contract: str, name: str) -> list[Event]:
    return [event for event in events if (event.contract, event.name) == (contract, name)]


def _arguments(events: Iterable[Event]) -> list[Mapping[str, Any]]:
    return [event.arguments for event in events]


def _burned(events: Iterable[Event]) -> int:
    """All tokens destroyed, by the burner or by holders on their own."""
    transfers = _named(events, "TallyToken", "Transfer")
    return sum(t.arguments["value"] for t in transfers if t.arguments["to"] == ZERO_ADDRESS)


def _donated(events: Iterable[Event], deployment: Deployment) -> int:
    """Tokens that somebody sent to the distributor without owing them."""
    return sum(
        transfer.arguments["value"]
        for transfer in _named(events, "TallyToken", "Transfer")
        if transfer.arguments["to"].lower() == deployment.distributor.lower()
        and transfer.arguments["from"] != ZERO_ADDRESS
    )
