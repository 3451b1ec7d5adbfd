"""What refusals say: modes of sharing, MIG profiles, and counts and shares of GPUs."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, Sentence, sentence, when
from domain.hardware.reasons import HardwareReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    HardwareReason.MODE_NOT_SUPPORTED: sentence(
        INVALID,
        when(
            "None of the allowed models ({models:text}) has the MIG profile {mig_profile:text}. "
            "Choose another profile or another model.",
            models=ANY,
        ),
        when(
            "The {model:text} has no MIG profile {mig_profile:text}. Choose a profile of that "
            "model.",
            rule="mig_profile_not_on_this_model",
        ),
        when(
            "The {model:text} with {memory_mib:gib} cannot be shared in the mode {mode:word}. "
            "Choose another mode, or another model.",
            model=ANY,
        ),
        "The GPU cannot be shared in this mode. Choose another mode, or another model.",
    ),
    HardwareReason.UNKNOWN_PROFILE: sentence(
        INVALID,
        when(
            "The {model:text} has no MIG profile {mig_profile:text}. Choose a profile of that "
            "model.",
            model=ANY,
        ),
        when(
            "The mode {mode:word} does not go with the MIG profile[ {mig_profile:text}]. Name a "
            "profile with the mode mig only.",
            mode=ANY,
        ),
        "There is no MIG profile[ {mig_profile:text}]. Choose a profile of the model.",
    ),
    HardwareReason.UNKNOWN_MODEL: sentence(
        INVALID,
        "[{model:text} is not a model that can be divided into MIG instances. ]Choose another "
        "model.",
    ),
    HardwareReason.UNKNOWN_GPU: sentence(
        INVALID,
        "[{gpu:text} is not a GPU model with a cloud quota. ]Choose P100, V100, T4 or A100.",
    ),
    HardwareReason.UNKNOWN_ID: sentence(
        INVALID,
        "No MIG instance with this id is placed on the GPU, so it cannot be removed. Name the id "
        "of an instance that is placed.",
    ),
    HardwareReason.UNKNOWN_RESOURCE: sentence(
        INVALID,
        "Nothing was shared out: the user {user:text} asks for {resource:text}, and the pool has "
        "no such resource. Add the resource to the pool, or leave it out of the demand.",
        "Nothing was shared out: a user asks for a resource that the pool does not have. Add the "
        "resource to the pool, or leave it out of the demand.",
    ),
    HardwareReason.BAD_INITIAL_STATE: sentence(
        INVALID,
        "The given MIG instances cannot stand beside each other[, first {id:text}]. Start with "
        "instances that the GPU can hold at once.",
    ),
    HardwareReason.ID_IN_USE: sentence(
        INVALID, "A MIG instance of this id exists already. Choose another id."
    ),
    HardwareReason.PROFILE_LIMIT: sentence(
        INVALID,
        "The GPU takes at most {at_most:count} MIG instances of {mig_profile:text}. Choose "
        "another profile or another GPU.",
        "The GPU takes no more MIG instances of this profile. Choose another profile or another "
        "GPU.",
    ),
    HardwareReason.COMPUTE_FULL: sentence(
        INVALID,
        "The GPU has too little free compute for a MIG instance[ {mig_profile:text}]. Choose a "
        "smaller profile or another GPU.",
    ),
    HardwareReason.NO_PLACEMENT: sentence(
        INVALID,
        "The GPU has no free place for a MIG instance[ {mig_profile:text}] beside the others. "
        "Choose a smaller profile or another GPU.",
    ),
    HardwareReason.DEVICE_TAKEN: sentence(
        CONFLICT,
        when(
            "The device {device_id:text} is held by the lease {lease_id:text}. Choose another "
            "device, or wait until the lease ends.",
            lease_id=ANY,
        ),
        when(
            "The GPU is shared in the mode {mode:word} now, and one GPU has one mode at a time. "
            "Ask for that mode, or choose another GPU.",
            rule="one_mode_at_a_time",
        ),
        when(
            "The GPU is divided into time slices of another size now. Ask for a slice of that "
            "size, or choose another GPU.",
            rule="time_slices_of_one_n",
        ),
        when(
            "The GPU has {free_share_ppm:percent} of its compute and {free_mem_ppm:percent} of "
            "its memory free. Ask for a smaller share, or choose another GPU.",
            free_share_ppm=ANY,
        ),
        when(
            "The GPU has no room for a MIG instance {mig_profile:text} now. Ask for a smaller "
            "profile, or choose another GPU.",
            mig_profile=ANY,
        ),
        "The device[ {device_id:text}] is held by another lease now. Choose another device, or "
        "wait until that lease ends.",
    ),
    HardwareReason.BAD_INTERVAL: sentence(
        INVALID,
        "An interval must begin before it ends[: {from_us:time} to {to_us:time}]. Choose a later "
        "end.",
    ),
    HardwareReason.OVER_ALLOCATED: sentence(
        INVALID,
        "The leases hold more than the whole device[ at {at_us:time}]. Make their shares add up "
        "to at most one device.",
    ),
    HardwareReason.CONSTRAINT_INVALID: sentence(
        INVALID,
        "The demand {field:field} breaks its rule: {rule:rule}. Correct it and send the request "
        "again.",
        "A demand of the request breaks its rule. Correct it and send the request again.",
    ),
}
