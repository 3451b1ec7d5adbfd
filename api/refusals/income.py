"""What refusals say: earnings, cash-outs and invoices."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.MATURITY_WINDOW: sentence(
        CONFLICT,
        when(
            "The next version of the holdback is {expected:count}, not {version:count}. Publish "
            "under that number.",
            expected=ANY,
        ),
        when(
            "The holdback of {window_us:span} is out of range; the most is {most:span}. Choose "
            "a shorter one.",
            window_us=ANY,
        ),
        when(
            "The holdback would take effect at {effective_from_us:time}, in the past or before "
            "the version before it. Choose a later start.",
            effective_from_us=ANY,
        ),
        "The holdback does not follow the one before it. Choose a later start.",
    ),
    Reason.EARNING_MATURED: sentence(
        CONFLICT,
        "These earnings have matured, so they cannot be reduced any more. Book an adjustment "
        "instead.",
    ),
    Reason.EARNINGS_STATE: sentence(
        CONFLICT,
        when(
            "Earnings mature in order, and the next ones begin after the fact {expected:count}. "
            "Continue there.",
            expected=ANY,
        ),
        when(
            "Earnings up to {due_until_us:time} can mature now, not those up to "
            "{through_us:time}. Try again later.",
            due_until_us=ANY,
        ),
        "The earnings have changed in the meantime. Read them again.",
    ),
    Reason.PAYMENT_MODE: sentence(
        INVALID,
        when(
            "A payment in cash needs a destination, and this account has none. Set it with "
            "`tallystick cash-out mode ACCOUNT cash --to DESTINATION`, where DESTINATION is "
            "your account at the payment processor.",
            rule="cash needs a destination",
        ),
        when(
            "Cash is paid to the account that earned it, so no other billing account can be "
            "named. Leave it out, or choose credits.",
            rule="cash is paid to its own account",
        ),
        "[{mode:text} is not a way to be paid. ]Choose credits or cash.",
    ),
    Reason.CASH_OUT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no cash-out[ {cash_out_id:text}] that you may see. `tallystick cash-out list` "
        "shows yours.",
    ),
    Reason.CASH_OUT_HELD: sentence(
        CONFLICT,
        when(
            "Cash-outs to this new destination are possible from {until_us:time}. Ask again "
            "then; the delay protects you if another person changed the destination.",
            until_us=ANY,
        ),
        when(
            "{held_units:credit} of the earnings are held back by open disputes or reversals. "
            "Cash out less, or wait until they are decided.",
            held_units=ANY,
        ),
        when(
            "Cash-outs of the account {account_id:text} are held: {holds:text}. The operator "
            "can release a hold with `tallystick cash-out release`.",
            holds=ANY,
        ),
        "Cash-outs of the account are held now. `tallystick cash-out earnings` shows why.",
    ),
    Reason.CASH_OUT_STATE: sentence(
        CONFLICT,
        "The cash-out {cash_out_id:text} is {status:word}, which does not allow this. "
        "`tallystick cash-out show` shows what happened to it.",
        "The state of the cash-out does not allow this. `tallystick cash-out show` shows it.",
    ),
    Reason.CASH_OUT_TOO_SMALL: sentence(
        INVALID,
        "The smallest cash-out is {minimum:credit}; {units:amount} can be paid out now. Wait "
        "until you have earned more.",
        "The amount is below the smallest cash-out. Wait until you have earned more.",
    ),
    Reason.DIFFERENCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no difference[ {difference_id:text}] between the bank and the books. List the "
        "differences and check the id.",
    ),
    Reason.INVOICE_KIND_UNKNOWN: sentence(
        INVALID,
        "[{kind:text} is not a kind of invoice. ]Choose one that `tallystick invoice issue "
        "--help` lists.",
    ),
    Reason.BAD_PERIOD: sentence(
        INVALID,
        when("{period:text} is not a month. Write it like 2026-11.", period=ANY),
        when(
            "The attribute would expire at {expires_at_us:time}, which is before it begins or "
            "too late. Choose another expiry.",
            expires_at_us=ANY,
        ),
        when(
            "The attribute was signed for {stated_at_us:time}, which is not now. Sign it again "
            "with the present time.",
            stated_at_us=ANY,
        ),
        when(
            "The period from {from_us:time} to {until_us:time} is empty or too long. Choose "
            "another one.",
            from_us=ANY,
        ),
        "The period is not valid. Write a month like 2026-11, or a start before its end.",
    ),
    Reason.PERIOD_NOT_OVER: sentence(
        INVALID,
        "The month[ {period:text}] cannot be invoiced yet, because its last usage can still "
        "arrive. Try again some days after its end.",
    ),
    Reason.INVOICE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no invoice[ {number:text}][ {invoice_id:text}] that you may see. `tallystick "
        "invoice list` shows yours.",
    ),
    Reason.INVOICE_EXISTS: sentence(
        CONFLICT,
        "The invoice of this month exists already[ under the number {number:text}]. Correct it "
        "with `tallystick invoice credit`.",
    ),
    Reason.NOTHING_TO_INVOICE: sentence(
        CONFLICT, "The account has nothing to invoice[ in {period:text}]. Choose another month."
    ),
    Reason.CREDIT_NOTE_EXISTS: sentence(
        CONFLICT,
        "A credit note for {cause:text} exists already[, number {number:text}]. Name another "
        "cause for another correction.",
        "A credit note for this cause exists already. Name another cause for another correction.",
    ),
    Reason.INVOICE_LINE_UNKNOWN: sentence(
        INVALID,
        "The invoice has the lines 1 to {lines:count}, and line {line:count} is not one of "
        "them. Correct the number.",
        "The invoice has no such line. Correct the number.",
    ),
    Reason.CREDIT_ABOVE_LINE: sentence(
        CONFLICT,
        "Line {line:count} of the invoice has {left:credit} left to credit. Credit at most that.",
        "The credit is more than what is left of the line. Credit less.",
    ),
}
