"""What this room refuses: stores of data, reserved ports, configurations of edge devices.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class SitesReason(Reason):
    """Why a command of this room was refused."""

    PLAN_NEEDED = "plan_needed"
    REGION_EMPTY = "region_empty"
    SITE_NAME_TAKEN = "site_name_taken"
    DATASTORE_UNKNOWN = "datastore_unknown"
    DATASTORE_INVALID = "datastore_invalid"
    PATH_REFUSED = "path_refused"
    RESERVATION_UNKNOWN = "reservation_unknown"
    RESERVATION_INVALID = "reservation_invalid"
    RESERVATION_HELD = "reservation_held"
    ATTACHED_ELSEWHERE = "attached_elsewhere"
    DEVICE_INVALID = "device_invalid"
    DEVICE_STATE = "device_state"
    DEVICE_CONFIG_UNKNOWN = "device_config_unknown"
    DEVICE_CONFIG_REVISION = "device_config_revision"


REASONS = tuple(SitesReason)
STORED: frozenset[Reason] = frozenset(
    {
        SitesReason.PLAN_NEEDED,
        SitesReason.REGION_EMPTY,
        SitesReason.SITE_NAME_TAKEN,
        SitesReason.DATASTORE_UNKNOWN,
        SitesReason.RESERVATION_UNKNOWN,
        SitesReason.RESERVATION_HELD,
        SitesReason.DEVICE_STATE,
        SitesReason.DEVICE_CONFIG_UNKNOWN,
        SitesReason.DEVICE_CONFIG_REVISION,
    }
)
