"""What this room refuses: pools, their queues, groups and quotas.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class PoolsReason(Reason):
    """Why a command of this room was refused."""

    POOL_UNKNOWN = "pool_unknown"
    POOL_EXISTS = "pool_exists"
    POOL_POLICY_INVALID = "pool_policy_invalid"
    CONTROLLER_TAKEN = "controller_taken"
    COMPONENT_UNKNOWN = "component_unknown"
    COMPONENT_REMOVED = "component_removed"
    COMPONENT_INVALID = "component_invalid"
    COMPONENT_TAKEN = "component_taken"
    COMPONENTS_FULL = "components_full"
    METADATA_INVALID = "metadata_invalid"
    CUT_MOVED = "cut_moved"
    BASE_FULL = "base_full"
    QUEUE_FULL = "queue_full"
    QUEUE_MOVED = "queue_moved"
    DUPLICATE_USER = "duplicate_user"
    EMPTY_DEMAND = "empty_demand"
    BAD_WEIGHT = "bad_weight"
    BAD_TIE_ORDER = "bad_tie_order"


REASONS = tuple(PoolsReason)
STORED: frozenset[Reason] = frozenset(
    {
        PoolsReason.POOL_UNKNOWN,
        PoolsReason.POOL_EXISTS,
        PoolsReason.CONTROLLER_TAKEN,
        PoolsReason.COMPONENT_UNKNOWN,
        PoolsReason.COMPONENT_REMOVED,
        PoolsReason.COMPONENT_TAKEN,
        PoolsReason.COMPONENTS_FULL,
        PoolsReason.CUT_MOVED,
        PoolsReason.BASE_FULL,
        PoolsReason.QUEUE_FULL,
        PoolsReason.QUEUE_MOVED,
    }
)
