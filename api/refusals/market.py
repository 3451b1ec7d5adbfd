"""What refusals say: offers and what a chosen offer must meet."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    Reason.OFFER_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "The offer {offer_id:text} has no price list. Set one with `tallystick bid offer`.",
            rule=ANY,
        ),
        "There is no offer[ {offer_id:text}] that you may see. `tallystick offer list` shows "
        "the offers.",
    ),
    Reason.OFFER_EXISTS: sentence(
        CONFLICT,
        "The offer[ {offer_id:text}] exists already, with other terms. Close it with "
        "`tallystick offer close`, or publish under a new id.",
    ),
    Reason.OFFER_WITHDRAWN: sentence(
        CONFLICT,
        "The offer[ {offer_id:text}] is closed. Choose another one from `tallystick offer list`.",
    ),
    Reason.OFFER_MISMATCH: sentence(
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
}
