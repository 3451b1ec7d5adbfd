"""What `jobs` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.jobs import gangs, jobs, parts, workspaces
from api.jobs.parts import run_plans
from api.jobs.workspaces import run_workspaces
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (
    jobs.resource,
    gangs.resource,
    parts.resource,
    workspaces.resource,
)
TIMERS: tuple[Timer, ...] = (
    Timer("plans", 5, 7_200, run_plans, turn=110),
    Timer("workspaces", 600, 93_600, run_workspaces, turn=245),
)
