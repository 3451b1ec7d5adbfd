"""What refusals say: governors and their votes."""

from __future__ import annotations

from api.refusals.sentence import (
    ANY,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Sentence,
    sentence,
    when,
)
from domain.authority.reasons import AuthorityReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    AuthorityReason.NO_GOVERNORS: sentence(
        CONFLICT,
        "No governor is enrolled, so there is no one to decide this. Enrol the first one with "
        "`tallystick governor enrol`.",
    ),
    AuthorityReason.VOTE_MISMATCH: sentence(
        CONFLICT,
        when(
            "The vote is for another content than the one proposed, which has the SHA-256 "
            "{expected:text}. Read it again, and sign what you have read.",
            field="content_sha256",
            expected=ANY,
        ),
        when(
            "The vote is for another revision than {expected:count}. Read it again, and sign what "
            "you have read.",
            field="revision",
            expected=ANY,
        ),
        when(
            "The vote names another set of governors than {expected:count}. Read it again, and "
            "sign anew.",
            field="governors",
            expected=ANY,
        ),
        "The vote is for something else than what is proposed. Read it again, and sign anew.",
    ),
    AuthorityReason.GOVERNOR_UNKNOWN: sentence(
        CONFLICT,
        when(
            "The governor {governor_id:text} was enrolled after this was proposed, and has no "
            "vote on it. Let another governor vote.",
            rule="enrolled later",
        ),
        "There is no governor[ {governor_id:text}] now. `tallystick governor list` shows the "
        "governors that may vote.",
    ),
    AuthorityReason.VOTED_ALREADY: sentence(
        CONFLICT,
        "This governor has voted on this revision[ ({revision:count})] already, and each votes "
        "once. Wait for other votes or for a new revision.",
    ),
    AuthorityReason.SECOND_PERSON_NEEDED: sentence(
        CONFLICT,
        "This has {count:count} of {needed:count} votes of the present governors. Ask another "
        "governor to sign.",
        "This needs the signatures of more governors. Ask another governor to sign.",
    ),
    AuthorityReason.GOVERNORS_MOVED: sentence(
        CONFLICT,
        "The set of governors has the version {expected:count} by now. Read `tallystick governor "
        "list`, and sign anew.",
        "The set of governors has changed. Read `tallystick governor list`, and sign anew.",
    ),
    AuthorityReason.GOVERNOR_CHANGE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no change[ {number:count}] of the governors. `tallystick governor list` shows "
        "the changes.",
    ),
    AuthorityReason.GOVERNOR_CHANGE_STATE: sentence(
        CONFLICT,
        when(
            "The change {number:count} comes into force once epoch {from_epoch:count} was opened. "
            "Wait until then, or cancel it with `tallystick governor cancel`.",
            from_epoch=ANY,
        ),
        "The change {number:count} is {status:word}, which does not allow this. `tallystick "
        "governor list` shows the changes.",
        "The state of the change does not allow this. `tallystick governor list` shows it.",
    ),
    AuthorityReason.GOVERNOR_CHANGE_INVALID: sentence(
        INVALID,
        "The change of the governors breaks a rule: {rule:rule}. Correct it and send it again.",
        "The change of the governors breaks a rule. Correct it and send it again.",
    ),
    AuthorityReason.EPOCH_MOVED: sentence(
        CONFLICT,
        "Another epoch than {epoch:count} is the newest by now. Try again.",
        "Another epoch is the newest by now. Try again.",
    ),
    AuthorityReason.ACT_SIGNATURE_VOID: sentence(
        FORBIDDEN,
        "The signatures do not serve for this: {rule:rule}. Write what is to be signed anew with "
        "`--to-sign FILE`, and let two governors sign it with `tallystick governor sign FILE`.",
        "The signatures do not serve for this. Write what is to be signed anew with `--to-sign "
        "FILE`.",
    ),
    AuthorityReason.CHECKER_NEEDED: sentence(
        FORBIDDEN,
        when(
            "One person alone may move {limit:credit} in 24 hours by {act:word}; {alone:credit} "
            "were moved, and this is {units:credit}. It has {count:count} of {needed:count} "
            "signatures of governors: write it with `--to-sign FILE`, let governors sign with "
            "`tallystick governor sign FILE`, and send it with `--signed FILE`.",
            limit=ANY,
        ),
        "This takes two persons whatever it moves ({act:word}). It has {count:count} of "
        "{needed:count} signatures of governors: write it with `--to-sign FILE`, let governors "
        "sign with `tallystick governor sign FILE`, and send it with `--signed FILE`.",
        "This takes the signatures of two governors. Write it with `--to-sign FILE`.",
    ),
    AuthorityReason.KEY_RECOVERY_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no recovery[ {number:count}] of the operator's key. `tallystick key recoveries` "
        "shows them.",
    ),
    AuthorityReason.KEY_RECOVERY_STATE: sentence(
        CONFLICT,
        when(
            "The recovery {number:count} of the operator's key waits until "
            "{effective_at_us:time}. Wait until then, or cancel it with `tallystick key "
            "cancel-recovery {number:count}`.",
            status="waiting",
        ),
        "The recovery {number:count} of the operator's key is {status:word}, which does not allow "
        "this. `tallystick key recoveries` shows it.",
        "The state of the recovery does not allow this. `tallystick key recoveries` shows it.",
    ),
    AuthorityReason.LOG_KEY_STATE: sentence(
        CONFLICT,
        "The key of the log was replaced {number:count} times and is {current_key:text} now, which "
        "does not allow this. `tallystick keys announced` shows every rotation.",
        "The key of the log does not allow this. `tallystick keys announced` shows every rotation.",
    ),
    AuthorityReason.LOG_KEY_OVERLAP: sentence(
        INVALID,
        "The old key of the log may sign beside the new one until {latest_us:time}, for 90 days. "
        "Give fewer `--overlap-days`.",
        "The old key of the log may sign beside the new one for 90 days. Give fewer "
        "`--overlap-days`.",
    ),
}
