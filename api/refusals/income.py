"""What refusals say: earnings, cash-outs, invoices and adjustments."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.income.reasons import IncomeReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    IncomeReason.MATURITY_WINDOW: sentence(
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
    IncomeReason.EARNING_MATURED: sentence(
        CONFLICT,
        "These earnings have matured, so they cannot be reduced any more. Book an adjustment "
        "instead.",
    ),
    IncomeReason.EARNINGS_STATE: sentence(
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
    IncomeReason.PAYMENT_MODE: sentence(
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
    IncomeReason.CASH_OUT_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no cash-out[ {cash_out_id:text}] that you may see. `tallystick cash-out list` "
        "shows yours.",
    ),
    IncomeReason.CASH_OUT_HELD: sentence(
        CONFLICT,
        when(
            "Cash-outs to this new destination are possible from {until_us:time}. Ask again "
            "then; the delay protects you if another person changed the destination.",
            until_us=ANY,
        ),
        when(
            "Cash-outs of the account {account_id:text} are held: {holds:text}. The operator "
            "can release a hold with `tallystick cash-out release`.",
            holds=ANY,
        ),
        "Cash-outs of the account are held now. `tallystick cash-out earnings` shows why.",
    ),
    IncomeReason.CASH_OUT_STATE: sentence(
        CONFLICT,
        "The cash-out {cash_out_id:text} is {status:word}, which does not allow this. "
        "`tallystick cash-out show` shows what happened to it.",
        "The state of the cash-out does not allow this. `tallystick cash-out show` shows it.",
    ),
    IncomeReason.CASH_OUT_TOO_SMALL: sentence(
        INVALID,
        "The smallest cash-out is {minimum:credit}; {units:amount} can be paid out now. Wait "
        "until you have earned more.",
        "The amount is below the smallest cash-out. Wait until you have earned more.",
    ),
    IncomeReason.DIFFERENCE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no difference[ {difference_id:text}] between the bank and the books. List the "
        "differences and check the id.",
    ),
    IncomeReason.INVOICE_KIND_UNKNOWN: sentence(
        INVALID,
        "[{kind:text} is not a kind of invoice. ]Choose one that `tallystick invoice issue "
        "--help` lists.",
    ),
    IncomeReason.PERIOD_NOT_OVER: sentence(
        INVALID,
        "The month[ {period:text}] cannot be invoiced yet, because its last usage can still "
        "arrive. Try again some days after its end.",
    ),
    IncomeReason.INVOICE_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no invoice[ {number:text}][ {invoice_id:text}] that you may see. `tallystick "
        "invoice list` shows yours.",
    ),
    IncomeReason.INVOICE_EXISTS: sentence(
        CONFLICT,
        "The invoice of this month exists already[ under the number {number:text}]. Correct it "
        "with `tallystick invoice credit`.",
    ),
    IncomeReason.NOTHING_TO_INVOICE: sentence(
        CONFLICT, "The account has nothing to invoice[ in {period:text}]. Choose another month."
    ),
    IncomeReason.CREDIT_NOTE_EXISTS: sentence(
        CONFLICT,
        "A credit note for {cause:text} exists already[, number {number:text}]. Name another "
        "cause for another correction.",
        "A credit note for this cause exists already. Name another cause for another correction.",
    ),
    IncomeReason.INVOICE_LINE_UNKNOWN: sentence(
        INVALID,
        "The invoice has the lines 1 to {lines:count}, and line {line:count} is not one of them. "
        "Choose one of these.",
        "The invoice has no such line. `tallystick invoice show` lists its lines.",
    ),
    IncomeReason.CREDIT_ABOVE_LINE: sentence(
        CONFLICT,
        "Line {line:count} of the invoice has {left:credit} left to credit. Credit at most that.",
        "The credit is more than what is left of the line. Credit less.",
    ),
    IncomeReason.LINE_DISPUTED: sentence(
        CONFLICT,
        "The line {position:count} is in the dispute {dispute_id:text} already. Wait for its "
        "ruling.",
        "The line is in a dispute already. Wait for its ruling.",
    ),
    IncomeReason.ADJUSTMENT_TOO_LARGE: sentence(
        CONFLICT,
        when(
            "{left:credit} of the line {position:count} can still be returned, and "
            "{units:amount} were asked for. Ask for at most {left:amount}; after "
            "{adjustments:count} adjustments no more may be possible.",
            units=ANY,
        ),
        when(
            "The line has {adjustments:count} adjustments, the most there can be. Pay the rest "
            "in another way.",
            adjustments=ANY,
        ),
        "The adjustment is more than what is left of the line. Ask for less.",
    ),
}
