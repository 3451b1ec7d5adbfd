"""What this room refuses: providers, regions, nodes and their devices.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class FleetReason(Reason):
    """Why a command of this room was refused."""

    PROVIDER_UNKNOWN = "provider_unknown"
    PROVIDER_EXISTS = "provider_exists"
    PROVIDER_KIND_UNKNOWN = "provider_kind_unknown"
    PAYMENT_MODE_NEEDED = "payment_mode_needed"
    CLOUD_REGION = "cloud_region"
    REGION_UNKNOWN = "region_unknown"
    REGION_EXISTS = "region_exists"
    NOT_A_CLOUD_REGION = "not_a_cloud_region"
    REGION_NOT_SUITED = "region_not_suited"
    REGION_TERMS = "region_terms"
    REGION_DAY = "region_day"
    STORAGE_MODE_UNKNOWN = "storage_mode_unknown"
    STORAGE_NODE_STATE = "storage_node_state"
    JOIN_CODE_UNKNOWN = "join_code_unknown"
    JOIN_CODE_USED = "join_code_used"
    JOIN_CODE_EXPIRED = "join_code_expired"
    NODE_UNKNOWN = "node_unknown"
    NODE_EXISTS = "node_exists"
    NODE_STATE = "node_state"
    NODE_KEY_MISMATCH = "node_key_mismatch"
    NODE_KEY_USED = "node_key_used"
    NODE_SPECS_MISSING = "node_specs_missing"
    NODE_NOT_JOINABLE = "node_not_joinable"
    NODE_BUSY = "node_busy"
    ADMISSION_UNKNOWN = "admission_unknown"
    ADMISSION_STATE = "admission_state"
    WALLET_NEEDED = "wallet_needed"
    NODE_IN_MAINTENANCE = "node_in_maintenance"
    NODE_ROLE = "node_role"
    MAINTENANCE_UNKNOWN = "maintenance_unknown"
    MAINTENANCE_WINDOW = "maintenance_window"
    LICENCE_UNKNOWN = "licence_unknown"
    LICENCE_EXISTS = "licence_exists"
    ATTRIBUTE_UNKNOWN = "attribute_unknown"
    ATTRIBUTE_REVOKED = "attribute_revoked"
    DEVICE_UNKNOWN = "device_unknown"
    DEVICE_ELSEWHERE = "device_elsewhere"
    DEVICE_INTERVAL = "device_interval"
    NODE_POOLED = "node_pooled"
    LEASE_STATE = "lease_state"
    BAD_PERIOD = "bad_period"


REASONS = tuple(FleetReason)
STORED: frozenset[Reason] = frozenset(
    {
        FleetReason.PROVIDER_UNKNOWN,
        FleetReason.PROVIDER_EXISTS,
        FleetReason.PAYMENT_MODE_NEEDED,
        FleetReason.CLOUD_REGION,
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_EXISTS,
        FleetReason.NOT_A_CLOUD_REGION,
        FleetReason.REGION_NOT_SUITED,
        FleetReason.REGION_TERMS,
        FleetReason.STORAGE_NODE_STATE,
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_EXISTS,
        FleetReason.NODE_STATE,
        FleetReason.NODE_KEY_MISMATCH,
        FleetReason.NODE_KEY_USED,
        FleetReason.NODE_SPECS_MISSING,
        FleetReason.NODE_NOT_JOINABLE,
        FleetReason.NODE_BUSY,
        FleetReason.ADMISSION_UNKNOWN,
        FleetReason.ADMISSION_STATE,
        FleetReason.WALLET_NEEDED,
        FleetReason.NODE_IN_MAINTENANCE,
        FleetReason.MAINTENANCE_UNKNOWN,
        FleetReason.LICENCE_UNKNOWN,
        FleetReason.LICENCE_EXISTS,
        FleetReason.ATTRIBUTE_UNKNOWN,
        FleetReason.ATTRIBUTE_REVOKED,
        FleetReason.DEVICE_UNKNOWN,
        FleetReason.DEVICE_ELSEWHERE,
        FleetReason.NODE_POOLED,
        FleetReason.LEASE_STATE,
    }
)
