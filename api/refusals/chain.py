"""What refusals say: payout roots, transactions and burns on chain."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, Sentence, sentence, when
from domain.chain.reasons import ChainReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    ChainReason.PAYOUT_STATE: sentence(
        CONFLICT,
        when(
            "The payout of epoch {epoch:count} waits, because the root before it is not "
            "accepted yet. Accept it first with `tallystick payout accept`, or let the "
            "guardian veto it on the chain.",
            rule=ANY,
        ),
        when(
            "The next payout root has the number {expected:count}, not {seq:count}. Read "
            "`tallystick payout status` and build it again.",
            expected=ANY,
        ),
        "The payout of epoch {epoch:count} is {status:word}, which does not allow this. "
        "`tallystick payout status` shows it.",
        "The state of the payout does not allow this. `tallystick payout status` shows it.",
    ),
    ChainReason.PAYOUT_EXISTS: sentence(
        CONFLICT,
        when(
            "The mint of epoch {epoch:count} is recorded already, with the transaction "
            "{tx_hash:text}. Compare it on chain.",
            tx_hash=ANY,
        ),
        "The claim of {address:text} with the number {seq:count} is recorded already, with "
        "other contents. Compare it on chain.",
        "This is recorded already, with other contents. Compare it on chain.",
    ),
    ChainReason.CHAIN_TX_STATE: sentence(
        CONFLICT,
        "The transaction {intent_id:text} is {status:word}, which does not allow this. Wait for "
        "its result on chain.",
        "The state of the transaction does not allow this. Wait for its result on chain.",
    ),
    ChainReason.BURN_STATE: sentence(
        CONFLICT,
        when(
            "The burn {burn_id:count} waits, because the one before it is not finished. Wait "
            "for its result on chain.",
            rule="the one before waits",
        ),
        when(
            "The burn {burn_id:count} was not announced, so it cannot be confirmed. Check the "
            "number of the burn.",
            rule="not intended",
        ),
        when(
            "The burn {burn_id:count} is finished already. Nothing needs to be done.",
            rule="not open",
        ),
        when(
            "A burn began while this correction was decided, so what of the charge is not burned "
            "yet has changed. Ask again.",
            rule="a burn began",
        ),
        when(
            "A new burn needs the next free number, and {burn_id:count} is taken or below 1. "
            "Use the next one.",
            rule=ANY,
        ),
        when(
            "The next burn begins with the fact {expected:count}, not {first_position:count}. "
            "Start it there.",
            expected=ANY,
        ),
        when(
            "The burn {burn_id:count} was confirmed with {tokens:token}, which is not what was "
            "announced. Compare it on chain.",
            tokens=ANY,
        ),
        "The state of the burn does not allow this. Wait for its result on chain.",
    ),
    ChainReason.EMPTY_TREE: sentence(
        INVALID, "A payout needs at least one leaf. Build it from an epoch with rewards."
    ),
    ChainReason.DUPLICATE_LEAF: sentence(
        INVALID, "The leaf[ {row:count}] of the payout stands there twice. Remove the second one."
    ),
}
