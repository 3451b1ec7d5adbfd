"""The sentence and the status of every refusal reason, merged from the rooms.

A new reason is written into the file of its room, with its status, and nowhere else.
"""

from __future__ import annotations

from api import (
    refusal_words_chain,
    refusal_words_corrections,
    refusal_words_epochs,
    refusal_words_fleet,
    refusal_words_funds,
    refusal_words_governance,
    refusal_words_hardware,
    refusal_words_income,
    refusal_words_jobs,
    refusal_words_lease,
    refusal_words_leasing,
    refusal_words_market,
    refusal_words_metering,
    refusal_words_parties,
    refusal_words_pools,
    refusal_words_prices,
    refusal_words_trust,
)
from api.refusal_sentence import Sentence
from domain.refusal import Reason

_ROOMS = (
    refusal_words_parties.SENTENCES,
    refusal_words_prices.SENTENCES,
    refusal_words_funds.SENTENCES,
    refusal_words_hardware.SENTENCES,
    refusal_words_fleet.SENTENCES,
    refusal_words_metering.SENTENCES,
    refusal_words_lease.SENTENCES,
    refusal_words_trust.SENTENCES,
    refusal_words_epochs.SENTENCES,
    refusal_words_governance.SENTENCES,
    refusal_words_chain.SENTENCES,
    refusal_words_market.SENTENCES,
    refusal_words_pools.SENTENCES,
    refusal_words_jobs.SENTENCES,
    refusal_words_leasing.SENTENCES,
    refusal_words_income.SENTENCES,
    refusal_words_corrections.SENTENCES,
)

SENTENCES: dict[Reason, Sentence] = {
    reason: found for room in _ROOMS for reason, found in room.items()
}
assert len(SENTENCES) == sum(map(len, _ROOMS)), "a reason has one room"
assert SENTENCES.keys() == set(Reason), set(Reason) ^ SENTENCES.keys()
