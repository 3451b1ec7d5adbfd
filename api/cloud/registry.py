"""What `cloud` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.cloud import capacity, onboarding, quotas

    return (onboarding.resource, quotas.resource, capacity.resource)
