"""What refusals say: reward epochs: opening, closing, sealing and crediting."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.EPOCH_UNKNOWN: sentence(
        NOT_FOUND, "There is no epoch[ {epoch:count}]. `tallystick epoch list` shows the epochs."
    ),
    Reason.EPOCH_STATE: sentence(
        CONFLICT,
        when(
            "Epoch {epoch:count} began at {start_us:time} already, with other terms. Nothing "
            "needs to be done.",
            start_us=ANY,
        ),
        when(
            "Epoch {epoch:count} is not the newest epoch any more. Read `tallystick epoch list` "
            "and send the newest.",
            rule="is not the newest",
        ),
        when(
            "Epoch {epoch:count} is {status:word} and not sealed yet. Use `tallystick epoch "
            "preview` until it is sealed.",
            rule="not sealed yet",
        ),
        when(
            "Epoch {epoch:count} is not closed yet. Close it with `tallystick epoch close` first.",
            rule="not closed",
        ),
        "Epoch {epoch:count} is {status:word}, which does not allow this. `tallystick epoch "
        "list` shows the states.",
        "The state of the epoch[ {epoch:count}] does not allow this. `tallystick epoch list` "
        "shows it.",
    ),
    Reason.EPOCH_NOT_OVER: sentence(
        CONFLICT,
        when(
            "Epoch {epoch:count} ends at {end_us:time} and cannot be closed before. Close it then.",
            end_us=ANY,
        ),
        when(
            "The rewards of epoch {epoch:count} mature at {due_us:time}. Try again then.",
            due_us=ANY,
        ),
        "The epoch is not over yet. Try again after its end.",
    ),
    Reason.EPOCH_OUT_OF_ORDER: sentence(
        CONFLICT,
        when(
            "Epoch {epoch:count} waits, because the epoch before it is not sealed. Seal the "
            "earlier one first.",
            rule=ANY,
        ),
        "Epochs begin one after the other, and epoch {epoch:count} is not the next. Open the "
        "epoch that follows the last one.",
        "Epochs follow one after the other. Start with the earliest one that is not sealed.",
    ),
    Reason.CUT_INCOMPLETE: sentence(
        CONFLICT,
        when(
            "Epoch {epoch:count} cannot be closed, because the logs of these nodes are not in "
            "its cut: {missing:text}. Cut again.",
            missing=ANY,
        ),
        when(
            "A cut names each node's log once, and {lanes:count} were given out of order. Cut "
            "again.",
            lanes=ANY,
        ),
        "The cut of the epoch is not complete. Cut again.",
    ),
    Reason.CHUNK_OUT_OF_ORDER: sentence(
        CONFLICT,
        "The parts of epoch {epoch:count} are credited in order, and part {chunk:count} is not "
        "the next. Continue with the next part.",
        "The parts of an epoch are credited in order. Continue with the next part.",
    ),
    Reason.REWARDS_MISMATCH: sentence(
        CONFLICT,
        when(
            "The rewards of epoch {epoch:count} do not match the file with the hash "
            "{file:text}. Compute the epoch file again.",
            file=ANY,
        ),
        when(
            "Part {chunk:count} of the rewards is not the part that was credited. Read the "
            "epoch file again.",
            chunk=ANY,
            rule=ANY,
        ),
        when(
            "Part {chunk:count} of the rewards of epoch {epoch:count} differs from the sealed "
            "file. Read the epoch file again.",
            chunk=ANY,
        ),
        when(
            "The payout of epoch {epoch:count} was built from another epoch file. Build it from "
            "the sealed file.",
            rule="other epoch file",
        ),
        when(
            "The new payout root of epoch {epoch:count} commits to less than the one before. "
            "Build it again from the sealed files.",
            rule="a root never shrinks",
        ),
        when(
            "The account {account_id:text} has {matured:token} that can be forfeited, which is "
            "not the amount given. Read its rewards again.",
            account_id=ANY,
            matured=ANY,
        ),
        when(
            "A claim of {amount:token} is more than what has matured, {matured:token}. Compare "
            "the books with the chain.",
            amount=ANY,
            matured=ANY,
        ),
        when(
            "A mint of {amount:token} is not what epoch {epoch:count} sealed. Compare the books "
            "with the chain.",
            amount=ANY,
        ),
        when("The list of rewards has another form: {rule:rule}. Correct it.", rule=ANY),
        "The rewards do not match the sealed epoch. Read the epoch file again.",
    ),
    Reason.REWARD_CORRECTION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no reward correction[ {correction_id:text}]. `tallystick reward corrections` "
        "shows them.",
    ),
    Reason.REWARD_CORRECTION_STATE: sentence(
        CONFLICT,
        "The reward correction[ {correction_id:text}] exists already, with other contents. "
        "Propose the new one under a new id.",
    ),
    Reason.NOTHING_UNMATURED: sentence(
        CONFLICT,
        "The reward of this account in epoch {epoch:count} has matured, so nothing of it can be "
        "slashed. Adjust a later epoch with `tallystick reward adjust`.",
        "The reward has matured, so nothing of it can be slashed. Adjust a later epoch with "
        "`tallystick reward adjust`.",
    ),
    Reason.FORFEIT_NOT_DUE: sentence(
        CONFLICT,
        when(
            "The unclaimed rewards up to epoch {epoch:count} can be forfeited from "
            "{due_us:time}. Try again then.",
            due_us=ANY,
        ),
        when(
            "The account {account_id:text} has a wallet now, so its rewards are paid and not "
            "forfeited. Leave it out.",
            rule=ANY,
        ),
        "The unclaimed rewards[ up to epoch {epoch:count}] cannot be forfeited: the policy sets "
        "no time limit, or the epoch is not settled.",
    ),
    Reason.BAD_EPOCH: sentence(INVALID, "The number of an epoch must be 0 or more. Correct it."),
    Reason.BAD_SEGMENT: sentence(
        INVALID,
        when(
            "A segment of the emission breaks its rule: {rule:rule}. Correct the schedule.",
            rule=ANY,
        ),
        "A segment of the emission must have at least one epoch and no negative amount. Correct "
        "the schedule.",
    ),
    Reason.SEGMENTS_OVERLAP: sentence(
        INVALID,
        "Two segments of the emission overlap[ at epoch {start_epoch:count}]. Start each "
        "segment after the one before it.",
    ),
    Reason.BAD_TAU: sentence(
        INVALID,
        "The factor tau must be from 0 to 1[, not {tau:count} parts per million]. Correct it.",
    ),
    Reason.NEGATIVE_BURN: sentence(INVALID, "A burned amount must be 0 or more. Correct it."),
    Reason.NEGATIVE_POOL: sentence(
        INVALID, "The amount to share out must be 0 or more. Correct it."
    ),
    Reason.NEGATIVE_WEIGHT: sentence(
        INVALID, "The weight[ of the node {node_id:text}] must be 0 or more. Correct it."
    ),
    Reason.DUPLICATE_ID: sentence(
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
    Reason.DAY_OUT_OF_MONTH: sentence(
        INVALID,
        "The month has {days:count} days, and day {day:count} is not one of them. Correct the day.",
        "The day is not one of the month. Correct it.",
    ),
    Reason.REMOVED_MORE_THAN_CONFIGURED: sentence(
        INVALID,
        "On day {day:count} more devices would be removed than the {configured:count} that are "
        "there. Correct the numbers.",
        "More devices would be removed than there are. Correct the numbers.",
    ),
}
