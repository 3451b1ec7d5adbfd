"""What refusals say: offers, what a chosen offer must meet, matches, auctions and bids."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.market.reasons import MarketReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    MarketReason.OFFER_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "The offer {offer_id:text} has no prices for bids or months. Its provider can set "
            "them with `tallystick bid offer`; `tallystick offer list` shows other offers.",
            rule=ANY,
        ),
        "There is no offer[ {offer_id:text}] that you may see. `tallystick offer list` shows "
        "the offers.",
    ),
    MarketReason.OFFER_EXISTS: sentence(
        CONFLICT,
        "The offer[ {offer_id:text}] exists already, with other terms. Close it with "
        "`tallystick offer close`, or publish under a new id.",
    ),
    MarketReason.OFFER_WITHDRAWN: sentence(
        CONFLICT,
        "The offer[ {offer_id:text}] is closed. Choose another one from `tallystick offer list`.",
    ),
    MarketReason.OFFER_MISMATCH: sentence(
        CONFLICT,
        when(
            "The node may not be rented out, because these hardware rules fail: {failing:word}. "
            "Choose another offer.",
            dimension="sellable",
        ),
        when(
            "The node of the offer {offer_id:text} is not in the pool that the request names. "
            "Choose another offer, or name the pool of the node.",
            dimension="pool",
        ),
        when(
            "The node of the offer {offer_id:text} belongs to a pool that keeps a queue. Name "
            "that pool in the request.",
            dimension="queue",
        ),
        when(
            "The offer {offer_id:text} does not meet the demand {dimension:word}. Choose "
            "another offer, or ease that demand.",
            dimension=ANY,
        ),
        when(
            "The offer is available until {available_until_us:time}, and the lease would last "
            "longer. Choose a shorter term or another offer.",
            available_until_us=ANY,
        ),
        when(
            "The quote {quote_id:text} is for another offer or for other devices. Accept it as "
            "it was quoted.",
            quote_id=ANY,
        ),
        when(
            "The offer does not divide its GPUs in the mode {mode:word}. Choose another mode or "
            "another offer.",
            mode=ANY,
        ),
        when(
            "The GPU cannot take MIG instances of {mig_profile:text} beside those of other "
            "sizes. Choose another profile or another offer.",
            mig_profile=ANY,
        ),
        when(
            "The price of the offer is below the usage fee, {usage_fee:credit} per GPU-hour. "
            "Choose another offer.",
            usage_fee=ANY,
        ),
        when(
            "{gpu_count:gpus} of one node were asked for, and other devices were chosen. Choose "
            "as many devices of one node as the request asks for.",
            gpu_count=ANY,
        ),
        when(
            "The offer is paid by {settlement:word} only. Pay in that way, or choose another "
            "offer.",
            settlement=ANY,
        ),
        when(
            "The bid is below the lowest price for interruptible leases of the offer "
            "{offer_id:text}. Raise the bid, or choose another offer.",
            rule="interruptible_floor",
        ),
        when(
            "The offer {offer_id:text} has another price for this number of months now. Request "
            "the lease again.",
            rule="price of the months",
        ),
        when(
            "The offer {offer_id:text} has no interruptible leases. Choose another offer.",
            interruptible="False",
        ),
        when(
            "The bid is {bid:credit} per GPU-hour, and the lease would cost {price:amount}. "
            "Request the lease again.",
            bid=ANY,
        ),
        when(
            "A chosen device is not on the node {node_id:text}. Choose devices of that node.",
            node_id=ANY,
        ),
        when(
            "The model {model:text} is not allowed by the request. Choose another device, or "
            "allow the model.",
            model=ANY,
        ),
        when(
            "The devices are of different GPU classes, and one lease has one class. Choose "
            "devices of one class.",
            gpu_class=ANY,
        ),
        when(
            "The offer {offer_id:text} is for another node. Choose the offer of the node.",
            offer_id=ANY,
        ),
        "The offer does not meet the request. Choose another offer, or ease the request.",
    ),
    MarketReason.AUCTION_TERMS: sentence(
        INVALID,
        when(
            "The {field:field} of the auction is out of range; the latest is {at_most_us:span} "
            "after the request. Choose another time.",
            at_most_us=ANY,
        ),
        when(
            "A bid that stands when the auction closes at {closes_at_us:time} binds until it is "
            "decided. Leave its expiry out, or let it expire before.",
            rule="binds",
        ),
        when(
            "The deposit of an auction must be from 0 to {at_most:credit}. Choose another amount.",
            field="deposit",
        ),
        when(
            "An auction takes 1 to {at_most:count} bids. Choose a number in between.",
            field="bids_max",
        ),
        when(
            "{pick:text} is not a way to pick the winner. Choose one that `tallystick bid ask "
            "--help` lists.",
            pick=ANY,
        ),
        "A term of the auction is out of range. `tallystick lease create --help` tells the ranges; "
        "choose a value in them.",
    ),
    MarketReason.AUCTION_STATE: sentence(
        CONFLICT,
        when(
            "The lease {lease_id:text} is decided by an auction, and only a bid can win it. "
            "Accept a bid with `tallystick bid accept`, or wait until the auction ends.",
            rule=ANY,
        ),
        when(
            "The auction is open until {closes_at_us:time}, and the best bid wins then. Wait "
            "until it ends.",
            closes_at_us=ANY,
        ),
        when(
            "The auction of the lease {lease_id:text} is {status:word}, so it takes no bids. "
            "`tallystick bid requests` shows the open ones.",
            status=ANY,
        ),
        "An auction for the lease[ {lease_id:text}] cannot be opened or changed now. "
        "`tallystick bid show` shows its state.",
    ),
    MarketReason.BID_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no bid[ {bid_id:text}][ for the lease {lease_id:text}] that you may see. "
        "`tallystick bid list` shows the bids.",
    ),
    MarketReason.BID_EXISTS: sentence(
        CONFLICT,
        "You have a bid for the lease[ {lease_id:text}] already, and each provider has one at a "
        "time. Withdraw it with `tallystick bid withdraw` first.",
    ),
    MarketReason.BIDS_FULL: sentence(
        CONFLICT,
        "The auction of the lease[ {lease_id:text}] has {bids_max:count} bids, the most it "
        "takes. Try again if one is withdrawn.",
        "The auction has the most bids that it takes. Try again if one is withdrawn.",
    ),
    MarketReason.BID_STATE: sentence(
        CONFLICT,
        when(
            "The bid {bid_id:text} has expired or cannot win any more. Choose another bid from "
            "`tallystick bid list`.",
            rule=ANY,
        ),
        when(
            "The bid {bid_id:text} at {price:credit} per GPU-hour is not the one that wins. "
            "Read the bids again and accept the best.",
            price=ANY,
        ),
        "The lease {lease_id:text} is {status:word}, so its bid cannot be changed. Request a "
        "new lease.",
        "The bid cannot be used or changed now. `tallystick bid list` shows the bids.",
    ),
    MarketReason.NO_MATCH: sentence(
        CONFLICT,
        when(
            "The gang needs {min_members:count} members with {gpus_per_member:gpus} each, and "
            "the matching GPUs are busy. There is room for all of them by {free_us:time}, unless "
            "leases are extended. Try again then, or ask for fewer members.",
            gang_id=ANY,
            missing="room",
            free_us=ANY,
        ),
        when(
            "The gang needs {min_members:count} members with {gpus_per_member:gpus} each, and "
            "the matching GPUs are busy. When enough of them are free is not known. Try again "
            "when leases end, or ask for fewer members.",
            gang_id=ANY,
            missing="room",
        ),
        when(
            "The gang needs {min_members:count} members with {gpus_per_member:gpus} each; the "
            'nodes that meet its demand "{dimension:word}" have room for {at_most:count}. Ease '
            "that demand, or ask for fewer members.",
            gang_id=ANY,
        ),
        when(
            "All matching GPUs ({matching:nodes}) are busy now. The next is free by "
            "{free_us:time}, unless its lease is extended. Try again then, or ask for fewer GPUs "
            "or a smaller share.",
            missing="room",
            matching=ANY,
            free_us=ANY,
        ),
        when(
            "All matching GPUs ({matching:nodes}) are busy now, and the end of their leases is "
            "not known. Try again later, or ask for fewer GPUs or a smaller share.",
            missing="room",
            matching=ANY,
        ),
        when(
            "All matching GPUs are busy now. Try again when a lease ends, or ask for fewer GPUs "
            "or a smaller share.",
            missing="room",
        ),
        when(
            "No node has {gpu_count:gpus} free for {months:months} at up to {price_max:credit} "
            "per GPU-hour. Raise the price limit, or choose fewer months.",
            months=ANY,
        ),
        when(
            "No node has {gpu_count:gpus} free at up to {price_max:credit} per GPU-hour with "
            "the pricing {pricing:text}. Raise the price limit, or try again later.",
            price_max=ANY,
        ),
        when(
            "The pool {pool_id:text} keeps no queue, and it has no free GPU for this. Try again "
            "later, or choose another pool.",
            scheduler=ANY,
        ),
        when(
            "No matching node is offered for rent now. `tallystick offer list` shows what is.",
            dimension="offer",
        ),
        when(
            "No matching node is in a region that takes jobs of other accounts. Try again when "
            "more nodes are offered.",
            dimension="region",
        ),
        when(
            "The matching nodes may not be rented out, because their hardware does not meet the "
            "rules of their regions. Try again when other nodes are offered.",
            dimension="sellable",
        ),
        when(
            "No matching node is in {required:text}; most are in {best_offered:text}. Allow "
            "more regions.",
            dimension="place",
            best_offered=ANY,
        ),
        when("No matching node is in {required:text}. Allow more regions.", dimension="place"),
        when(
            "No matching node is in the region {required:text}, to which the datastores or the "
            "reservation pin the job. Try again when one of its nodes is offered.",
            dimension="pin",
        ),
        when(
            "No matching node is in the pool {required:text}. Name another pool, or leave it out.",
            dimension="pool",
        ),
        when(
            "The matching nodes belong to a pool that keeps a queue. Name that pool in the "
            "request.",
            dimension="queue",
        ),
        when(
            "No matching node is active now. Try again later; `tallystick offer search` shows "
            "what is available.",
            dimension="node",
        ),
        when(
            "The matching nodes described their hardware more than {required:seconds} ago. Try "
            "again when they have reported again.",
            dimension="spec_age",
        ),
        when(
            "No matching node has a device of the kind {required:text}. Allow other kinds; "
            "`tallystick kind list` shows them.",
            dimension="kind",
        ),
        when("No node has devices of {required:text}. Allow other vendors.", dimension="vendor"),
        when(
            "No node has the model {required:text}; the most common one is {best_offered:text}. "
            "Allow more models with `--model`.",
            dimension="model",
            best_offered=ANY,
        ),
        when(
            "No node has the model {required:text}. Allow more models with `--model`.",
            dimension="model",
        ),
        when(
            "{required:gpus} of one node were asked for; the largest matching node has "
            "{best_offered:count}. Ask for {best_offered:count} with `--gpus`, or open a gang "
            "over several nodes.",
            dimension="gpus",
            best_offered=ANY,
        ),
        when(
            "No matching node has {required:gpus}. Ask for fewer with `--gpus`.", dimension="gpus"
        ),
        when(
            "{required:gib} of GPU memory were asked for; the largest matching part has "
            "{best_offered:gib}. Ask for less memory, or for a larger share.",
            dimension="memory",
            best_offered=ANY,
        ),
        when(
            "No matching node has {required:gib} of GPU memory for this share. Ask for less "
            "memory, or for a larger share.",
            dimension="memory",
        ),
        when(
            "No matching node rents out whole GPUs. Ask for a share with `--share`.",
            dimension="mode",
            required="whole",
        ),
        when(
            "No matching node divides its GPUs in the mode {required:word}. Ask for whole GPUs "
            "with `--share 1`, or for another mode.",
            dimension="mode",
        ),
        when(
            "The isolation {required:word} was asked for; the strongest that a matching node "
            "offers is {best_offered:word}. Ask for that.",
            dimension="isolation",
            best_offered=ANY,
        ),
        when(
            "No matching node offers the isolation {required:word}. Ask for a weaker one.",
            dimension="isolation",
        ),
        when(
            "No matching node ({matching:nodes}) has {required:gpus} with enough free room; the "
            "best has {best_offered:count}. Try again when a lease ends, or ask for fewer GPUs "
            "or a smaller share.",
            dimension="free",
            best_offered=ANY,
            matching=ANY,
        ),
        when(
            "No matching node has {required:gpus} with enough free room. Try again when a lease "
            "ends, or ask for fewer GPUs or a smaller share.",
            dimension="free",
        ),
        when(
            "{required:count} CPU cores were asked for; the largest matching node has "
            "{best_offered:count}. Ask for at most that many.",
            dimension="cpu",
            best_offered=ANY,
        ),
        when("No matching node has {required:count} CPU cores. Ask for fewer.", dimension="cpu"),
        when(
            "{required:gib} of main memory were asked for; the largest matching node has "
            "{best_offered:gib}. Ask for at most that much.",
            dimension="ram",
            best_offered=ANY,
        ),
        when("No matching node has {required:gib} of main memory. Ask for less.", dimension="ram"),
        when(
            "{required:count} GiB of storage were asked for; the largest matching offer has "
            "{best_offered:count} GiB. Ask for at most that much.",
            dimension="storage",
            best_offered=ANY,
        ),
        when(
            "No matching node offers {required:count} GiB of storage. Ask for less.",
            dimension="storage",
        ),
        when(
            "{required:count} Mbit/s were asked for; the fastest matching offer has "
            "{best_offered:count} Mbit/s. Ask for at most that much.",
            dimension="network",
            best_offered=ANY,
        ),
        when("No matching node offers {required:count} Mbit/s. Ask for less.", dimension="network"),
        when(
            "The network class {required:word} was asked for; the best that a matching node "
            "offers is {best_offered:word}. Ask for that.",
            dimension="network_class",
            best_offered=ANY,
        ),
        when(
            "No matching node offers the network class {required:word}. Ask for a lower one.",
            dimension="network_class",
        ),
        when(
            "No matching node has the architecture {required:text}. Choose another one, or "
            "leave it out.",
            dimension="arch",
        ),
        when(
            "No matching node runs {required:text}. Choose another operating system, or leave "
            "it out.",
            dimension="os",
        ),
        when(
            "Kernel {required:text} or newer was asked for; the newest on a matching node is "
            "{best_offered:text}. Ask for that.",
            dimension="kernel",
            best_offered=ANY,
        ),
        when(
            "No matching node has kernel {required:text} or newer. Ask for an older one.",
            dimension="kernel",
        ),
        when(
            "The cloud quotas of the regions with matching nodes are full. Try again when a lease "
            "there ends, or allow other regions.",
            dimension="cloud_quota",
        ),
        when(
            "No matching node has the capacity class {required:word}. Allow another class; "
            "preemptible capacity is for interruptible leases.",
            dimension="capacity",
        ),
        when(
            "No matching node runs on {required:word}. Choose another substrate, or leave it out.",
            dimension="substrate",
        ),
        when(
            "No matching node has all of these capabilities: {required:word}. Ask for fewer.",
            dimension="capabilities",
        ),
        when(
            "No matching node is in the setting {required:word}. Choose another one, or leave "
            "it out.",
            dimension="setting",
        ),
        when(
            "No matching node takes the workload class {required:word}. Choose another class, "
            "if another one is true of the work.",
            dimension="workload",
        ),
        when(
            "The security tier {required:count} was asked for; the highest that a matching node "
            "has is {best_offered:count}. Ask for that.",
            dimension="security_tier",
            best_offered=ANY,
        ),
        when(
            "No matching node has the security tier {required:count}. Ask for a lower one.",
            dimension="security_tier",
        ),
        when(
            "The matching nodes are new and have no reputation score yet. Allow new nodes, or "
            "leave the least reputation out.",
            dimension="provisional",
        ),
        when(
            "A reputation of {required:score} was asked for; the best matching node has "
            "{best_offered:score}. Ask for that.",
            dimension="reputation",
            best_offered=ANY,
        ),
        when(
            "No matching node has a reputation of {required:score}. Ask for less.",
            dimension="reputation",
        ),
        when(
            "Your reputation is {required:score}; the providers of all matching nodes ask for "
            "more. Your score rises with each lease that ends well.",
            dimension="renter",
        ),
        when(
            "You and the providers of the matching nodes do not deal with each other, because "
            "of counterparty lists. Change your list with `tallystick counterparty set`, or "
            "choose other nodes.",
            dimension="lists",
        ),
        when(
            "No matching node has these signed attributes: {required:text}. Ask for fewer.",
            dimension="attributes",
        ),
        when(
            "No matching node promises the SLA class {required:text}. Choose a lower class, or "
            "leave it out.",
            dimension="sla",
        ),
        when(
            "A reclaim window of {required:seconds} was asked for; the longest that a matching "
            "offer has is {best_offered:seconds}. Ask for that.",
            dimension="reclaim",
            best_offered=ANY,
        ),
        when(
            "No matching node offers a reclaim window of {required:seconds}. Ask for a shorter "
            "one.",
            dimension="reclaim",
        ),
        when(
            "No matching node offers interruptible leases. Ask for a lease that is not "
            "interruptible.",
            dimension="interruptible",
        ),
        when(
            "The matching nodes have planned maintenance in this time. Choose a shorter term, "
            "or try again after the maintenance.",
            dimension="maintenance",
        ),
        when(
            "No matching node is available for {required:seconds}. Choose a shorter term with "
            "`--term`.",
            dimension="available",
        ),
        when(
            "No matching node is paid in the way {required:text}. Pay in another way, or leave "
            "the way to pay out.",
            dimension="settlement",
        ),
        when(
            "The matching nodes are priced below the usage fee of the tariff now. Try again "
            "when their providers have raised the price.",
            dimension="usage_fee",
        ),
        when(
            "The cheapest matching GPU costs {best_offered:credit} per hour; your limit is "
            "{required:amount}. Raise `--max-price` to {best_offered:amount}.",
            dimension="price",
            best_offered=ANY,
        ),
        when(
            "No matching GPU costs at most {required:credit} per hour. Raise `--max-price`.",
            dimension="price",
        ),
        when(
            "The cheapest matching GPU costs {best_offered:credit} per hour; your budgets carry "
            "at most {required:amount}. Raise the budget with `tallystick budget set`.",
            dimension="budget",
            best_offered=ANY,
        ),
        when(
            "Your budgets do not carry the price of any matching GPU. Raise the budget with "
            "`tallystick budget set`.",
            dimension="budget",
        ),
        when(
            "Your credits do not carry the price of any matching GPU. Buy credits with "
            "`tallystick payment create`.",
            dimension="funds",
        ),
        "No node meets all demands of the request. `tallystick offer search` shows what is for "
        "rent; ease one demand.",
        advice=(
            when(
                "With the model {ease_to:text} allowed, {ease_nodes:nodes} would match.",
                ease="models",
                ease_to=ANY,
            ),
            when(
                "With {ease_to:gpus}, {ease_nodes:nodes} would match.",
                ease="gpu_count",
                dimension="price",
            ),
            when(
                "With a share of {ease_to:part}, {ease_nodes:nodes} would match.", ease="share_ppm"
            ),
            when(
                "With a term of {ease_to:seconds}, {ease_nodes:nodes} would match.",
                ease="term_seconds",
            ),
            when("With the mode {ease_to:word}, {ease_nodes:nodes} would match.", ease="mode"),
            when(
                "With the MIG profile {ease_to:text}, {ease_nodes:nodes} would match.",
                ease="mig_profile",
            ),
        ),
    ),
    MarketReason.MATCH_IMPOSSIBLE: sentence(
        CONFLICT,
        when(
            "No node of the region {required:text}, to which the datastores or the reservation pin "
            "the job, could ever run it. Attach stores of another region, or ask for another GPU "
            "model.",
            dimension="pin",
        ),
        when(
            "The datastores or the reservation of the job pin it to the region "
            "{pinned_region:text}, and no machine there meets the demand {dimension:word}, so "
            "waiting does not help. Ask for what the region has, or attach to another one.",
            pinned_region=ANY,
        ),
        when(
            "The gang needs {min_members:count} members with {gpus_per_member:gpus} each; all "
            'registered nodes together that meet its demand "{dimension:word}" have room for '
            "{at_most:count}, so waiting does not help. Ask for fewer members, or ease that "
            "demand.",
            gang_id=ANY,
        ),
        when(
            "No registered node has a device of the kind {required:text}, so waiting does not "
            "help. Choose another kind; `tallystick kind list` shows them.",
            dimension="kind",
        ),
        when(
            "No registered node has devices of {required:text}, so waiting does not help. Allow "
            "other vendors.",
            dimension="vendor",
        ),
        when(
            "No registered node has the model {required:text}, so waiting does not help. Allow "
            "more models with `--model`.",
            dimension="model",
        ),
        when(
            "No registered node has {required:gpus}, so waiting does not help. Ask for fewer "
            "with `--gpus`, or open a gang over several nodes.",
            dimension="gpus",
        ),
        when(
            "No registered node has {required:gib} of GPU memory for this share, so waiting "
            "does not help. Ask for less.",
            dimension="memory",
        ),
        when(
            "No registered node has {required:count} CPU cores, so waiting does not help. Ask "
            "for fewer.",
            dimension="cpu",
        ),
        when(
            "No registered node has {required:gib} of main memory, so waiting does not help. "
            "Ask for less.",
            dimension="ram",
        ),
        when(
            "No registered node has the architecture {required:text}, so waiting does not help. "
            "Choose another one.",
            dimension="arch",
        ),
        when(
            "No registered node runs {required:text}, so waiting does not help. Choose another "
            "operating system.",
            dimension="os",
        ),
        when(
            "No registered node has kernel {required:text} or newer, so waiting does not help. "
            "Ask for an older one.",
            dimension="kernel",
        ),
        when(
            "No registered node runs on {required:word}, so waiting does not help. Choose "
            "another substrate.",
            dimension="substrate",
        ),
        "No registered node can ever meet this request, so waiting does not help. Ask for less; "
        "`tallystick offer search` shows what there is.",
    ),
}
