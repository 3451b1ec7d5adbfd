"""A domain that does what it is told: real facts, stored forms and postings, but any decision.

For tests of the door and of the log, which must hold whatever the rules are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from domain.funds.deposit import DepositConfirmed
from domain.lease.lease import LeaseReserved
from domain.market.offer import OfferWithdrawn
from domain.money import Amount, Asset, credit
from domain.stream import Change, Stream, World
from ledger.books.entry import Entry
from ledger.log.handle import CommandKey, Ledger

BLINDING_KEY = b"for tests only, sixteen or more"
NOW_US = 1_763_000_000_000_000


@dataclass(frozen=True, slots=True)
class Count:
    """The state of every stream here: how many facts it has."""

    facts: int = 0


@dataclass(frozen=True, slots=True)
class Do:
    """A command that carries its own decision."""

    decide: Callable[[World], Sequence[Change]]


class ToldRules:
    """`ledger.log.market.Rules`: folds by counting, decides what the command says."""

    def initial(self, kind: str) -> Any:
        assert kind
        return Count()

    def evolve(self, kind: str, state: Any, fact: Any) -> Any:
        assert kind
        assert fact is not None
        return Count(state.facts + 1)

    def decide(self, command: Any, world: World) -> Sequence[Change]:
        changes: Sequence[Change] = command.decide(world)
        return changes


def ledger_on(database: str, **settings: Any) -> Ledger:
    """A ledger with the told rules."""
    return Ledger(database, blinding_key=BLINDING_KEY, rules=ToldRules(), **settings)


def offer(name: str) -> Stream[Any]:
    return Stream("offer", name)


def withdrawn(name: str, reason: str = "") -> Change:
    """A fact that moves no money."""
    return Change(offer(name), OfferWithdrawn(offer_id=name + reason, by="test", at_us=NOW_US))


def deposited(name: str, units: int, account: str = "acct_a") -> Change:
    """A fact that debits the bank and credits `party:{account}:cash`."""
    fact = DepositConfirmed(
        deposit_id=name,
        account_id=account,
        source="cash",
        amount=credit(units),
        reference="test",
        confirmed_by="test",
        at_us=NOW_US,
    )
    return Change(Stream("deposit", name), fact)


def do(*changes: Change) -> Do:
    return Do(lambda _: changes)


def key(name: str, fingerprint: bytes = b"same", account: str = "acct_a") -> CommandKey:
    return CommandKey(account, name, fingerprint)


def spend(units: int, account: str = "acct_a") -> Callable[[Any], tuple[Entry, ...]]:
    """An `entries_for` in which every fact spends cash: an overdraft without rules in the way."""

    def entries(_: Any) -> tuple[Entry, ...]:
        lines = ((f"party:{account}:cash", units), ("network:suspense", -units))
        return (Entry(Asset.CREDIT, lines),)

    return entries


def reserved(lease_id: str, account: str, escrow: Amount) -> Change:
    """A new lease of one whole GPU, paid from cash."""
    from domain.lease.funds import EscrowPart

    fact = LeaseReserved(
        meter_maxima=(),
        lease_id=lease_id,
        job_id="job_a",
        account_id=account,
        client_id="",
        project_id="",
        end_user_ref="",
        node_id="node_a",
        provider_id="prov_a",
        provider_account_id="acct_p",
        offer_id="offer_a",
        device_ids=("GPU-a",),
        share_ppm=1_000_000,
        mem_ppm=1_000_000,
        gpu_class="datacenter",
        price_per_gpu_hour=credit(2_000_000),
        pay_with="cash",
        own=False,
        tariff_version=1,
        fee_per_gpu_hour=credit(250_000),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        escrow=(EscrowPart("cash", escrow),),
        at_us=NOW_US,
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
    return Change(Stream("lease", lease_id), fact)
