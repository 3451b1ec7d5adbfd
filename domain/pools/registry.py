"""What the room `pools` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.pools import component, controller, controller_address, group, pool, queue, quota

FILES = (group, pool, controller_address, component, controller, queue, quota)
FACTS: dict[str, type[Any]] = {
    "group.created.v1": group.GroupCreated,
    "group.member_added.v1": group.GroupMemberAdded,
    "group.member_removed.v1": group.GroupMemberRemoved,
    "project.overflow_set.v1": group.ProjectOverflowSet,
    "quota.set.v1": quota.QuotaSet,
    "quota.held.v1": quota.QuotaHeld,
    "quota.released.v1": quota.QuotaReleased,
    "pool.created.v1": pool.PoolCreated,
    "pool.policy_set.v1": pool.PoolPolicySet,
    "pool.controller_named.v1": controller_address.ControllerNamed,
    "pool.component_registered.v1": component.ComponentRegistered,
    "pool.component_removed.v1": component.ComponentRemoved,
    "pool.component_health_reported.v1": component.ComponentHealthReported,
    "pool.metadata_set.v1": controller.PoolMetadataSet,
    "pool.heads_cut.v1": controller.PoolHeadsCut,
    "pool.controller_checked.v1": controller.PoolControllerChecked,
    "pool.request_queued.v1": queue.RequestQueued,
    "pool.request_left.v1": queue.RequestLeftQueue,
    "pool.schedule_decided.v1": queue.ScheduleDecided,
}
