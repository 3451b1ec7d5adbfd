"""What refusals say: what a lease is and the states it can be in."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.lease.reasons import LeaseReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    LeaseReason.LEASE_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "No bids are asked for the lease {lease_id:text}. `tallystick bid requests` shows "
            "the requests that take bids.",
            rule="no bids are asked for it",
        ),
        "There is no lease[ {lease_id:text}] that you may see. `tallystick lease list` shows "
        "yours.",
    ),
    LeaseReason.LEASE_EXISTS: sentence(
        CONFLICT,
        "The lease[ {lease_id:text}] exists already. Use it, or send a new request without an id.",
    ),
    LeaseReason.LEASE_NOT_OPEN: sentence(
        CONFLICT,
        "The lease[ {lease_id:text}] is {status:word}, so no usage can be charged to it. Usage "
        "counts while a lease is active or closing.",
        "The lease is not open, so no usage can be charged to it. Usage counts while a lease is "
        "active or closing.",
    ),
    LeaseReason.LEASE_NOT_DUE: sentence(
        CONFLICT,
        when(
            "The renter of this lease has a reclaim window, so the provider cannot close it at "
            "once. Announce it with `tallystick lease reclaim` first.",
            rule="reclaim_window",
            status=ANY,
        ),
        when(
            "The renter's reclaim window lasts until {due_us:time}. Close the lease then.",
            rule="reclaim_window",
            due_us=ANY,
        ),
        when(
            "A quote must expire later than it is made, and not too late; {expires_us:time} is "
            "out of range. Choose another expiry.",
            rule="quote_expiry",
        ),
        when(
            "The node must have reported again up to {needed_us:time}; its last good report is "
            "from {healthy_us:time}. The lease recovers when later reports arrive.",
            healthy_us=ANY,
        ),
        when(
            "The lease can be archived after the epoch {epoch:count} is sealed; it is "
            "{status:word} now. Nothing needs to be done.",
            epoch=ANY,
        ),
        when(
            "This can be done with the lease[ {lease_id:text}] from {due_us:time}. Try again then.",
            due_us=ANY,
        ),
        "It is too early to do this with the lease[ {lease_id:text}]. Try again later.",
    ),
    LeaseReason.CLOSE_CODE_PARTY: sentence(
        INVALID,
        "The {party:word} cannot close a lease with the code {code:text}. Choose a code of that "
        "party's range; docs/explanation/lease-life.md lists them.",
        "This party cannot close a lease with this code. Choose a code of the party's own range.",
    ),
    LeaseReason.ENCRYPTION_KEY_UNKNOWN: sentence(
        INVALID,
        "The lease[ {lease_id:text}] was requested without an encryption key, so credentials "
        "cannot be sealed for its renter. Send none.",
    ),
}
