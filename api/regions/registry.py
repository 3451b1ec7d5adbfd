"""What `regions` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer
from api.regions import administrators, check_ins, neighbours, reachability, wait_lists, where_next

RESOURCES: tuple[Resource, ...] = (
    administrators.resource,
    check_ins.resource,
    wait_lists.resource,
    reachability.resource,
    neighbours.resource,
    where_next.resource,
)
TIMERS: tuple[Timer, ...] = ()
