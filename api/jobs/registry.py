"""What `jobs` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.jobs import gangs, jobs, parts, workspaces

    return (jobs.resource, gangs.resource, parts.resource, workspaces.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.jobs.plan_timer import run_plans
    from api.jobs.workspace_timer import run_workspaces

    return (
        Timer("plans", 5, 7_200, run_plans, turn=110),
        Timer("workspaces", 600, 93_600, run_workspaces, turn=245),
    )
