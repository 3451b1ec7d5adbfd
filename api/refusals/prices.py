"""What refusals say: tariffs, prices of a TOKEN, and how a lease is priced."""

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
from domain.prices.reasons import PricesReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    PricesReason.TARIFF_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "There is no tariff with version {version:count}. `tallystick tariff list` shows "
            "the versions.",
            version=ANY,
        ),
        "No tariff is in force[ at {at_us:time}]. The operator must publish one with "
        "`tallystick tariff publish`.",
    ),
    PricesReason.TARIFF_VERSION: sentence(
        CONFLICT,
        when(
            "The next version of the tariff is {expected:count}, not {version:count}. Read "
            "`tallystick tariff list` and publish under that number.",
            expected=ANY,
        ),
        "The tariff would take effect[ at {effective_from_us:time},] in the past or before the "
        "version before it. Choose a later start.",
    ),
    PricesReason.TARIFF_NOTICE: sentence(
        CONFLICT,
        "The notice period is too short: the earliest possible start is {earliest_us:time}. "
        "Choose that start or a later one.",
        "The notice period is too short. Choose a later start.",
    ),
    PricesReason.PROFIT_BOUND: sentence(
        CONFLICT,
        when(
            "Under a policy without a cap multiple nothing bounds what a renter gets back by "
            "renting from its own node. Propose a policy with a cap multiple of at most 100 %.",
            rule="rewards have no cap",
        ),
        when(
            "The cap multiple is {multiple_ppm:percent}: more TOKEN would be paid for a node than "
            "were burned for it. Choose a cap multiple of at most 100 %.",
            rule="more TOKEN than were burned",
        ),
        when(
            "A renter that rents from its own node would get back more than "
            "{at_most_ppm:percent} of what it spends[: {back_ppm:percent}]. The SLA class at "
            "`{field:text}`[ of tariff {tariff_version:count}] refunds part of a charge, and the "
            "reward for that part stays. Lower its credit, the part to be burned, or the cap "
            "multiple.",
            rule="refund and reward",
        ),
        when(
            "A renter that rents from its own node with its own client would get "
            "{back_ppm:percent} of a charge back by `{field:text}`[ of tariff "
            "{tariff_version:count}] and a cap multiple of {multiple_ppm:percent}; at most "
            "{at_most_ppm:percent} may come back. Raise the platform's part, or lower the cap "
            "multiple.",
            rule="parts and reward",
        ),
        "A renter that rents from its own node would get too much of a charge back. Raise the "
        "platform's part, or lower the cap multiple.",
    ),
    PricesReason.PRICE_ABOVE_CAP: sentence(
        CONFLICT,
        "The price is {price:credit} per GPU-hour; your limit is {cap:amount}. Raise the limit "
        "to {price:amount}, or choose a cheaper offer.",
        "The price per GPU-hour is above your limit. Raise the limit, or choose a cheaper offer.",
    ),
    PricesReason.PROVIDER_KIND_COST: sentence(
        CONFLICT,
        when(
            "A GPU-hour of the kind {kind:text} must cost more than {above:credit}, the cost of "
            "physical machines, which are the cheapest. Register a higher cost.",
            above=ANY,
        ),
        when(
            "Physical machines are the cheapest kind, and another kind costs {below:credit} per "
            "GPU-hour. Register a lower cost.",
            below=ANY,
        ),
        "Physical machines must stay the cheapest kind of provider. `tallystick provider kinds` "
        "shows the costs.",
    ),
    PricesReason.PRICE_BELOW_USAGE_FEE: sentence(
        INVALID,
        when(
            "The price is below what a GPU-hour costs on this kind of provider, {cost:credit}: the "
            "usage fee and the cost of its machines. Ask at least {cost:amount}.",
            cost=ANY,
        ),
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
    PricesReason.GPU_CLASS_UNPRICED: sentence(
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
    PricesReason.SLA_CLASS_UNKNOWN: sentence(
        INVALID,
        "The tariff has no SLA class[ {sla_class:text}]. Choose one that `tallystick tariff "
        "list` shows.",
    ),
    PricesReason.PRICING_UNKNOWN: sentence(
        INVALID,
        "There is no pricing module[ {pricing:text}]. Choose one of: {known:text}.",
        "There is no such pricing module. `tallystick bid modules` lists them.",
    ),
    PricesReason.PRICING_NOT_OFFERED: sentence(
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
    PricesReason.TERM_NOT_OFFERED: sentence(
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
    PricesReason.PRICE_SOURCES_INVALID: sentence(
        INVALID,
        "The list of price sources was refused: {rule:rule}. Correct the list and send it again.",
        "The list of price sources was refused. Name each source once.",
    ),
    PricesReason.PRICE_SOURCE_UNKNOWN: sentence(
        NOT_FOUND,
        "[{source:text} is not a price source of the oracle. ]`tallystick oracle show` lists "
        "the sources.",
    ),
    PricesReason.PRICE_TIMES: sentence(
        INVALID,
        "The times of the price are too far apart or out of order[: published "
        "{published_at_us:time}, observed {observed_at_us:time}]. A price is observed within a "
        "minute after it was published and sent within a minute after that: send the newest one.",
    ),
    PricesReason.PRICE_SOURCE_FOREIGN: sentence(
        FORBIDDEN,
        "Another member feeds [the price source {source:text}]. Use the key of its feeder, or let "
        "`tallystick oracle sources` name this member for it.",
        "Another member feeds this price source. Use the key of its feeder.",
    ),
    PricesReason.PRICE_KNOWN: sentence(
        CONFLICT,
        "[{source:text} has a price published at {newest_us:time}, and this one is of "
        "{published_at_us:time}. ]Prices are only added, each published later than the one "
        "before: send the next one.",
    ),
    PricesReason.PRICE_SNAPSHOT: sentence(
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
            "The snapshot of the TOKEN price has no usable price or is older than 10 minutes. "
            "Take a new one with `tallystick oracle snapshot`.",
            rule="no healthy recent snapshot",
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
    PricesReason.ORACLE_DORMANT: sentence(
        CONFLICT,
        "The price oracle is {health:word}, so the TOKEN has no price now. Wait until enough "
        "sources report again; `tallystick oracle show` shows them.",
        "The price oracle has no healthy price of the TOKEN now. Wait until enough sources "
        "report again; `tallystick oracle show` shows them.",
    ),
    PricesReason.PRICE_TOO_LOW: sentence(
        INVALID,
        "The TOKEN price[ {price_micro_usd:usd}] is below the lowest allowed price[, "
        "{lowest:usd}]. Check the unit of the price.",
    ),
    PricesReason.UNKNOWN_GPU_CLASS: sentence(
        INVALID,
        "There is no GPU class[ {gpu_class:text}] in this formula. Choose a class of the tariff.",
    ),
    PricesReason.FEE_OUT_OF_RANGE: sentence(
        INVALID,
        "The fee must be from 0 to 10,000 basis points[, not {fee_bps:count}]. Choose a fee in "
        "between.",
    ),
    PricesReason.BAD_MIN_SOURCES: sentence(
        INVALID,
        "The least number of price sources must be at least 1[, not {min_sources:count}]. Choose "
        "such a number.",
    ),
    PricesReason.BAD_WINDOW: sentence(
        INVALID,
        "The window of time is out of range[: {window_us:span} was given]. Choose a valid "
        "length, longer than 0.",
    ),
    PricesReason.AMOUNT_OUT_OF_RANGE: sentence(
        INVALID,
        when(
            "The {field:field} must have 1 to {length_max:characters}. Shorten it or fill it in.",
            field=ANY,
            length_max=ANY,
        ),
        when(
            "The timeout must be at most {at_most:span}. Choose a shorter one.", field="timeout_us"
        ),
        when(
            "The sealed credentials must have at most {at_most:characters}. Send less in them.",
            field="credentials",
        ),
        when("The evidence must be at most {at_most:bytes}. Send less.", field="evidence"),
        when(
            "One part of the output must be at most {at_most:bytes}. Send smaller parts.",
            field="body",
        ),
        when(
            "A task can be held for a limited time only[, not {hold_us:span}]. Ask for a "
            "shorter hold.",
            field="hold_us",
        ),
        when(
            "A quota of {gpu_ppm_max:gpus_of} is out of range. Choose a number of GPUs from 0 "
            "up to the largest quota.",
            field="gpu_ppm_max",
        ),
        when(
            "A monthly budget of {units:credit} is out of range. Choose a smaller amount, 0 or "
            "more.",
            field="monthly",
        ),
        when(
            "The {field:field} must have at most {at_most:characters}. Shorten it.",
            field=ANY,
            at_most=ANY,
        ),
        when(
            "The {field:field} cannot be this amount of {asset:text}. Use the asset and the "
            "range that the field's description names.",
            field=ANY,
            asset=ANY,
        ),
        when(
            "The smallest cash-out must be from {least:credit} to {most:credit}. Choose an "
            "amount in between.",
            least=ANY,
            most=ANY,
        ),
        when(
            "{units:credit} is above the largest amount that one call can move. Split it.",
            asset="CREDIT",
            units=ANY,
        ),
        when(
            "{asset:text} is not the asset of this amount, or the amount is too large. Use the "
            "asset that the field's description names.",
            asset=ANY,
        ),
        when(
            "{returned:credit} cannot be returned, because the cash-out was smaller or the "
            "amount is below 0. Check what came back from the bank.",
            returned=ANY,
        ),
        when(
            "The account owes {owed:credit}, and {units:amount} were to be written off. Write "
            "off at most {owed:amount}.",
            owed=ANY,
        ),
        when(
            "{left:credit} of the payment are left, and {units:amount} were asked for. Take "
            "back at most {left:amount}.",
            left=ANY,
        ),
        when(
            "{units:credit} is more than this call accepts; the most is {most:amount}. Lower "
            "the amount.",
            units=ANY,
            most=ANY,
        ),
        when(
            "A TOKEN price of {price_micro_usd:usd} is above the largest allowed price. Check "
            "the unit of the price.",
            price_micro_usd=ANY,
        ),
        when(
            "The description of the job has {work_bytes:bytes}; the most is "
            "{work_bytes_max:bytes}. Shorten the command, the environment or the demands.",
            work_bytes=ANY,
        ),
        when(
            "The payload of a task must be at most {payload_bytes_max:bytes}. Store larger data "
            "elsewhere and send its address.",
            payload_bytes_max=ANY,
        ),
        when(
            "The fee {row:text} of the tariff must be from 0 to 1,000,000 CREDIT. Choose an "
            "amount in between.",
            row=ANY,
        ),
        when(
            "The {field:field} is out of range. The description of the field tells the range; "
            "choose a value in it.",
            field=ANY,
        ),
        "An amount is out of range. The description of the field tells the range; choose an "
        "amount in it.",
    ),
    PricesReason.ZERO_AMOUNT: sentence(
        INVALID, "The amount must be more than 0. Give such an amount."
    ),
    PricesReason.DAY_OUT_OF_MONTH: sentence(
        INVALID,
        "The month has {days:count} days, and day {day:count} is not one of them. Choose a day "
        "from 1 to {days:count}.",
        "The day is not one of the month. Choose a day that the month has.",
    ),
    PricesReason.REMOVED_MORE_THAN_CONFIGURED: sentence(
        INVALID,
        "On day {day:count} more devices would be removed than the {configured:count} that are "
        "there. Remove at most those.",
        "More devices would be removed than there are. Remove at most those that are there.",
    ),
}
