"""What refusals say: reward epochs: opening, closing, sealing and crediting."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.epochs.reasons import EpochsReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    EpochsReason.EPOCH_UNKNOWN: sentence(
        NOT_FOUND, "There is no epoch[ {epoch:count}]. `tallystick epoch list` shows the epochs."
    ),
    EpochsReason.EPOCH_STATE: sentence(
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
    EpochsReason.EPOCH_NOT_OVER: sentence(
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
    EpochsReason.EPOCH_OUT_OF_ORDER: sentence(
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
    EpochsReason.CHUNK_OUT_OF_ORDER: sentence(
        CONFLICT,
        "The parts of epoch {epoch:count} are credited in order, and part {chunk:count} is not "
        "the next. Continue with the next part.",
        "The parts of an epoch are credited in order. Continue with the next part.",
    ),
    EpochsReason.REWARDS_MISMATCH: sentence(
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
        when(
            "The list of rewards has another form: {rule:rule}. Send the list in that form.",
            rule=ANY,
        ),
        "The rewards do not match the sealed epoch. Read the epoch file again.",
    ),
    EpochsReason.REWARD_CORRECTION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no reward correction[ {correction_id:text}]. `tallystick reward corrections` "
        "shows them.",
    ),
    EpochsReason.REWARD_CORRECTION_STATE: sentence(
        CONFLICT,
        "The reward correction[ {correction_id:text}] exists already, with other contents. "
        "Propose the new one under a new id.",
    ),
    EpochsReason.NOTHING_UNMATURED: sentence(
        CONFLICT,
        "The reward of this account in epoch {epoch:count} has matured, so nothing of it can be "
        "slashed. Adjust a later epoch with `tallystick reward adjust`.",
        "The reward has matured, so nothing of it can be slashed. Adjust a later epoch with "
        "`tallystick reward adjust`.",
    ),
    EpochsReason.FORFEIT_NOT_DUE: sentence(
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
        "no time limit for claims, or the epoch is not settled. Wait until `tallystick epoch list` "
        "shows it as settled, or schedule a policy with such a limit.",
    ),
    EpochsReason.BAD_EPOCH: sentence(
        INVALID, "The number of an epoch must be 0 or more. Give such a number."
    ),
    EpochsReason.BAD_SEGMENT: sentence(
        INVALID,
        when(
            "A segment of the emission breaks its rule: {rule:rule}. Correct the schedule.",
            rule=ANY,
        ),
        "A segment of the emission must have at least one epoch and no negative amount. Correct "
        "the schedule.",
    ),
    EpochsReason.SEGMENTS_OVERLAP: sentence(
        INVALID,
        "Two segments of the emission overlap[ at epoch {start_epoch:count}]. Start each "
        "segment after the one before it.",
    ),
    EpochsReason.BAD_TAU: sentence(
        INVALID, "The factor tau must be from 0 to 1[, not {tau:part}]. Choose a number in between."
    ),
    EpochsReason.NEGATIVE_BURN: sentence(
        INVALID, "A burned amount must be 0 or more. Give such an amount."
    ),
    EpochsReason.POLICY_VERSION: sentence(
        CONFLICT,
        when(
            "The next version of the policy is {expected:count}, not {version:count}. Read "
            "`tallystick policy versions` and use that number.",
            expected=ANY,
        ),
        when(
            "There is no policy with version {version:count}. `tallystick policy versions` "
            "shows them.",
            version=ANY,
        ),
        when(
            "No policy is in force for epoch {epoch:count}. Publish one that starts with it or "
            "before.",
            epoch=ANY,
        ),
        "The version of the policy does not exist or is not the next one. `tallystick policy "
        "versions` shows them.",
    ),
    EpochsReason.PROPOSAL_NEEDED: sentence(
        CONFLICT,
        "A policy changes by an approved proposal only. Write one, and send it with `tallystick "
        "policy propose`.",
    ),
}
