"""Reserved terms: whole months at a fixed price, paid beforehand, and what an early end gives back.

    held at the reservation == charge(whole term at the term's price)
    unused == largest charge(whole term) - largest charge(opened to closed)       at an early end
    refunded == floor(unused x refund_ppm / 10^6);   refunded + kept == unused    to the unit

The provider's list says a price and a refund for each number of months; both are locked with the
reservation. Who ends the term early without the provider's fault gets back the stated part of what
is unused, and the rest is earned as if it had been served, peeled like any charge; so does who ends
it while its node is silent, before the half hour after which the server ends it. Where that timer,
the provider, the network or the operator ends it, everything unused goes back. `available_until` of
an offer bounds its terms. Source: design marketplace 4, "reserved".
"""

from __future__ import annotations

from typing import Any

from domain.duration import DAY_US
from domain.fleet.revenue_share import OwnerPart
from domain.lease.funds import EscrowPart
from domain.money import PPM, Amount
from domain.prices.charge_split import Parts
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused

MONTHS = (1, 3, 6)
MONTH_US = 30 * DAY_US
"""A month of a reserved term: 30 days of 24 hours, whatever the calendar says."""


@dataclass(frozen=True, slots=True)
class ReservedPrice:
    """One line of a provider's list: `refund_ppm` of what is unused goes back at an early end."""

    months: int
    price_per_gpu_hour: Amount
    refund_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TermEndedEarly:
    """Stream `lease:{lease_id}`, right before its close: what of the prepaid rest is kept.

    `drawn`: which credits of the escrow pay it. What is refunded goes back with the close.
    """

    lease_id: str
    account_id: str
    provider_account_id: str
    months: int
    refund_ppm: int
    unused: Amount
    refunded: Amount
    kept: Amount
    parts: Parts  # where what is kept goes
    drawn: tuple[EscrowPart, ...]
    at_us: int
    client_account_id: str | None
    owners: tuple[OwnerPart, ...]
    node_id: str


def term_us(months: int) -> int:
    """How long a reserved term is. Raises Refused: TERM_NOT_OFFERED."""
    if months not in MONTHS:
        raise Refused(PricesReason.TERM_NOT_OFFERED, months=months, offered=MONTHS)
    return months * MONTH_US


def kept_of(unused_units: int, refund_ppm: int) -> int:
    """What is not given back of the unused part; the provider's side owns the remainder."""
    assert unused_units >= 0, unused_units
    assert 0 <= refund_ppm <= PPM, refund_ppm
    return unused_units - unused_units * refund_ppm // PPM


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {}
