"""The terms on which money is taken: the smallest purchase, and how long a card can be reversed.

Dated and versioned like a tariff: a payment keeps the terms it was started under, so a new window
never moves the confirmation of an old payment. Before anything is published the terms are those of
the source: at least 25 credits at once (row C-25), a chargeback window of 120 days (design
economics 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.duration import DAY_US
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, credit
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

WINDOW_US_MAX = 730 * DAY_US
CENT_UNITS = 10_000
"""Micro-credits in a US cent: what moves outside is whole cents."""
MINIMUM_UNITS_MAX = 10**12
TERMS: Stream[Terms] = Stream("payment_terms", "network")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTermsPublished:
    """Stream `payment_terms:network`."""

    version: int  # from 1, without gaps
    minimum: Amount  # of one purchase; auto top-ups included
    chargeback_window_us: int  # from the arrival of card money to its confirmation
    effective_from_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPaymentTerms:
    version: int
    minimum: Amount
    chargeback_window_us: int
    effective_from_us: int
    by: str
    at_us: int


FIRST = PaymentTermsPublished(
    version=0,
    minimum=credit(25_000_000),
    chargeback_window_us=120 * DAY_US,
    effective_from_us=0,
    by="",
    at_us=0,
)
"""In force until something is published."""


@dataclass(frozen=True, slots=True)
class Terms:
    published: tuple[PaymentTermsPublished, ...] = ()

    def at(self, at_us: int) -> PaymentTermsPublished:
        """What is in force at a moment: the newest version that is effective by then."""
        effective = [one for one in self.published if one.effective_from_us <= at_us]
        return effective[-1] if effective else FIRST


def evolve(state: Terms, fact: PaymentTermsPublished) -> Terms:
    return Terms((*state.published, fact))


def terms_at(world: World, at_us: int) -> PaymentTermsPublished:
    state = world.state(TERMS)
    return state.at(at_us)


def decide_publish(command: PublishPaymentTerms, world: World) -> list[Change]:
    """The same version again changes nothing. Raises Refused: PAYMENT_TERMS_VERSION,
    PAYMENT_TERMS_INVALID.
    """
    state = world.state(TERMS)
    fact = PaymentTermsPublished(
        version=command.version,
        minimum=command.minimum,
        chargeback_window_us=command.chargeback_window_us,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    if fact in state.published:
        return []
    if command.version != len(state.published) + 1:
        raise Refused(
            FundsReason.PAYMENT_TERMS_VERSION,
            version=command.version,
            next=len(state.published) + 1,
        )
    last = state.published[-1] if state.published else FIRST
    if command.effective_from_us < max(command.at_us, last.effective_from_us):
        raise _invalid("effective_from_us", "not before now, nor before the version before")
    if command.minimum.asset is not Asset.CREDIT or command.minimum.units % CENT_UNITS:
        raise _invalid("minimum", "whole cents of credits")
    if not CENT_UNITS <= command.minimum.units <= MINIMUM_UNITS_MAX:
        raise _invalid("minimum", "in range", least=CENT_UNITS, most=MINIMUM_UNITS_MAX)
    if not 0 <= command.chargeback_window_us <= WINDOW_US_MAX:
        raise _invalid("chargeback_window_us", "in range", most=WINDOW_US_MAX)
    return [Change(TERMS, fact)]


def _invalid(field: str, rule: str, **facts: int) -> Refused:
    return Refused(FundsReason.PAYMENT_TERMS_INVALID, field=field, rule=rule, **facts)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"payment_terms": (Terms(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    PublishPaymentTerms: decide_publish
}
