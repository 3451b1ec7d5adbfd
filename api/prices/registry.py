"""What `prices` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.prices import oracle, provider_kinds, tariffs

    return (oracle.resource, tariffs.resource, provider_kinds.resource)
