"""What an account may spend, in the order in which it is spent, and who else pays for it.

    spend order = own grants (priority, then earliest expiry, then program), earned, cash, card;
                  then the payer's, in the same order, as far as the payer's monthly cap goes

Everybody who draws money from a balance asks `sources_of`. Nothing is moved here: the balances are
the books', and whoever draws names source and account in its fact, so that what is not used goes
back to where it came from. A payer's own debt stops its sources, not the account's. Source: design
economics 5; row C-25 for payers.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.funds.budget import ACCOUNT, left_this_month
from domain.funds.reasons import FundsReason
from domain.money import Amount
from domain.parties.account import existing_account, open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `funding:{account_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionGranted:
    """Credits of a program: the fund's, and from now on `party:{account_id}:grant.{program}`."""

    account_id: str
    program: str
    amount: Amount
    priority: int  # lower is spent first
    expires_at_us: int | None  # what is unspent then is breakage
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionExpired:
    """What was unspent, or came back from an escrow later, is breakage: never cash."""

    account_id: str
    program: str
    amount: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayerSet:
    """From now on the payer's balances pay what the account's own do not."""

    account_id: str
    payer_account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayerEnded:
    """What the payer's money already holds in escrow stays, and its rest goes back to the payer."""

    account_id: str
    payer_account_id: str
    by: str
    at_us: int


Fact: TypeAlias = PromotionGranted | PromotionExpired | PayerSet | PayerEnded

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPayer:
    account_id: str
    payer_account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPayer:
    account_id: str
    payer_account_id: str
    by: str
    at_us: int


PLAIN_SOURCES = ("earned", "cash", "card")
CASH_SOURCES = ("grant", *PLAIN_SOURCES)
BURN_SOURCES = ("burned",)
GRANTS_MAX = 64
"""Programs one account can have been granted."""

# State.


@dataclass(frozen=True, slots=True)
class Promotion:
    """What an account was granted by one program; all of it has the same terms."""

    program: str
    priority: int
    expires_at_us: int | None

    @property
    def source(self) -> str:
        return f"grant.{self.program}"

    def is_live(self, at_us: int) -> bool:
        return self.expires_at_us is None or at_us < self.expires_at_us

    @property
    def rank(self) -> tuple[int, bool, int, bytes]:
        """Priority, then the earliest expiry, then the program; what never expires comes last."""
        never = self.expires_at_us is None
        return self.priority, never, self.expires_at_us or 0, self.program.encode()


@dataclass(frozen=True, slots=True)
class Funding:
    """`promotions` in spend order, expired ones too: a program keeps its terms for an account."""

    promotions: tuple[Promotion, ...] = ()
    payer_account_id: str | None = None

    def promotion(self, program: str) -> Promotion | None:
        return next((one for one in self.promotions if one.program == program), None)


def evolve(funding: Funding, fact: Fact) -> Funding:
    match fact:
        case PromotionGranted():
            granted = Promotion(fact.program, fact.priority, fact.expires_at_us)
            kept = [one for one in funding.promotions if one.program != fact.program]
            ranked = sorted([*kept, granted], key=lambda one: one.rank)
            return replace(funding, promotions=tuple(ranked))
        case PromotionExpired():
            return funding
        case PayerSet():
            return replace(funding, payer_account_id=fact.payer_account_id)
        case PayerEnded():
            return replace(funding, payer_account_id=None)
        case _:
            assert_never(fact)


def stream_of(account_id: str) -> Stream[Funding]:
    return Stream("funding", account_id)


def funding_of(world: World, account_id: str) -> Funding:
    return world.state(stream_of(account_id))


# What may be spent.


@dataclass(frozen=True, slots=True)
class Source:
    """Credits that may be spent: `units` of the balance `party:{account_id}:{name}`."""

    account_id: str
    name: str
    units: int

    @property
    def book(self) -> str:
        return f"party:{self.account_id}:{self.name}"


def sources_of(world: World, account_id: str, pay_with: str, at_us: int) -> tuple[Source, ...]:
    """The sources that hold something, in spend order, for `pay_with` "cash" or "burn".

    `at_us`: the moment of the spending; what has expired by then is no source any more, whether or
    not its breakage is booked. Sources of a payer carry the payer's account.
    """
    own = _held(world, account_id, pay_with, at_us)
    return (*own, *_of_payer(world, account_id, pay_with, at_us))


def require_no_debt(world: World, account_id: str) -> None:
    """Raises Refused: UNPAID_DEBT."""
    owed = world.balance(f"party:{account_id}:owed")
    if owed > 0:
        raise Refused(FundsReason.UNPAID_DEBT, owed=owed)


def require_balance(world: World, account_id: str, at_us: int) -> None:
    """What costs by the calendar is provisioned only for an account that has credits (row C-25):
    its charges are drawn later and cannot be refused then.

    Raises Refused: UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    require_no_debt(world, account_id)
    if not any(source.units > 0 for source in sources_of(world, account_id, "cash", at_us)):
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=1, available=0, what="provisioning")


def _held(world: World, account_id: str, pay_with: str, at_us: int) -> Iterator[Source]:
    names: tuple[str, ...] = BURN_SOURCES
    if pay_with != "burn":
        live = [one for one in funding_of(world, account_id).promotions if one.is_live(at_us)]
        names = (*(one.source for one in live), *CASH_SOURCES)
    for name in names:
        units = world.balance(f"party:{account_id}:{name}")
        if units > 0:
            yield Source(account_id, name, units)


def _of_payer(world: World, account_id: str, pay_with: str, at_us: int) -> Iterator[Source]:
    payer = funding_of(world, account_id).payer_account_id
    if payer is None or world.balance(f"party:{payer}:owed"):
        return
    left = left_this_month(world, payer, ACCOUNT, account_id, at_us)
    for source in _held(world, payer, pay_with, at_us):
        units = source.units if left is None else min(source.units, left)
        if units:
            yield replace(source, units=units)
        left = None if left is None else left - units


# How we decide.


def decide_set_payer(command: SetPayer, world: World) -> list[Change]:
    """An account has one payer, and a payer pays with its own money: payers do not chain.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, NOT_PERMITTED, PAYER_EXISTS.
    """
    account = open_account(world, command.account_id)
    payer = open_account(world, command.payer_account_id)
    parties = {account.kind, payer.kind}
    if command.account_id == command.payer_account_id or not parties <= {"party", "client"}:
        raise Refused(PartiesReason.NOT_PERMITTED, payer_account_id=command.payer_account_id)
    present = funding_of(world, command.account_id).payer_account_id
    if present == command.payer_account_id:
        return []
    if present is not None:
        raise Refused(FundsReason.PAYER_EXISTS, account_id=command.account_id)
    fact = PayerSet(
        account_id=command.account_id,
        payer_account_id=command.payer_account_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), fact)]


def decide_end_payer(command: EndPayer, world: World) -> list[Change]:
    """Twice is once. Another account's payer is nobody's business.

    Raises Refused: ACCOUNT_UNKNOWN, PAYER_UNKNOWN.
    """
    existing_account(world, command.account_id)
    present = funding_of(world, command.account_id).payer_account_id
    if present is None:
        return []
    if present != command.payer_account_id:
        raise Refused(FundsReason.PAYER_UNKNOWN, account_id=command.account_id)
    fact = PayerEnded(
        account_id=command.account_id,
        payer_account_id=command.payer_account_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"funding": (Funding(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetPayer: decide_set_payer, EndPayer: decide_end_payer}
