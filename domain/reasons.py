"""Every reason there is, merged from the rooms. No reason is named here.

    reason_of(reason.value) is reason                          a code names one rule, for ever

A room without reasons of its own has none to merge; what `money` refuses stands in its file.
"""

from __future__ import annotations

from domain.authority import reasons as authority
from domain.chain import reasons as chain
from domain.cloud import reasons as cloud
from domain.corrections import reasons as corrections
from domain.epochs import reasons as epochs
from domain.fleet import reasons as fleet
from domain.funds import reasons as funds
from domain.governance import reasons as governance
from domain.hardware import reasons as hardware
from domain.income import reasons as income
from domain.jobs import reasons as jobs
from domain.lease import reasons as lease
from domain.market import reasons as market
from domain.metering import reasons as metering
from domain.money import MoneyReason
from domain.parties import reasons as parties
from domain.pools import reasons as pools
from domain.prices import reasons as prices
from domain.refusal import Reason
from domain.sites import reasons as sites
from domain.storage import reasons as storage
from domain.trust import reasons as trust

_ROOMS = (
    parties,
    authority,
    prices,
    funds,
    hardware,
    fleet,
    cloud,
    sites,
    metering,
    lease,
    storage,
    trust,
    epochs,
    governance,
    chain,
    market,
    pools,
    jobs,
    income,
    corrections,
)
_ALL: tuple[Reason, ...] = (*MoneyReason, *(one for room in _ROOMS for one in room.REASONS))

REASONS: dict[str, Reason] = {reason.value: reason for reason in _ALL}
"""Every reason by its code."""
assert len(REASONS) == len(_ALL), "a code has one room"

STORED_REFUSALS: frozenset[Reason] = frozenset().union(*(room.STORED for room in _ROOMS))
"""Refusals by state (402, 404, 409): kept with the idempotency key, so a retry never changes the
outcome. Refusals that only wait for time or for usage are not among them: jobs ask again. Nor are
the three of join codes: strangers ask, and must not leave rows behind.
"""


def reason_of(code: str) -> Reason:
    """The reason that has this code. Raises KeyError for a code that names no rule."""
    return REASONS[code]
