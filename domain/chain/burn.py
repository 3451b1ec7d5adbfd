"""Burns of the network's own: credits charged by burning tariffs are turned into burned tokens.

    intended --BurnConfirmed--> confirmed        intended --BurnFailed--> failed
    tokens = max(1, ceil(credits x 10^8 / price))

Burns cover the market log without gap or overlap, one after the other. A burn covers what became
ripe in its range: what cash, earned credits and grants paid, at the charge itself, what card money
paid, once it is confirmed (`projections/epochs/burning.py`). So each charge's parts are in exactly
one burn, and money that may still go back is never burned; the range of a failed burn is the next
one's to begin with. A range ends where the bank's money ends. The price is the
median of a snapshot of its sources (`domain/prices/price_feed.py`), once sources are named. Not
purchases of credits by burning (`domain/funds/deposit.py`), and not the formula
(`domain/prices/token_burn.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.chain.reasons import ChainReason
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, token
from domain.prices.price_feed import require_price
from domain.prices.token_burn import tokens_for
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnIntended:
    """Stream `burn:{burn_id}`; ids count from 1."""

    burn_id: int
    first_position: int
    last_position: int
    credits: Amount
    price_micro_usd: int  # per whole TOKEN
    price_round: int
    tokens: Amount
    at_us: int
    price_snapshot: int | None  # number of the snapshot whose median the price is


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnConfirmed:
    burn_id: int
    credits: Amount
    tokens: Amount
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnFailed:
    burn_id: int
    reason: str
    at_us: int


BurnFact = BurnIntended | BurnConfirmed | BurnFailed

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendBurn:
    """Burn for the credits that became ripe in market positions [first, last], both included."""

    burn_id: int
    first_position: int
    last_position: int
    credits: Amount
    price_micro_usd: int
    price_round: int
    at_us: int
    price_snapshot: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmBurn:
    """The burning transaction is final."""

    burn_id: int
    tokens: Amount
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailBurn:
    """The burn will never happen; its credits wait for the next one."""

    burn_id: int
    reason: str
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class Burn:
    intended: BurnIntended | None = None
    confirmed: BurnConfirmed | None = None
    failed: BurnFailed | None = None

    @property
    def is_open(self) -> bool:
        return self.intended is not None and self.confirmed is None and self.failed is None


def stream_of(burn_id: int) -> Stream[Burn]:
    return Stream("burn", str(burn_id))


def evolve_burn(burn: Burn, fact: BurnFact) -> Burn:
    match fact:
        case BurnIntended():
            return replace(burn, intended=fact)
        case BurnConfirmed():
            return replace(burn, confirmed=fact)
        case BurnFailed():
            return replace(burn, failed=fact)
        case _:
            assert_never(fact)


def burn_of(world: World, burn_id: int) -> Burn:
    return world.state(stream_of(burn_id))


# How we decide.


def decide_intend(command: IntendBurn, world: World) -> list[Change]:
    """Zero credits make no intent. Raises Refused: BURN_STATE, AMOUNT_NOT_POSITIVE,
    CREDIT_TOO_LOW, PRICE_SNAPSHOT, ORACLE_DORMANT, PRICE_TOO_LOW.
    """
    known = burn_of(world, command.burn_id).intended
    if known is not None and _same_intent(known, command):
        return []
    _check_turn(command, known, world)
    if command.credits.asset is not Asset.CREDIT or command.credits.units < 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, credits=command.credits.units)
    if not command.credits.units:
        return []
    due = world.balance("network:burn_due")
    if command.credits.units > due:
        raise Refused(FundsReason.CREDIT_TOO_LOW, credits=command.credits.units, burn_due=due)
    bank = world.balance("world:bank") - world.balance("payout:in_flight")
    if command.credits.units > bank:
        # A burn is paid in cash: card money is not there before its chargeback window is over,
        # and what is on its way out is not there any more.
        raise Refused(FundsReason.CREDIT_TOO_LOW, credits=command.credits.units, bank=bank)
    require_price(world, command.price_snapshot, command.price_micro_usd, command.at_us)
    tokens = tokens_for(command.credits.units, command.price_micro_usd)
    fact = BurnIntended(
        burn_id=command.burn_id,
        first_position=command.first_position,
        last_position=command.last_position,
        credits=command.credits,
        price_micro_usd=command.price_micro_usd,
        price_round=command.price_round,
        tokens=token(tokens),
        at_us=command.at_us,
        price_snapshot=command.price_snapshot,
    )
    return [Change(stream_of(command.burn_id), fact)]


def _same_intent(known: BurnIntended, command: IntendBurn) -> bool:
    return (
        known.first_position == command.first_position
        and known.last_position == command.last_position
        and known.credits == command.credits
        and known.price_micro_usd == command.price_micro_usd
        and known.price_round == command.price_round
        and known.price_snapshot == command.price_snapshot
    )


def _check_turn(command: IntendBurn, known: BurnIntended | None, world: World) -> None:
    """One burn at a time, numbered without gaps, each beginning where the last one ended."""
    if known is not None or command.burn_id < 1:
        raise Refused(ChainReason.BURN_STATE, burn_id=command.burn_id, rule="id taken or below 1")
    first = 1
    if command.burn_id > 1:
        before = burn_of(world, command.burn_id - 1)
        if before.intended is None or before.is_open:
            raise Refused(
                ChainReason.BURN_STATE, burn_id=command.burn_id, rule="the one before waits"
            )
        failed = before.failed is not None
        first = before.intended.first_position if failed else before.intended.last_position + 1
    if command.first_position != first or command.last_position < first:
        raise Refused(ChainReason.BURN_STATE, first_position=command.first_position, expected=first)


def decide_confirm(command: ConfirmBurn, world: World) -> list[Change]:
    """Raises Refused: BURN_STATE."""
    burn = burn_of(world, command.burn_id)
    if burn.intended is None:
        raise Refused(ChainReason.BURN_STATE, burn_id=command.burn_id, rule="not intended")
    fact = BurnConfirmed(
        burn_id=command.burn_id,
        credits=burn.intended.credits,
        tokens=command.tokens,
        tx_hash=command.tx_hash,
        block_number=command.block_number,
        at_us=command.at_us,
    )
    if burn.confirmed is not None and replace(burn.confirmed, at_us=fact.at_us) == fact:
        return []
    if not burn.is_open or command.tokens != burn.intended.tokens:
        raise Refused(ChainReason.BURN_STATE, burn_id=command.burn_id, tokens=command.tokens.units)
    return [Change(stream_of(command.burn_id), fact)]


def decide_fail(command: FailBurn, world: World) -> list[Change]:
    """Raises Refused: BURN_STATE."""
    burn = burn_of(world, command.burn_id)
    if burn.failed is not None and burn.failed.reason == command.reason:
        return []
    if not burn.is_open:
        raise Refused(ChainReason.BURN_STATE, burn_id=command.burn_id, rule="not open")
    fact = BurnFailed(burn_id=command.burn_id, reason=command.reason, at_us=command.at_us)
    return [Change(stream_of(command.burn_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"burn": (Burn(), evolve_burn)}
DECIDERS: dict[type[Any], Any] = {
    IntendBurn: decide_intend,
    ConfirmBurn: decide_confirm,
    FailBurn: decide_fail,
}
