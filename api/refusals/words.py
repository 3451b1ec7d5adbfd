"""The sentence and the status of every refusal reason, merged from the rooms.

A new reason is written into the file of its room, with its status, and nowhere else.
"""

from __future__ import annotations

from api.refusals import chain as refusal_words_chain
from api.refusals import corrections as refusal_words_corrections
from api.refusals import epochs as refusal_words_epochs
from api.refusals import fleet as refusal_words_fleet
from api.refusals import funds as refusal_words_funds
from api.refusals import governance as refusal_words_governance
from api.refusals import hardware as refusal_words_hardware
from api.refusals import income as refusal_words_income
from api.refusals import jobs as refusal_words_jobs
from api.refusals import lease as refusal_words_lease
from api.refusals import leasing as refusal_words_leasing
from api.refusals import market as refusal_words_market
from api.refusals import metering as refusal_words_metering
from api.refusals import parties as refusal_words_parties
from api.refusals import pools as refusal_words_pools
from api.refusals import prices as refusal_words_prices
from api.refusals import trust as refusal_words_trust
from api.refusals.sentence import Sentence
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
