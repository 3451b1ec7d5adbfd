"""Promotions: programs that give accounts credits of a fund, with a priority and an expiry.

    opened == left in the fund + granted            returned when the program is closed
    granted == spent + held in escrows + unspent + breakage        per program, always

A program's fund is paid for: it is opened from the cash of a sponsor, so that a provider who is
paid with granted credits is paid with money that is there. Grants are not refundable and carry no
reward weight (design economics 5). What of a grant comes back from an escrow is the grant's again,
and breakage when it has expired by then; it never becomes cash.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.frozen import replace
from domain.funds.funding import (
    GRANTS_MAX,
    PromotionExpired,
    PromotionGranted,
    funding_of,
    stream_of,
)
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.parties.sign_up import verified_account
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Grants themselves are on the stream of the account: `domain/funds/funding.py`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionOpened:
    """Stream `promotion:{program}`. The sponsor's cash is the fund."""

    program: str
    sponsor_account_id: str
    amount: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionClosed:
    """No more grants; what was never granted goes back to the sponsor's cash."""

    program: str
    sponsor_account_id: str
    amount: Amount
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPromotion:
    program: str
    sponsor_account_id: str
    amount: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePromotion:
    program: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPromotion:
    """`expires_at_us` None: the grant does not expire."""

    program: str
    account_id: str
    amount: Amount
    priority: int
    expires_at_us: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirePromotion:
    """Book what an expired grant left unspent as breakage."""

    program: str
    account_id: str
    at_us: int


PROGRAM = r"[a-z0-9][a-z0-9-]{0,39}"
_PROGRAM = re.compile(PROGRAM, re.ASCII)
PRIORITY_MAX = 1_000
FUND_UNITS_MAX = 10**15

# State.


@dataclass(frozen=True, slots=True)
class PromotionState:
    opened: PromotionOpened | None = None
    is_closed: bool = False


def evolve(state: PromotionState, fact: PromotionOpened | PromotionClosed) -> PromotionState:
    match fact:
        case PromotionOpened():
            return PromotionState(fact)
        case PromotionClosed():
            return replace(state, is_closed=True)
        case _:
            assert_never(fact)


def program_stream(program: str) -> Stream[PromotionState]:
    return Stream("promotion", program)


def fund_of(program: str) -> str:
    """The book account of a program's fund."""
    return f"grant:{program}:fund"


def promotion_of(world: World, program: str) -> PromotionState:
    return world.state(program_stream(program))


def existing_promotion(world: World, program: str) -> PromotionOpened:
    """Raises Refused: PROMOTION_UNKNOWN."""
    opened = promotion_of(world, program).opened
    if opened is None:
        raise Refused(FundsReason.PROMOTION_UNKNOWN, program=program)
    return opened


# How we decide.


def decide_open(command: OpenPromotion, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, PROMOTION_EXISTS, BAD_PROGRAM,
    AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, CREDIT_TOO_LOW.
    """
    open_account(world, command.sponsor_account_id)
    if promotion_of(world, command.program).opened is not None:
        raise Refused(FundsReason.PROMOTION_EXISTS, program=command.program)
    if _PROGRAM.fullmatch(command.program) is None:
        raise Refused(FundsReason.BAD_PROGRAM, program=command.program)
    _require_credits(command.amount)
    cash = world.balance(f"party:{command.sponsor_account_id}:cash")
    if command.amount.units > cash:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=command.amount.units, available=cash)
    fact = PromotionOpened(
        program=command.program,
        sponsor_account_id=command.sponsor_account_id,
        amount=command.amount,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(program_stream(command.program), fact)]


def decide_close(command: ClosePromotion, world: World) -> list[Change]:
    """Twice is once; grants that were made live on. Raises Refused: PROMOTION_UNKNOWN."""
    opened = existing_promotion(world, command.program)
    if promotion_of(world, command.program).is_closed:
        return []
    fact = PromotionClosed(
        program=command.program,
        sponsor_account_id=opened.sponsor_account_id,
        amount=credit(world.balance(fund_of(command.program))),
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(program_stream(command.program), fact)]


def decide_grant(command: GrantPromotion, world: World) -> list[Change]:
    """A program's grants to one account have one priority and one expiry, or none could say which
    of them a unit that comes back belongs to.

    Raises Refused: PROMOTION_UNKNOWN, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, ACCOUNT_UNVERIFIED,
    PROMOTION_ENDED, PROMOTION_TERMS, COUNT_OUT_OF_RANGE, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    PROMOTION_FUND_SHORT.
    """
    existing_promotion(world, command.program)
    verified_account(world, command.account_id)
    funding = funding_of(world, command.account_id)
    present = funding.promotion(command.program)
    is_over = present is not None and not present.is_live(command.at_us)
    is_late = command.expires_at_us is not None and command.expires_at_us <= command.at_us
    if promotion_of(world, command.program).is_closed or is_over or is_late:
        raise Refused(FundsReason.PROMOTION_ENDED, program=command.program)
    if present is not None and (present.priority, present.expires_at_us) != (
        command.priority,
        command.expires_at_us,
    ):
        raise Refused(
            FundsReason.PROMOTION_TERMS,
            program=command.program,
            priority=present.priority,
            expires_at_us=present.expires_at_us,
        )
    if not 0 <= command.priority <= PRIORITY_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="priority", at_most=PRIORITY_MAX)
    if present is None and len(funding.promotions) >= GRANTS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="promotions", at_most=GRANTS_MAX)
    _require_credits(command.amount)
    fund = world.balance(fund_of(command.program))
    if command.amount.units > fund:
        raise Refused(FundsReason.PROMOTION_FUND_SHORT, program=command.program, left=fund)
    fact = PromotionGranted(
        account_id=command.account_id,
        program=command.program,
        amount=command.amount,
        priority=command.priority,
        expires_at_us=command.expires_at_us,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), fact)]


def decide_expire(command: ExpirePromotion, world: World) -> list[Change]:
    """As often as something is left or came back; nothing before the expiry."""
    promotion = funding_of(world, command.account_id).promotion(command.program)
    if promotion is None or promotion.is_live(command.at_us):
        return []
    return forfeit(world, command.account_id, command.program, command.at_us)


def forfeit(world: World, account_id: str, program: str, at_us: int) -> list[Change]:
    """What a grant has left goes to breakage; nothing if nothing is left."""
    units = world.balance(f"party:{account_id}:grant.{program}")
    fact = PromotionExpired(
        account_id=account_id, program=program, amount=credit(units), at_us=at_us
    )
    return [Change(stream_of(account_id), fact)] if units else []


def _require_credits(amount: Amount) -> None:
    if amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=amount.units)
    if amount.asset is not Asset.CREDIT or amount.units > FUND_UNITS_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, asset=amount.asset.value, units=amount.units
        )


STREAMS: dict[str, tuple[Any, Any]] = {"promotion": (PromotionState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    OpenPromotion: decide_open,
    ClosePromotion: decide_close,
    GrantPromotion: decide_grant,
    ExpirePromotion: decide_expire,
}
