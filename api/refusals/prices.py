"""What refusals say: tariffs, prices of a TOKEN, and how a lease is priced."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.TARIFF_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "There is no tariff with version {version:count}. `tallystick tariff list` shows "
            "the versions.",
            version=ANY,
        ),
        "No tariff is in force[ at {at_us:time}]. The operator must publish one with "
        "`tallystick tariff publish`.",
    ),
    Reason.TARIFF_VERSION: sentence(
        CONFLICT,
        when(
            "The next version of the tariff is {expected:count}, not {version:count}. Read "
            "`tallystick tariff list` and publish under that number.",
            expected=ANY,
        ),
        "The tariff would take effect[ at {effective_from_us:time},] in the past or before the "
        "version before it. Choose a later start.",
    ),
    Reason.TARIFF_NOTICE: sentence(
        CONFLICT,
        "The notice period is too short: the earliest possible start is {earliest_us:time}. "
        "Choose that start or a later one.",
        "The notice period is too short. Choose a later start.",
    ),
    Reason.PRICE_ABOVE_CAP: sentence(
        CONFLICT,
        "The price is {price:credit} per GPU-hour; your limit is {cap:amount}. Raise the limit "
        "to {price:amount}, or choose a cheaper offer.",
        "The price per GPU-hour is above your limit. Raise the limit, or choose a cheaper offer.",
    ),
    Reason.PRICE_BELOW_USAGE_FEE: sentence(
        INVALID,
        when(
            "The price is below the usage fee of this GPU class, {usage_fee:credit} per "
            "GPU-hour. Ask at least {usage_fee:amount}.",
            usage_fee=ANY,
        ),
        when(
            "The price is {price:credit} per GPU-hour, below the usage fee of {fee:amount}. Ask "
            "at least {fee:amount}.",
            fee=ANY,
        ),
        "The price is below the usage fee of this GPU class. Ask at least the usage fee that "
        "the tariff shows.",
    ),
    Reason.GPU_CLASS_UNPRICED: sentence(
        INVALID,
        when(
            "The tariff has no usage fee for the GPU class {gpu_class:text}. The operator must "
            "add the class to the tariff first.",
            gpu_class=ANY,
        ),
        when(
            "The tariff has no usage fee for the GPUs of the node {node_id:text}. The operator "
            "must add their class to the tariff first.",
            node_id=ANY,
        ),
        "The tariff has no usage fee for this GPU class. The operator must add the class to the "
        "tariff first.",
    ),
    Reason.SLA_CLASS_UNKNOWN: sentence(
        INVALID,
        "The tariff has no SLA class[ {sla_class:text}]. Choose one that `tallystick tariff "
        "list` shows.",
    ),
    Reason.PRICING_UNKNOWN: sentence(
        INVALID,
        "There is no pricing module[ {pricing:text}]. Choose one of: {known:text}.",
        "There is no such pricing module. `tallystick bid modules` lists them.",
    ),
    Reason.PRICING_NOT_OFFERED: sentence(
        INVALID,
        when(
            "The pool {pool_id:text} takes bids only. Send a bid with the request.",
            rule="name your bid",
        ),
        when(
            "The pool {pool_id:text} is rented by the month only. Send the number of months "
            "with the request.",
            rule="name your months",
        ),
        when(
            "The pricing {pricing:text} is not an auction. Request the lease without asking for "
            "bids.",
            kind=ANY,
        ),
        when(
            "The lease {lease_id:text} is not priced by a standing bid, so it has no bid to "
            "set. Request a new lease with a bid.",
            lease_id=ANY,
        ),
        "This way of pricing is not offered here. `tallystick bid modules` lists the pricing "
        "modules; use the one of the pool.",
    ),
    Reason.TERM_NOT_OFFERED: sentence(
        INVALID,
        when(
            "The request names both a term and {months:months}. Send only one of the two.",
            rule="months are the term",
        ),
        when(
            "The price for {months:months} is now {price:credit} per GPU-hour, and the lease "
            "has {locked:amount} locked. Request a new lease for the new price.",
            price=ANY,
        ),
        when(
            "A lease for {months:months} is not offered. Choose one of: {offered:text} months.",
            offered=ANY,
        ),
        when(
            "The offer {offer_id:text} has no price for {months:months}. Choose a number of "
            "months that `tallystick bid prices` shows.",
            offer_id=ANY,
        ),
        "The term and the number of months do not go together. Send the months alone, with a "
        "pricing by the month.",
    ),
    Reason.PRICE_SOURCES_INVALID: sentence(
        INVALID,
        "The list of price sources was refused: {rule:rule}. Correct the list and send it again.",
        "The list of price sources was refused. Name each source once.",
    ),
    Reason.PRICE_SOURCE_UNKNOWN: sentence(
        NOT_FOUND,
        "[{source:text} is not a price source of the oracle. ]`tallystick oracle show` lists "
        "the sources.",
    ),
    Reason.PRICE_TIMES: sentence(
        INVALID,
        "The times of the price are out of order[: published {published_at_us:time}, observed "
        "{observed_at_us:time}]. A price is published first and then observed, and neither is "
        "later than now.",
    ),
    Reason.PRICE_SNAPSHOT: sentence(
        CONFLICT,
        when(
            "No price sources are set, so no snapshot can be used. Set sources with `tallystick "
            "oracle sources`, or leave the snapshot out.",
            rule="no sources were named",
        ),
        when(
            "The price must come from the last snapshot[, and {number:count} is not]. Take the "
            "number from `tallystick oracle snapshots`.",
            rule="not the last snapshot",
        ),
        when(
            "The last snapshot of the TOKEN price is not healthy. Wait for a healthy one, or "
            "repair the price sources.",
            rule="no healthy last snapshot",
        ),
        when(
            "The last snapshot of the TOKEN price is too old: it is from {taken_us:time}. Take "
            "a new one with `tallystick oracle snapshot`.",
            rule="too old",
        ),
        when(
            "{price_micro_usd:usd} is not the price of the snapshot {number:count}. Use the "
            "price that `tallystick oracle snapshots` shows.",
            price_micro_usd=ANY,
        ),
        "The snapshot of the TOKEN price cannot be used. Take a new one with `tallystick oracle "
        "snapshot`.",
    ),
    Reason.ORACLE_DORMANT: sentence(
        CONFLICT,
        "The price oracle is {health:word}, so the TOKEN has no price now. Wait until enough "
        "sources report again; `tallystick oracle show` shows them.",
        "The price oracle has no healthy price of the TOKEN now. Wait until enough sources "
        "report again; `tallystick oracle show` shows them.",
    ),
    Reason.PRICE_TOO_LOW: sentence(
        INVALID,
        "The TOKEN price[ {price_micro_usd:usd}] is below the lowest allowed price[, "
        "{lowest:usd}]. Check the unit of the price.",
    ),
    Reason.UNKNOWN_GPU_CLASS: sentence(
        INVALID,
        "There is no GPU class[ {gpu_class:text}] in this formula. Choose a class of the tariff.",
    ),
    Reason.FEE_OUT_OF_RANGE: sentence(
        INVALID,
        "The fee must be from 0 to 10,000 basis points[, not {fee_bps:count}]. Correct the fee.",
    ),
    Reason.BAD_MIN_SOURCES: sentence(
        INVALID,
        "The least number of price sources must be at least 1[, not {min_sources:count}]. "
        "Correct it.",
    ),
    Reason.BAD_WINDOW: sentence(
        INVALID,
        "The window of time is out of range[: {window_us:span} was given]. Choose a valid "
        "length, longer than 0.",
    ),
}
