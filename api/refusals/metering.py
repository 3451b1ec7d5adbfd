"""What refusals say: usage reports and the log they are stored in."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, Sentence, sentence, when
from domain.metering.reasons import MeteringReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    MeteringReason.ACCRUAL_NOT_DUE: sentence(
        CONFLICT,
        when(
            "This hour of the lease ends at {due_us:time} and cannot be charged before. The "
            "timer charges it then.",
            due_us=ANY,
        ),
        when(
            "The last part of the lease, up to {settles_at_us:time}, is charged when the lease "
            "is settled. Nothing needs to be done.",
            settles_at_us=ANY,
        ),
        when(
            "The lease cannot be settled yet: its first {hour_index:count} hours are charged, "
            "later ones are not. The timer charges them; nothing needs to be done.",
            hour_index=ANY,
        ),
        "This hour of the lease cannot be charged yet. The timer charges it when it is over.",
    ),
    MeteringReason.USAGE_POSITION_FELL: sentence(
        CONFLICT,
        when(
            "Reports up to position {reached:count} are counted already. Count only later reports.",
            reached=ANY,
        ),
        when(
            "Lane {lane:text} of the usage log has {size:count} entries in this pin, fewer than "
            "the last pin or others. Compare the database with a backup before going on.",
            lane=ANY,
        ),
        "These reports are counted already. Count only later reports.",
    ),
    MeteringReason.USAGE_INCOMPLETE: sentence(
        CONFLICT,
        when(
            "The reports of the lease[ {lease_id:text}] do not reach {until_us:time} yet. Wait "
            "until the node has sent them; the lease is settled after 24 hours in any case.",
            until_us=ANY,
        ),
        "The reports of the lease are not complete yet. Wait until the node has sent them.",
    ),
    MeteringReason.UNKNOWN_LOG: sentence(
        INVALID, "[There is no log {log:text}. ]The logs are those that the case format names."
    ),
    MeteringReason.WRONG_LANE: sentence(
        INVALID, "The entry belongs to another log[ than {log:text}]. Give entries of one log."
    ),
    MeteringReason.STREAM_MOVED: sentence(
        CONFLICT,
        "The object was changed by another request at the same moment. Send the request again.",
    ),
    MeteringReason.COUNTERSIGN_TIME: sentence(
        INVALID,
        "The signed period must end after the lease was opened[ at {opened_at_us:time}] and not "
        "in the future. Sign for the usage up to now.",
        "The signed period must end after the lease was opened and not in the future. Sign for "
        "the usage up to now.",
    ),
    MeteringReason.COUNTERSIGN_FELL: sentence(
        CONFLICT,
        "Usage up to {until_us:time} ({gpu_us:gpu_hours}) is signed already, and a later "
        "signature cannot sign for less. Sign for that much or more.",
        "A later signature cannot sign for less than an earlier one. Sign for that much or more.",
    ),
    MeteringReason.CUT_INCOMPLETE: sentence(
        CONFLICT,
        when(
            "Epoch {epoch:count} cannot be closed, because the logs of these nodes are not in "
            "its cut: {missing:text}. Cut again.",
            missing=ANY,
        ),
        when(
            "A pin names the 64 lanes of the usage log in order; {lanes:count} were given. Read "
            "the lanes again.",
            lanes=ANY,
        ),
        "The cut of the epoch is not complete. Cut again.",
    ),
}
