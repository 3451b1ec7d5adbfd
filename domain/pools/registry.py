"""What the room `pools` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.pools import group, pool, queue, quota

FILES = (group, pool, queue, quota)
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
    "pool.request_queued.v1": queue.RequestQueued,
    "pool.request_left.v1": queue.RequestLeftQueue,
    "pool.schedule_decided.v1": queue.ScheduleDecided,
}
