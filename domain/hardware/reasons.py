"""What this room refuses: what machines can be and how they divide.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class HardwareReason(Reason):
    """Why a command of this room was refused."""

    DEVICE_TAKEN = "device_taken"
    MODE_NOT_SUPPORTED = "mode_not_supported"
    CONSTRAINT_INVALID = "constraint_invalid"
    UNKNOWN_RESOURCE = "unknown_resource"
    BAD_INTERVAL = "bad_interval"
    OVER_ALLOCATED = "over_allocated"
    UNKNOWN_MODEL = "unknown_model"
    BAD_INITIAL_STATE = "bad_initial_state"
    UNKNOWN_GPU = "unknown_gpu"
    UNKNOWN_ID = "unknown_id"
    UNKNOWN_PROFILE = "unknown_profile"
    ID_IN_USE = "id_in_use"
    PROFILE_LIMIT = "profile_limit"
    COMPUTE_FULL = "compute_full"
    NO_PLACEMENT = "no_placement"


REASONS = tuple(HardwareReason)
STORED: frozenset[Reason] = frozenset({HardwareReason.DEVICE_TAKEN})
