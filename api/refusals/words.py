"""The sentence and the status of every refusal reason, merged from the rooms.

A new reason is written into the file of its room, with its status, and nowhere else.
"""

from __future__ import annotations

from api.refusals import (
    authority,
    chain,
    corrections,
    epochs,
    fleet,
    funds,
    governance,
    hardware,
    income,
    jobs,
    lease,
    market,
    metering,
    money,
    parties,
    pools,
    prices,
    trust,
)
from api.refusals.sentence import Sentence
from domain.reasons import REASONS
from domain.refusal import Reason

_ROOMS = (
    money.SENTENCES,
    parties.SENTENCES,
    authority.SENTENCES,
    prices.SENTENCES,
    funds.SENTENCES,
    hardware.SENTENCES,
    fleet.SENTENCES,
    metering.SENTENCES,
    lease.SENTENCES,
    trust.SENTENCES,
    epochs.SENTENCES,
    governance.SENTENCES,
    chain.SENTENCES,
    market.SENTENCES,
    pools.SENTENCES,
    jobs.SENTENCES,
    income.SENTENCES,
    corrections.SENTENCES,
)

SENTENCES: dict[Reason, Sentence] = {
    reason: found for room in _ROOMS for reason, found in room.items()
}
assert len(SENTENCES) == sum(map(len, _ROOMS)), "a reason has one room"
assert SENTENCES.keys() == set(REASONS.values()), set(REASONS.values()) ^ SENTENCES.keys()
