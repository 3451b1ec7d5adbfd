"""The breakers of the network: how much may be minted, promised and paid out within a while.

    let pass in any window <= 2 x limit         per breaker; without a limit nothing is held up
    what has passed once passes again, and counts once

Whoever is about to mint, to propose a payout or to send money asks first. What does not pass is
told, waits, and asks again: it fades in, or the governance sets another limit with a reason.
Nothing here moves money, and no override is silent. The formula: `domain/governance/window.py`.
Source: design economics 11.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.duration import DAY_US, SECOND_US
from domain.frozen import replace
from domain.governance.reasons import GovernanceReason
from domain.governance.window import Gauge, faded, let_pass
from domain.money import Asset, Big
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

MINT, PAYOUT, CASH_OUT = "mint", "payout", "cash_out"
ASSETS = {MINT: Asset.TOKEN, PAYOUT: Asset.TOKEN, CASH_OUT: Asset.CREDIT}
"""Every breaker, and what its amounts are units of."""
PASSED_MAX = 1_000
"""References that are remembered. One that is older and asks again counts again: more, not less."""
WAITING_MAX = 100
WINDOW_US_MIN, WINDOW_US_MAX = SECOND_US, 366 * DAY_US
UNITS_MAX = 2**63 - 1
TEXT_MAX = 1_000

# Facts. Stream `breaker:{name}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSet:
    """From now on so much may pass in a window; `limit` absent: everything."""

    breaker: str
    limit: Big | None
    window_us: int
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPassed:
    """`aggregate` with this amount."""

    breaker: str
    ref: str
    amount: Big
    aggregate: Big
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerTripped:
    """It waits: `aggregate` and this amount would be more than the limit."""

    breaker: str
    ref: str
    amount: Big
    aggregate: Big
    limit: Big
    window_us: int
    reason: str  # machine reason
    at_us: int


Fact: TypeAlias = BreakerSet | BreakerPassed | BreakerTripped

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBreaker:
    breaker: str
    limit: int | None
    window_us: int
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassBreaker:
    """May this go? The answer is in the state: `has_passed`."""

    breaker: str
    ref: str
    amount: int
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class Breaker:
    limit: Big | None = None
    window_us: int = DAY_US
    aggregate: Big = 0
    last_us: int = 0
    passed: tuple[str, ...] = ()  # the last ones
    waiting: dict[str, BreakerTripped] = field(default_factory=dict)  # by reference

    def has_passed(self, ref: str) -> bool:
        return self.limit is None or ref in self.passed

    def held(self, at_us: int) -> int:
        """What counts against the limit now."""
        return faded(Gauge(self.aggregate, self.last_us), self.window_us, at_us)


def evolve(breaker: Breaker, fact: Fact) -> Breaker:
    match fact:
        case BreakerSet():
            # Who waits is told anew, against the new limit.
            return replace(breaker, limit=fact.limit, window_us=fact.window_us, waiting={})
        case BreakerPassed():
            waiting = {ref: one for ref, one in breaker.waiting.items() if ref != fact.ref}
            return replace(
                breaker,
                aggregate=fact.aggregate,
                last_us=max(breaker.last_us, fact.at_us),
                passed=(*breaker.passed, fact.ref)[-PASSED_MAX:],
                waiting=waiting,
            )
        case BreakerTripped():
            return replace(breaker, waiting={**breaker.waiting, fact.ref: fact})
        case _:
            assert_never(fact)


def stream_of(breaker: str) -> Stream[Breaker]:
    return Stream("breaker", breaker)


def breaker_of(world: World, breaker: str) -> Breaker:
    """Raises Refused: UNKNOWN_MODE when there is no breaker of that name."""
    if breaker not in ASSETS:
        raise Refused(PartiesReason.UNKNOWN_MODE, breaker=breaker)
    return world.state(stream_of(breaker))


# How we decide.


def decide_set(command: SetBreaker, world: World) -> list[Change]:
    """Raises Refused: UNKNOWN_MODE, AMOUNT_OUT_OF_RANGE, BAD_WINDOW."""
    breaker_of(world, command.breaker)
    if command.limit is not None and not 0 <= command.limit <= UNITS_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="limit")
    if not WINDOW_US_MIN <= command.window_us <= WINDOW_US_MAX:
        raise Refused(PricesReason.BAD_WINDOW, window_us=command.window_us)
    if not 1 <= len(command.reason) <= TEXT_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="reason", length_max=TEXT_MAX)
    fact = BreakerSet(
        breaker=command.breaker,
        limit=command.limit,
        window_us=command.window_us,
        reason=command.reason,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.breaker), fact)]


def decide_pass(command: PassBreaker, world: World) -> list[Change]:
    """What does not pass is recorded once, until the limit is set anew.

    Raises Refused: UNKNOWN_MODE, AMOUNT_NOT_POSITIVE.
    """
    breaker = breaker_of(world, command.breaker)
    if breaker.limit is None or command.ref in breaker.passed:
        return []
    gauge = Gauge(breaker.aggregate, breaker.last_us)
    try:
        after = let_pass(gauge, command.amount, breaker.limit, breaker.window_us, command.at_us)
    except Refused as refused:
        if refused.reason is not GovernanceReason.BREAKER_LIMIT:
            raise
        return _tripping(command, breaker)
    fact = BreakerPassed(
        breaker=command.breaker,
        ref=command.ref,
        amount=command.amount,
        aggregate=after.aggregate,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.breaker), fact)]


def _tripping(command: PassBreaker, breaker: Breaker) -> list[Change]:
    if command.ref in breaker.waiting or len(breaker.waiting) >= WAITING_MAX:
        return []
    assert breaker.limit is not None
    fact = BreakerTripped(
        breaker=command.breaker,
        ref=command.ref,
        amount=command.amount,
        aggregate=breaker.held(command.at_us),
        limit=breaker.limit,
        window_us=breaker.window_us,
        reason=GovernanceReason.BREAKER_LIMIT.value,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.breaker), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"breaker": (Breaker(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetBreaker: decide_set, PassBreaker: decide_pass}
