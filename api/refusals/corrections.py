"""What refusals say: disputes and late usage."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.corrections.reasons import CorrectionsReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    CorrectionsReason.LINE_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "The line {position:count} is of another lease or volume than the first one. Open one "
            "dispute for each of them.",
            rule="one_subject",
        ),
        "There is no line[ {position:count}] that you may see. `tallystick statement` shows the "
        "lines of your account.",
    ),
    CorrectionsReason.DISPUTE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no dispute[ {dispute_id:text}] that you may see. `tallystick dispute list` "
        "shows yours.",
    ),
    CorrectionsReason.ADJUSTMENT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no adjustment[ {adjustment_id:text}] that you may see. `tallystick statement` "
        "shows the adjustments of your account.",
    ),
    CorrectionsReason.DISPUTE_STATE: sentence(
        CONFLICT,
        when(
            "The dispute {dispute_id:text} lapses at {expires_at_us:time}, not before. Rule on "
            "it, or wait.",
            expires_at_us=ANY,
        ),
        "The dispute {dispute_id:text} is {status:word}, which does not allow this. `tallystick "
        "dispute show` shows it.",
        "The state of the dispute does not allow this. `tallystick dispute show` shows it.",
    ),
    CorrectionsReason.DISPUTE_TOO_LATE: sentence(
        CONFLICT,
        when(
            "The line {position:count} could be disputed until {until_us:time}. Ask the operator "
            "for goodwill.",
            until_us=ANY,
        ),
        "The line[ {position:count}] can be disputed no more. Ask the operator for goodwill.",
    ),
    CorrectionsReason.EVIDENCE_UNKNOWN: sentence(
        INVALID,
        "The evidence of the kind {kind:text} at {lane:text}/{position:count} does not exist. "
        "Name a fact or a report that is in the log.",
        "The evidence at position {position:count} does not exist. Name a fact or a report that "
        "is in the log.",
        "The evidence does not exist. Name a fact or a report that is in the log.",
    ),
    CorrectionsReason.NO_LATE_USAGE: sentence(
        CONFLICT,
        "The lease[ {lease_id:text}] has no usage that is not charged yet. Nothing needs to be "
        "done.",
    ),
}
