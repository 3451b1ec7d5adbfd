"""What refusals say: what a lease is and the states it can be in."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.LEASE_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "No bids are asked for the lease {lease_id:text}. `tallystick bid requests` shows "
            "the requests that take bids.",
            rule="no bids are asked for it",
        ),
        "There is no lease[ {lease_id:text}] that you may see. `tallystick lease list` shows "
        "yours.",
    ),
    Reason.LEASE_EXISTS: sentence(
        CONFLICT,
        "The lease[ {lease_id:text}] exists already. Use it, or send a new request without an id.",
    ),
    Reason.LEASE_NOT_OPEN: sentence(
        CONFLICT,
        "The lease[ {lease_id:text}] is {status:word}, so no usage can be charged to it. Usage "
        "counts while a lease is active or closing.",
        "The lease is not open, so no usage can be charged to it. Usage counts while a lease is "
        "active or closing.",
    ),
    Reason.LEASE_STATE: sentence(
        CONFLICT,
        when(
            "The lease {lease_id:text} is not interruptible, so it cannot be paused. Close it, "
            "or rent an interruptible one next time.",
            rule="interruptible",
        ),
        when(
            "The lease {lease_id:text} has no fixed term, so it cannot be extended. Add credits "
            "with `tallystick lease top-up` instead.",
            rule="fixed_term",
        ),
        when(
            "The lease {lease_id:text} does not hold a part of the device {device_id:text}. "
            "Check both ids.",
            rule="holds_a_part",
        ),
        when(
            "Another executor of the node runs this work already. Stop the other executor, or "
            "leave the work to it.",
            rule="another executor has the work",
        ),
        when(
            "The lease is {status:word}, and only the work of a closed lease is stopped in this "
            "way. Close the lease first.",
            rule="only closed work is stopped",
        ),
        when(
            "Another executor acknowledged the start of this work. Only that executor can "
            "report its end.",
            rule="another executor started it",
        ),
        when(
            "The job {job_id:text} has no lease that ended with the code 100, so none can be "
            "restarted. Open a new lease.",
            rule="no lease of it ended with 100",
        ),
        when(
            "The escrow {escrow:text} ended at {ended_at_us:time}. Create a new one with "
            "`tallystick job escrow`.",
            escrow=ANY,
        ),
        when(
            "The lease {lease_id:text} was restarted already, as {restarted_as:text}. Use that "
            "lease.",
            restarted_as=ANY,
        ),
        when(
            "The lease {lease_id:text} ended with the code {close_code:text}, which allows no "
            "restart. Open a new lease.",
            close_code=ANY,
        ),
        when(
            "The quote {quote_id:text} expired at {expired_us:time}. Ask for a new quote with "
            "`tallystick lease quote`.",
            quote_id=ANY,
        ),
        when(
            "The lease {lease_id:text} is not of a federated job, so there is no federated fee "
            "to top up. Top up the lease itself.",
            federated="False",
        ),
        when(
            "The credits of the lease ended at {ended_at_us:time}, and it is being closed. Open "
            "a new lease.",
            ended_at_us=ANY,
        ),
        when(
            "The node had to be ready by {ready_until_us:time}, and that time has passed. The "
            "lease is cancelled at no charge; request a new one.",
            ready_until_us=ANY,
        ),
        when(
            "The lease {lease_id:text} is {status:word}, and the close code {code:text} is not "
            "true of it. Choose a code that fits its state.",
            code=ANY,
            status=ANY,
        ),
        when(
            "The lease[ {lease_id:text}] is closing, which does not allow this. It is settled "
            "when the last reports have arrived.",
            status="closing",
        ),
        "A lease that is {status:word} does not allow this[ ({lease_id:text})]. `tallystick "
        "lease show` shows its state.",
        "The state of the lease does not allow this. `tallystick lease show` shows it.",
    ),
    Reason.LEASE_NOT_DUE: sentence(
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
    Reason.CLOSE_CODE_PARTY: sentence(
        INVALID,
        "The {party:word} cannot close a lease with the code {code:text}. Choose a code of that "
        "party's range; docs/explanation/lease-life.md lists them.",
        "This party cannot close a lease with this code. Choose a code of the party's own range.",
    ),
    Reason.ENCRYPTION_KEY_UNKNOWN: sentence(
        INVALID,
        "The lease[ {lease_id:text}] was requested without an encryption key, so credentials "
        "cannot be sealed for its renter. Send none.",
    ),
}
