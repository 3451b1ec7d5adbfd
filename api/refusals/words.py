"""The sentence and the status of every refusal reason, merged from the rooms.

A new reason is written into the file of its room, with its status, and nowhere else.
"""

from __future__ import annotations

from api.refusals import (
    authority,
    chain,
    corrections,
    epochs,
    funds,
    governance,
    income,
    jobs,
    lease,
    market,
    metering,
    parties,
    pools,
    prices,
    trust,
)
from api.refusals.sentence import ANY, INVALID, Sentence, sentence, when
from api.refusals.supply import cloud, fleet, hardware, sites, storage
from domain.money import MoneyReason
from domain.reasons import REASONS
from domain.refusal import Reason

_MONEY: dict[Reason, Sentence] = {
    MoneyReason.NEGATIVE_POOL: sentence(
        INVALID, "The amount to share out must be 0 or more. Give such an amount."
    ),
    MoneyReason.NEGATIVE_WEIGHT: sentence(
        INVALID, "The weight[ of the node {node_id:text}] must be 0 or more. Give such a weight."
    ),
    MoneyReason.DUPLICATE_ID: sentence(
        INVALID,
        when(
            "An account cannot be on its own counterparty list. Remove it from the list.",
            rule="an account always deals with itself",
        ),
        when(
            "Name each participant once, and leave out the account that creates the job.",
            rule="each participant once, and not the creator",
        ),
        when("Something is named twice: {rule:rule}. Remove the second one.", rule=ANY),
        when("An entry[ of {rows:field}] is named twice. Remove the second one.", rows=ANY),
        when(
            "The cash-out {cash_out_id:text} exists already, with other contents. Use a new id.",
            cash_out_id=ANY,
        ),
        when("The key {key_id:text} exists already. Use a new id.", key_id=ANY),
        when("The node {node_id:text} is named twice. Name it once.", node_id=ANY),
        when("A line is named twice: {lines:text}. Name each line once.", lines=ANY),
        "Something is named twice. Name it once.",
    ),
}
"""What dividing amounts refuses, which belongs to no room."""
_ROOMS = (
    _MONEY,
    parties.SENTENCES,
    authority.SENTENCES,
    prices.SENTENCES,
    funds.SENTENCES,
    hardware.SENTENCES,
    fleet.SENTENCES,
    cloud.SENTENCES,
    sites.SENTENCES,
    metering.SENTENCES,
    lease.SENTENCES,
    storage.SENTENCES,
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
