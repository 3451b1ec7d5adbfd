"""What refusals say: dividing amounts."""

from __future__ import annotations

from api.refusals.sentence import ANY, INVALID, Sentence, sentence, when
from domain.money import MoneyReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
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
