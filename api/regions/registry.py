"""What `regions` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.regions import (
        administrators,
        check_ins,
        neighbours,
        reachability,
        wait_lists,
        where_next,
    )

    return (
        administrators.resource,
        check_ins.resource,
        wait_lists.resource,
        reachability.resource,
        neighbours.resource,
        where_next.resource,
    )
