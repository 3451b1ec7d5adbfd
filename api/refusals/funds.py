"""What refusals say: amounts, deposits, payments, escrows, promotions and payers."""

from __future__ import annotations

from api.refusals.sentence import (
    ANY,
    CONFLICT,
    INVALID,
    NO_CREDIT,
    NOT_FOUND,
    Sentence,
    sentence,
    when,
)
from domain.funds.reasons import FundsReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    FundsReason.CREDIT_TOO_LOW: sentence(
        NO_CREDIT,
        when(
            "This bid needs a deposit of {needed:credit}; your account has {available:amount} "
            "that can be deposited. Buy credits with `tallystick payment create`.",
            what="deposit",
        ),
        when(
            "Nothing is provisioned without a positive balance; your account has no credits. Buy "
            "credits with `tallystick payment create`.",
            what="provisioning",
        ),
        when(
            "The funds of this lease must be at least {needed:credit}, the price of its first "
            "hour; {available:amount} were given. Raise `--funds` to {needed:amount}.",
            what="funds",
        ),
        when(
            "A cash-out of {needed:credit} was asked for; your account has {available:amount} "
            "of earnings to pay out. Ask for less, or wait until more earnings mature.",
            what="earnings",
        ),
        when(
            "This correction moves {needed:credit}; the accounts that pay for it have "
            "{available:amount}. Correct a smaller part, or wait until they have more.",
            what="adjustment",
        ),
        when(
            "This needs {needed:credit}; {available:amount} are available. Buy credits with "
            "`tallystick payment create`, or ask for less: a lower price limit, a shorter term "
            "or fewer GPUs.",
            needed=ANY,
            available=ANY,
        ),
        when(
            "Only {burn_due:credit} are due to be burned, and {credits:amount} were asked for. "
            "Burn at most {burn_due:amount}.",
            burn_due=ANY,
        ),
        when(
            "The charge-back reserve has {reserve:credit}, and {units:amount} are needed. Fund "
            "the reserve first, or write off less.",
            reserve=ANY,
        ),
        when(
            "The platform's revenue is {revenue:credit}, and {units:amount} are needed. Fund "
            "the reserve with at most {revenue:amount}.",
            revenue=ANY,
        ),
        when(
            "The operator's bank account cannot pay {needed:credit} now: it has {bank:amount}, "
            "and {in_flight:amount} are on their way out. Try again after the next deposit.",
            needed=ANY,
            bank=ANY,
            in_flight=ANY,
        ),
        when(
            "The operator's bank account has {bank:credit}; {customers_cash:amount} of it are "
            "customers' own and {leaving:amount} are on their way out, so {needed:amount} cannot "
            "leave. It leaves when card payments are confirmed or money has come in.",
            needed=ANY,
            bank=ANY,
            leaving=ANY,
            customers_cash=ANY,
        ),
        when(
            "The operator's bank account has {bank:credit}, and {needed:amount} are needed. Try "
            "again when money has come in.",
            needed=ANY,
            bank=ANY,
        ),
        when(
            "The operator's bank account has {bank:credit} free, and {credits:amount} are "
            "needed. Try again when card payments have matured.",
            bank=ANY,
            credits=ANY,
        ),
        "The account does not have enough credit for this. Buy credits with `tallystick payment "
        "create`, or ask for less.",
    ),
    FundsReason.UNPAID_DEBT: sentence(
        CONFLICT,
        "The account owes {owed:credit}, so it cannot open leases. Pay the debt with "
        "`tallystick payment create`; new credits pay it first.",
        "The account has unpaid debt, so it cannot open leases. Pay it with `tallystick payment "
        "create`.",
    ),
    FundsReason.DEPOSIT_EXISTS: sentence(
        CONFLICT,
        "The deposit[ {deposit_id:text}] is recorded already, with other details. Record the "
        "new deposit under a new id.",
    ),
    FundsReason.DEPOSIT_SOURCE_UNKNOWN: sentence(
        INVALID,
        "[{source:text} is not a source of deposits. ]Choose one of the sources[: {allowed:text}].",
    ),
    FundsReason.PURCHASE_EXISTS: sentence(
        CONFLICT,
        "The purchase[ {purchase_id:text}] is recorded already, with other details. Check the "
        "transaction on chain.",
    ),
    FundsReason.PAYMENT_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "No payment belongs to the processor's charge {charge:text}. Check the charge at "
            "the processor.",
            charge=ANY,
        ),
        "There is no payment[ {payment_id:text}] that you may see. `tallystick payment list` "
        "shows yours.",
    ),
    FundsReason.PAYMENT_STATE: sentence(
        CONFLICT,
        when(
            "The payment {payment_id:text} saved no card, so auto top-up cannot use it. Pay "
            "once with `tallystick payment create --save`.",
            saved_method="none",
        ),
        when(
            "The payment {payment_id:text} has reached the largest number of refunds and "
            "reversals. Return the rest outside of this system.",
            takings=ANY,
        ),
        "A payment that is {status:word} does not allow this[ ({payment_id:text})]. `tallystick "
        "payment show` shows what happened to it.",
        "The state of the payment does not allow this. `tallystick payment show` shows what "
        "happened to it.",
    ),
    FundsReason.PAYMENT_NOT_DUE: sentence(
        CONFLICT,
        "The money of the payment[ {payment_id:text}] becomes final at {due_us:time}. Try again "
        "then.",
        "The money of the payment is not final yet. Try again after its charge-back window.",
    ),
    FundsReason.PAYMENT_BELOW_MINIMUM: sentence(
        INVALID,
        "The smallest payment is {minimum:credit}; {units:amount} were asked for. Pay at least "
        "{minimum:amount}.",
        "The amount is below the smallest payment. Pay more.",
    ),
    FundsReason.PAYMENT_TERMS_VERSION: sentence(
        CONFLICT,
        "The next version of the payment terms is {next:count}, not {version:count}. Publish "
        "under that number.",
        "The version of the payment terms is not the next one. Read the terms and publish under "
        "the next number.",
    ),
    FundsReason.PAYMENT_TERMS_INVALID: sentence(
        INVALID,
        when(
            "The smallest payment must be from {least:credit} to {most:credit}. Choose an "
            "amount in between.",
            least=ANY,
            most=ANY,
        ),
        when(
            "The charge-back window must be from 0 to {most:span}. Choose a shorter one.", most=ANY
        ),
        "The {field:field} of the payment terms breaks its rule: {rule:rule}. Correct it and "
        "publish again.",
        "A field of the payment terms breaks its rule. Correct it and publish again.",
    ),
    FundsReason.TOP_UP_INVALID: sentence(
        INVALID,
        when(
            "The {field:field} of auto top-up must be at least {least:credit}, the smallest "
            "payment. Raise it.",
            least=ANY,
        ),
        when(
            "The {field:field} of auto top-up must be more than 0 and at most {most:credit}. "
            "Choose an amount in between.",
            most=ANY,
        ),
        "The {field:field} of auto top-up breaks its rule: {rule:rule}. Correct it and send the "
        "settings again.",
        "A setting of auto top-up breaks its rule. Correct it and send the settings again.",
    ),
    FundsReason.PROMOTION_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no promotion[ {program:text}]. `tallystick promotion list` shows the promotions.",
    ),
    FundsReason.PROMOTION_EXISTS: sentence(
        CONFLICT,
        "The promotion[ {program:text}] exists already. Grant from it, or choose another name.",
    ),
    FundsReason.PROMOTION_ENDED: sentence(
        CONFLICT,
        "The promotion[ {program:text}] is closed, or the grant would have expired already. "
        "Choose another promotion or a later expiry.",
    ),
    FundsReason.PROMOTION_TERMS: sentence(
        CONFLICT,
        "This account has a grant of {program:text} with priority {priority:count}[ and expiry "
        "{expires_at_us:time}]. Grant more of it under the same terms.",
        "This account has a grant of the promotion under other terms. Grant more of it under "
        "the same terms.",
    ),
    FundsReason.PROMOTION_FUND_SHORT: sentence(
        CONFLICT,
        "The fund of the promotion {program:text} has {left:credit} left. Grant at most that, "
        "or let its sponsor open another promotion.",
        "The fund of the promotion has too little left. Grant less.",
    ),
    FundsReason.BAD_PROGRAM: sentence(
        INVALID,
        "[{program:text} is not a valid name of a promotion. ]Use lower-case letters, digits and "
        "hyphens.",
    ),
    FundsReason.PAYER_UNKNOWN: sentence(
        NOT_FOUND,
        "No account pays for the account[ {account_id:text}] in this way. `tallystick payer "
        "list` shows the payers.",
    ),
    FundsReason.PAYER_EXISTS: sentence(
        CONFLICT,
        "A payer for the account[ {account_id:text}] is set already. End it with `tallystick "
        "payer end` first.",
    ),
    FundsReason.AMOUNT_NOT_POSITIVE: sentence(
        INVALID,
        when("The {field:field} must be more than 0. Give a larger value.", field=ANY),
        "The amount must be more than 0. Give a larger amount.",
    ),
    FundsReason.AMOUNT_NOT_CENTS: sentence(
        INVALID,
        "{units:credit} is not a whole number of cents, and banks move whole cents only. Choose "
        "a multiple of {cent:amount}.",
        "The amount is not a whole number of cents. Choose a multiple of 0.01 CREDIT.",
    ),
    FundsReason.BAD_DEPOSIT: sentence(
        INVALID, "A deposit of an escrow must be more than 0. Deposit such an amount."
    ),
    FundsReason.BAD_RATE: sentence(
        INVALID, "The rate of an escrow must be 0 or more. Give such a rate."
    ),
    FundsReason.DUPLICATE_PAYEE: sentence(
        INVALID, "The escrow names a payee twice. Name each payee once."
    ),
    FundsReason.NEGATIVE_ELAPSED: sentence(
        INVALID,
        "The elapsed time must be 0 or more[, not {elapsed_seconds:count} seconds]. Give such a "
        "time.",
    ),
}
