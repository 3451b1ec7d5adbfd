"""With whom an account deals: deny lists, and allow lists that leave out everybody else.

    a lease is reserved  =>  its renter and its client admit the provider, and the provider both

Denied is never dealt with; where an account allows somebody, it deals with those alone. One's own
nodes are not dealt with: no list keeps an account from them. Running leases go on.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from typing import Any, TypeAlias, assert_never

from domain.money import MoneyReason
from domain.parties.account import existing_account, open_account
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `counterparty:{account_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterpartyAllowed:
    account_id: str
    counterparty_id: str  # an account: a provider's, a renter's or a compute client's
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterpartyDenied:
    account_id: str
    counterparty_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterpartyRemoved:
    """Neither allowed nor denied any more."""

    account_id: str
    counterparty_id: str
    by: str
    at_us: int


Fact: TypeAlias = CounterpartyAllowed | CounterpartyDenied | CounterpartyRemoved

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCounterparty:
    account_id: str
    counterparty_id: str
    verdict: str  # VERDICTS
    by: str
    at_us: int


ALLOW, DENY, NONE = "allow", "deny", "none"
VERDICTS = (ALLOW, DENY, NONE)
LISTED_MAX = 1_000
"""Accounts on the lists of one account."""

# State.


@dataclass(frozen=True, slots=True)
class Counterparties:
    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()

    def admits(self, account_id: str) -> bool:
        """Whether the account that has these lists deals with another one."""
        if account_id in self.denied:
            return False
        return not self.allowed or account_id in self.allowed

    def verdict(self, account_id: str) -> str:
        """One of VERDICTS."""
        if account_id in self.denied:
            return DENY
        return ALLOW if account_id in self.allowed else NONE


def evolve(lists: Counterparties, fact: Fact) -> Counterparties:
    one = frozenset({fact.counterparty_id})
    match fact:
        case CounterpartyAllowed():
            return Counterparties(lists.allowed | one, lists.denied - one)
        case CounterpartyDenied():
            return Counterparties(lists.allowed - one, lists.denied | one)
        case CounterpartyRemoved():
            return Counterparties(lists.allowed - one, lists.denied - one)
        case _:
            assert_never(fact)


# Decisions.


def counterparty_stream(account_id: str) -> Stream[Counterparties]:
    return Stream("counterparty", account_id)


def counterparties_of(world: World, account_id: str) -> Counterparties:
    return world.state(counterparty_stream(account_id))


def refusal_between(
    world: World, renters: tuple[str, ...], provider_account_id: str
) -> Refused | None:
    """The first list between a lease's renter side (renter, client) and a provider that keeps them
    apart; None when nobody minds.
    """
    for renter in dict.fromkeys(renters):
        for who, whom in ((renter, provider_account_id), (provider_account_id, renter)):
            if not counterparties_of(world, who).admits(whom):
                return Refused(
                    PartiesReason.COUNTERPARTY_DENIED,
                    rule="counterparty list",
                    account_id=who,
                    counterparty_id=whom,
                )
    return None


def decide_set(command: SetCounterparty, world: World) -> list[Change]:
    """Put an account on a list, or take it off both. What is so already gives no fact.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, UNKNOWN_MODE, DUPLICATE_ID for oneself,
    COUNT_OUT_OF_RANGE.
    """
    open_account(world, command.account_id)
    existing_account(world, command.counterparty_id)
    if command.verdict not in VERDICTS:
        raise Refused(PartiesReason.UNKNOWN_MODE, verdict=command.verdict)
    if command.account_id == command.counterparty_id:
        raise Refused(MoneyReason.DUPLICATE_ID, rule="an account always deals with itself")
    lists = counterparties_of(world, command.account_id)
    if lists.verdict(command.counterparty_id) == command.verdict:
        return []
    listed = len(lists.allowed) + len(lists.denied)
    if lists.verdict(command.counterparty_id) == NONE and listed >= LISTED_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, listed=listed, at_most=LISTED_MAX)
    facts: dict[str, type[Fact]] = {
        ALLOW: CounterpartyAllowed,
        DENY: CounterpartyDenied,
        NONE: CounterpartyRemoved,
    }
    fact = facts[command.verdict](
        account_id=command.account_id,
        counterparty_id=command.counterparty_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(counterparty_stream(command.account_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"counterparty": (Counterparties(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetCounterparty: decide_set}
